//! The result of a command that agtmux runs in a shared terminal.

use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::mirror_files::MirrorOutput;
use agtmux_api::wire::{MirrorCommand, MirrorCommandQuery, MirrorCommandStatus};
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::{MirrorShell, OutputCleaner, OutputExcerpt};
use tokio::time::Instant;

use super::terminal::{SharedTerminal, TerminalView};
use super::{Mirrors, errors};

const DEFAULT_OUTPUT_BYTES: u64 = 10_000;
const MAX_OUTPUT_BYTES: u64 = 4 << 20;
/// The longest time that one request may wait for the end of a command.
const MAX_WAIT: Duration = Duration::from_secs(110);
/// If an output is longer than this, agtmux reads only the end of the output.
const MAX_WHOLE_BYTES: u64 = 2 << 20;

/// The exit codes that agtmux reports for commands that it interrupted.
const TIMED_OUT: i32 = 124;
const CANCELLED: i32 = 130;

impl Mirrors {
    /// The terminal in which the command of this request runs or ran.
    pub(super) fn terminal_of(&self, exec: &str) -> Option<Arc<SharedTerminal>> {
        let has_command = |terminal: &&Arc<SharedTerminal>| {
            let view = terminal.view();
            view.execs.contains_key(exec) || view.command_of(exec).is_some()
        };
        self.terminals().iter().rev().find(has_command).cloned()
    }

    /// A command and its output. Waits for the end of the command if the query asks for that.
    pub(crate) async fn command(&self, query: &MirrorCommandQuery) -> ApiResult<MirrorCommand> {
        let exec = &query.command_id;
        let terminal = self.terminal_of(exec).ok_or_else(|| errors::no_command(exec))?;
        let wait = Duration::from_millis(query.wait_ms.unwrap_or(0)).min(MAX_WAIT);
        terminal.wait_for(Instant::now() + wait, |view| is_over(view, exec).then_some(())).await;
        let mut command = describe(&terminal, exec);
        let max_bytes = query.max_bytes.unwrap_or(DEFAULT_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES);
        if let Some(output) = output_of(&terminal, exec) {
            let (shell, raw) = (terminal.spec.shell, query.raw);
            let written = terminal.view().command_of(exec).and_then(|command| command.end).map_or(0, |end| end.bytes);
            let read = move || read_excerpt(&output, written, shell, raw, max_bytes);
            let read = tokio::task::spawn_blocking(read).await;
            let (excerpt, full_screen) = read.unwrap_or_default();
            command.truncated = excerpt.omitted_bytes > 0;
            (command.output, command.omitted_bytes) = (excerpt.text, excerpt.omitted_bytes);
            command.full_screen = full_screen;
        }
        Ok(command)
    }
}

/// Whether the wait for this command is over: the command has ended, the terminal is closed, or agtmux has given up
/// after Ctrl-C. Without marks, the output is stored a moment after that.
pub(super) fn is_over(view: &TerminalView, exec: &str) -> bool {
    let is_given_up = view.execs.get(exec).is_some_and(|status| status.given_up && status.reports_before.is_none());
    view.state.is_closed || is_given_up || view.command_of(exec).is_some_and(|command| command.end.is_some())
}

pub(super) fn output_of(terminal: &SharedTerminal, exec: &str) -> Option<MirrorOutput> {
    let number = terminal.view().command_of(exec)?.number;
    (number > 0).then(|| terminal.files.output(number))
}

/// Describes a command without its output.
pub(super) fn describe(terminal: &SharedTerminal, exec: &str) -> MirrorCommand {
    let method = terminal.method();
    let view = terminal.view();
    let (command, status) = (view.command_of(exec), view.execs.get(exec));
    let end = command.and_then(|command| command.end);
    let (timed_out, cancelled) = status.map_or((false, false), |status| (status.timed_out, status.cancelled));
    let is_interrupted = end.is_some() || status.is_some_and(|status| status.given_up);
    let exit_code = match () {
        () if timed_out && is_interrupted => Some(TIMED_OUT),
        () if cancelled && is_interrupted => Some(CANCELLED),
        () => end.and_then(|end| end.code),
    };
    let from = status.map(|status| status.record.typed_at).or(command.map(|command| command.started_at));
    let millis =
        |(from, end): (jiff::Timestamp, jiff::Timestamp)| u64::try_from(end.duration_since(from).as_millis()).ok();
    let output = command.filter(|command| command.number > 0).map(|command| terminal.files.output(command.number));
    MirrorCommand {
        command_id: exec.to_owned(),
        mirror_id: terminal.spec.mirror_id.clone(),
        pane_id: PaneId(terminal.spec.pane),
        status: match end {
            Some(_) => MirrorCommandStatus::Ended,
            None if view.state.is_closed => MirrorCommandStatus::Lost,
            None => MirrorCommandStatus::Running,
        },
        method,
        exit_code,
        signal: end.and_then(|end| end.code).filter(|code| (129..=192).contains(code)).map(|code| code - 128),
        duration_ms: from.zip(end.map(|end| end.at)).and_then(millis),
        // The directory after the command, once the next prompt has shown it.
        cwd: view.state.cwd.clone().or_else(|| command?.cwd.clone()),
        output: String::new(),
        truncated: false,
        omitted_bytes: 0,
        output_file: output.map(|output| output.path().display().to_string()),
        timed_out,
        cancelled,
        full_screen: false,
    }
}

/// Reads the end of an output. `written` is the size of the raw output if the command has ended: agtmux keeps the outputs
/// of the last commands only. Also returns whether a program used the whole screen.
pub(super) fn read_excerpt(
    output: &MirrorOutput,
    written: u64,
    shell: MirrorShell,
    raw: bool,
    max_bytes: u64,
) -> (OutputExcerpt, bool) {
    if written > 0 && !output.path().exists() {
        return (OutputExcerpt { text: String::new(), omitted_bytes: written }, false);
    }
    let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let (is_long, head) = (output.is_long(), output.head_bytes());
    if !is_long && head <= MAX_WHOLE_BYTES {
        let mut cleaner = OutputCleaner::new(shell, raw);
        let mut cleaned = cleaner.push(&output.read_head(0, head).unwrap_or_default());
        cleaned.extend(cleaner.finish());
        return (OutputExcerpt::tail(&cleaned, max), cleaner.saw_full_screen());
    }
    let end = match is_long {
        true => output.read_tail().unwrap_or_default(),
        false => output.read_head(head - MAX_WHOLE_BYTES, MAX_WHOLE_BYTES).unwrap_or_default(),
    };
    let mut cleaner = OutputCleaner::resumed(shell, raw);
    let mut cleaned = cleaner.push(&end);
    cleaned.extend(cleaner.finish());
    let mut excerpt = OutputExcerpt::tail(&cleaned, max.min(cleaned.len().saturating_sub(1)));
    excerpt.omitted_bytes += output.total_bytes().saturating_sub(cleaned.len() as u64);
    (excerpt, cleaner.saw_full_screen())
}

#[cfg(test)]
mod tests {
    use agtmux_api::mirror_files::{MirrorFiles, MirrorOutputWriter};

    use super::*;

    #[test]
    fn an_output_that_is_no_longer_stored_is_reported_as_left_out() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let files = MirrorFiles::in_dir(dir.path(), "m");
        files.create().expect("created");
        let mut writer = MirrorOutputWriter::new(files.clone());
        writer.start(1).and_then(|()| writer.write(b"text\r\n")).expect("written");
        writer.finish();
        let read = |number, written| read_excerpt(&files.output(number), written, MirrorShell::Bash, false, 100).0;
        assert_eq!(read(1, 6), OutputExcerpt { text: "text\n".into(), omitted_bytes: 0 });
        assert_eq!(read(2, 6), OutputExcerpt { text: String::new(), omitted_bytes: 6 });
        assert_eq!(read(2, 0), OutputExcerpt::default());
    }
}
