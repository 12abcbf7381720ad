//! Streams the output of a command: first its lines as they are written, then the end of the command.

use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::mirror_files::MirrorOutput;
use agtmux_api::wire::{MirrorCommandQuery, MirrorStreamItem};
use agtmux_core::mirror::OutputCleaner;
use agtmux_core::text;
use tokio::time::Instant;

use super::result::{describe, is_over, output_of};
use super::terminal::SharedTerminal;
use super::{Mirrors, errors};

/// The most bytes of raw output that the stream reads for one item.
const MAX_PART_BYTES: u64 = 256 << 10;

/// Reads the output of one command.
pub(crate) struct OutputReader {
    terminal: Arc<SharedTerminal>,
    exec: String,
    cleaner: OutputCleaner,
    position: u64,
    stage: StreamStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamStage {
    /// The stream sends the beginning of the output.
    Head,
    /// The stream has sent the whole output. Only the item that reports the end of the command remains.
    Rest,
    Ended,
}

/// The next thing that an output stream sends.
#[derive(Debug)]
pub(crate) enum OutputStep {
    /// An item, and the position in the output after it. The position is `None` if a reader cannot resume after this
    /// item.
    Item(Box<MirrorStreamItem>, Option<u64>),
    /// There is no new output yet.
    Silence,
    End,
}

impl Mirrors {
    /// Reads the output of a command, beginning at this position.
    pub(crate) fn read_output(&self, query: &MirrorCommandQuery, position: u64) -> ApiResult<OutputReader> {
        let exec = query.command_id.clone();
        let terminal = self.terminal_of(&exec).ok_or_else(|| errors::no_command(&exec))?;
        let cleaner = match position {
            0 => OutputCleaner::new(terminal.spec.shell, query.raw),
            _ => OutputCleaner::resumed(terminal.spec.shell, query.raw),
        };
        Ok(OutputReader { terminal, exec, cleaner, position, stage: StreamStage::Head })
    }
}

impl OutputReader {
    /// Waits for the next part of the output, at most for `patience`.
    pub(crate) async fn next(&mut self, patience: Duration) -> OutputStep {
        if self.stage == StreamStage::Ended {
            return OutputStep::End;
        }
        let deadline = Instant::now() + patience;
        loop {
            // Check for the end before reading the output. All output is written before the end, so the read then
            // misses nothing.
            let (terminal, exec) = (self.terminal.clone(), self.exec.clone());
            let mut changed = terminal.subscribe();
            let is_over = is_over(&terminal.view(), &exec);
            if let Some(step) = self.read_part(is_over) {
                return step;
            }
            let recheck = Instant::now() + Duration::from_secs(1);
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep_until(deadline.min(recheck)) => {
                    terminal.refresh();
                    if Instant::now() >= deadline {
                        return OutputStep::Silence;
                    }
                }
            }
        }
    }

    /// The next part of the output. `None` if there is none yet.
    fn read_part(&mut self, is_over: bool) -> Option<OutputStep> {
        if self.stage == StreamStage::Rest {
            return Some(self.end());
        }
        let output = output_of(&self.terminal, &self.exec);
        loop {
            let part = output.as_ref().and_then(|output| output.read_head(self.position, MAX_PART_BYTES).ok());
            let part = part.filter(|part| !part.is_empty());
            let cleaned = match &part {
                Some(part) => {
                    self.position += part.len() as u64;
                    self.cleaner.push(part)
                }
                None if is_over => {
                    self.stage = StreamStage::Rest;
                    self.rest(output.as_ref())
                }
                None => return None,
            };
            if !cleaned.is_empty() {
                let is_resumable = self.stage == StreamStage::Head && self.cleaner.is_at_line_start();
                let item = Box::new(MirrorStreamItem::Output(text::from_bytes(&cleaned)));
                return Some(OutputStep::Item(item, is_resumable.then_some(self.position)));
            }
            if self.stage == StreamStage::Rest {
                return Some(self.end());
            }
        }
    }

    /// The part of the output after its beginning. It consists of the tail of a long output, and of a last line without
    /// a newline.
    fn rest(&mut self, output: Option<&MirrorOutput>) -> Vec<u8> {
        let mut cleaned = Vec::new();
        if let Some(output) = output.filter(|output| output.is_long()) {
            let tail = output.read_tail().unwrap_or_default();
            let left_out = output.total_bytes().saturating_sub(self.position + tail.len() as u64);
            if left_out > 0 {
                cleaned.extend(self.cleaner.finish());
                cleaned.extend(format!("\n[agtmux: {left_out} bytes of the output are left out]\n").into_bytes());
            }
            cleaned.extend(self.cleaner.push(&tail));
        }
        cleaned.extend(self.cleaner.finish());
        cleaned
    }

    fn end(&mut self) -> OutputStep {
        self.stage = StreamStage::Ended;
        let mut command = describe(&self.terminal, &self.exec);
        command.full_screen = self.cleaner.saw_full_screen();
        OutputStep::Item(Box::new(MirrorStreamItem::Ended(Box::new(command))), None)
    }
}
