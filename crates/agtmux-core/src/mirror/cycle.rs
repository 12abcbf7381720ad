//! The cycle of a shell: prompt, command, output, end.

use super::event::ShellEvent;
use super::mark::{ShellMark, ShellMarkKind};
use super::marked_stream::{MarkedPiece, MarkedStream};

/// A part of what a shell's pane shows: output of a command, or an event of the shell.
#[derive(Debug, PartialEq, Eq)]
pub enum TrackedPiece<'a> {
    /// Output of the command that runs. Other bytes of the stream are prompts and echoed keys, and are dropped.
    Output(&'a [u8]),
    Event(ShellEvent),
}

/// Follows the shell in a pane. The caller pushes all bytes of the pane, in order.
#[derive(Debug, Clone)]
pub struct ShellTracker {
    stream: MarkedStream,
    cycle: ShellCycle,
}

/// The sequence that turns on bracketed paste. Line editors write it when they begin to read keys. The tracker
/// therefore finds the end of a prompt even if a shell theme drops the mark at the end of the prompt.
const EDITOR_STARTS: &[u8] = b"\x1b[?2004h";

#[derive(Debug, Clone, Default)]
struct ShellCycle {
    /// The number of the current prompt. 0 before the first prompt.
    seq: u64,
    cwd: Option<String>,
    is_ready: bool,
    /// The last bytes that arrived since the prompt began. Kept only until the line editor is ready.
    before_ready: Vec<u8>,
    /// The id of the agtmux request whose command the shell has accepted at this prompt.
    taken: Option<String>,
    /// The number of the last command.
    number: u64,
    running: Option<Running>,
}

#[derive(Debug, Clone, Default)]
struct Running {
    bytes: u64,
    output_ended: bool,
}

impl ShellTracker {
    /// `last_number` is the number of the last command that an earlier reader of this pane has seen.
    pub fn new(nonce: impl Into<Vec<u8>>, last_number: u64) -> Self {
        let cycle = ShellCycle { number: last_number, ..ShellCycle::default() };
        Self { stream: MarkedStream::new(nonce), cycle }
    }

    pub fn push(&mut self, bytes: &[u8], sink: &mut impl FnMut(TrackedPiece<'_>)) {
        let Self { stream, cycle } = self;
        stream.push(bytes, &mut |piece| cycle.apply(piece, sink));
    }

    /// Ends the stream. `pane_is_gone` is false if only the pipe to the reader was closed.
    pub fn finish(&mut self, pane_is_gone: bool, sink: &mut impl FnMut(TrackedPiece<'_>)) {
        let Self { stream, cycle } = self;
        stream.finish(&mut |piece| cycle.apply(piece, sink));
        let event = if pane_is_gone { ShellEvent::Closed } else { ShellEvent::PipeClosed };
        sink(TrackedPiece::Event(event));
    }
}

impl ShellCycle {
    fn apply(&mut self, piece: MarkedPiece<'_>, sink: &mut impl FnMut(TrackedPiece<'_>)) {
        match piece {
            MarkedPiece::Bytes(bytes) => self.pass(bytes, sink),
            MarkedPiece::Mark(mark) => {
                if let Some(event) = self.apply_mark(mark, sink) {
                    sink(TrackedPiece::Event(event));
                }
            }
        }
    }

    fn pass(&mut self, bytes: &[u8], sink: &mut impl FnMut(TrackedPiece<'_>)) {
        match &mut self.running {
            Some(running) if !running.output_ended => {
                running.bytes += bytes.len() as u64;
                sink(TrackedPiece::Output(bytes));
            }
            None if self.seq > 0 && !self.is_ready => {
                self.before_ready.extend_from_slice(bytes);
                if self.before_ready.windows(EDITOR_STARTS.len()).any(|window| window == EDITOR_STARTS) {
                    sink(TrackedPiece::Event(self.become_ready()));
                }
                let kept = self.before_ready.len().min(EDITOR_STARTS.len() - 1);
                self.before_ready.drain(..self.before_ready.len() - kept);
            }
            _ => {}
        }
    }

    fn become_ready(&mut self) -> ShellEvent {
        self.is_ready = true;
        ShellEvent::Ready { seq: self.seq }
    }

    /// Applies a mark and returns the event that it causes. Ignores a mark with the number of an earlier prompt,
    /// because such a mark is a copy, for example in a log that a program prints.
    fn apply_mark(&mut self, mark: ShellMark, sink: &mut impl FnMut(TrackedPiece<'_>)) -> Option<ShellEvent> {
        if let ShellMarkKind::PromptStart { cwd } = mark.kind {
            return self.start_prompt(mark.seq, cwd, sink);
        }
        if mark.seq != self.seq || self.seq == 0 {
            return None;
        }
        match mark.kind {
            ShellMarkKind::PromptStart { .. } => None,
            // If the user has removed agtmux's function from PROMPT_COMMAND in bash, only the prompt itself reports the
            // end of a command.
            ShellMarkKind::PromptEnd { code } if self.running.is_some() => {
                let ended = self.end_command(code, None);
                sink(TrackedPiece::Event(ended));
                Some(self.become_ready())
            }
            ShellMarkKind::PromptEnd { .. } => (!self.is_ready).then(|| self.become_ready()),
            ShellMarkKind::MoreInput if self.running.is_none() => Some(ShellEvent::MoreInput { seq: self.seq }),
            ShellMarkKind::MoreInput => None,
            ShellMarkKind::Taken { exec, stashed } => {
                self.taken = Some(exec.clone());
                Some(ShellEvent::Taken { seq: self.seq, exec, stashed })
            }
            ShellMarkKind::Returned => Some(ShellEvent::Returned),
            ShellMarkKind::CommandStart { text } => self.start_command(text),
            ShellMarkKind::OutputEnd => {
                self.running.iter_mut().for_each(|running| running.output_ended = true);
                None
            }
            ShellMarkKind::CommandEnd { code, text, .. } if self.running.is_some() => {
                Some(self.end_command(Some(code), text))
            }
            ShellMarkKind::CommandEnd { code, .. } => Some(ShellEvent::NothingRan { code, exec: self.taken.take() }),
        }
    }

    fn start_prompt(
        &mut self,
        seq: u64,
        cwd: Option<String>,
        sink: &mut impl FnMut(TrackedPiece<'_>),
    ) -> Option<ShellEvent> {
        if seq <= self.seq {
            return None;
        }
        if self.running.is_some() {
            let ended = self.end_command(None, None);
            sink(TrackedPiece::Event(ended));
        }
        (self.seq, self.is_ready, self.taken) = (seq, false, None);
        self.cwd.clone_from(&cwd);
        self.before_ready.clear();
        Some(ShellEvent::Prompt { seq, cwd })
    }

    fn start_command(&mut self, text: Option<String>) -> Option<ShellEvent> {
        // Bash repeats the mark for each line of a command.
        if self.running.is_some() {
            return None;
        }
        self.number += 1;
        self.running = Some(Running::default());
        Some(ShellEvent::Started { number: self.number, exec: self.taken.take(), text, cwd: self.cwd.clone() })
    }

    fn end_command(&mut self, code: Option<i32>, text: Option<String>) -> ShellEvent {
        let bytes = self.running.take().unwrap_or_default().bytes;
        ShellEvent::Ended { number: self.number, code, text, bytes }
    }
}
