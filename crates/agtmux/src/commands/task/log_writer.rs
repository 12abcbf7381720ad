//! `agtmux task-log SPEC`: reads the output of a task from a pipe. It writes the newest output to a log, counts bells
//! and detects silence after a possible prompt. It runs as long as the task, even if no daemon is running.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use agtmux_api::task_files::{BoundedLog, OutputStatus, OutputStatusFile, RunFiles, end_marker};
use agtmux_core::output::{BellCounter, last_line, partial_end, stays_in_line};
use agtmux_core::task::recognize_prompt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a program must be silent before its last line is checked for a prompt, if the line does not end with a
/// newline.
const PROMPT_SILENCE: Duration = Duration::from_millis(150);
/// How long a program must be silent before its last line is checked for a prompt, if the line ends with a newline.
const PROMPT_SILENCE_AFTER_LINE: Duration = Duration::from_secs(1);
/// How many of the last bytes of the output to keep in memory. The search for a prompt covers these bytes.
const TAIL_BYTES: usize = 4 << 10;

pub(super) fn run(spec: &Path) {
    // There is no caller to report an error to.
    let _ = read_all(&RunFiles::at(spec));
}

fn read_all(files: &RunFiles) -> io::Result<()> {
    // On a busy machine the task may have ended before this process starts. Its output is still logged.
    let spec = files.read_spec();
    let status = spec.is_ok().then(|| OutputStatusFile::create(&files.output())).transpose()?;
    let spec = spec.or_else(|_| files.read_kept_spec())?;
    let log = BoundedLog::create(&files.log(), spec.log_bytes);
    let mut monitor = OutputMonitor::new(log.ok(), &spec.run_id);
    let write_status = |now: OutputStatus| status.as_ref().map_or(Ok(()), |status| status.write(now));
    let stdin = io::stdin();
    let mut buffer = vec![0; 64 << 10];
    while !monitor.status.ended {
        let previous = monitor.status;
        match wait_readable(&stdin, monitor.silence_timeout())? {
            false => monitor.handle_silence(),
            true => match stdin.lock().read(&mut buffer)? {
                0 => monitor.end(),
                length => monitor.push_output(&buffer[..length]),
            },
        }
        if needs_status_write(previous, monitor.status) {
            write_status(monitor.status)?;
        }
    }
    Ok(())
}

fn needs_status_write(before: OutputStatus, now: OutputStatus) -> bool {
    let without_bytes = |status: OutputStatus| OutputStatus { bytes: 0, ..status };
    without_bytes(before) != without_bytes(now)
}

/// Returns whether stdin became readable within the timeout.
fn wait_readable(stdin: &io::Stdin, patience: Option<Duration>) -> io::Result<bool> {
    let pause = patience.and_then(|patience| Timespec::try_from(patience).ok());
    loop {
        let mut watched = [PollFd::new(stdin, PollFlags::IN)];
        match poll(&mut watched, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

#[derive(Default)]
struct OutputMonitor {
    log: Option<BoundedLog>,
    bells: BellCounter,
    mark: Vec<u8>,
    /// Bytes that may be the beginning of the end mark.
    held: Vec<u8>,
    status: OutputStatus,
    /// The last bytes of the output.
    tail: Vec<u8>,
    /// Whether the last line was checked for a prompt and no output has come since.
    silence_checked: bool,
    /// The line that may be a prompt.
    prompt_line: Option<String>,
    /// The output since the prompt, as long as it can be the echo of an answer that the user types. `None` if there is
    /// no prompt, or if the output since the prompt cannot be such an echo.
    typed_answer: Option<Vec<u8>>,
}

impl OutputMonitor {
    fn new(log: Option<BoundedLog>, run_id: &str) -> Self {
        Self { log, mark: end_marker(run_id), ..Self::default() }
    }

    /// How long to wait for more output before the last line is checked for a prompt. `None` if the line was checked
    /// already, or if there is no output yet.
    fn silence_timeout(&self) -> Option<Duration> {
        let quiet = if self.tail.ends_with(b"\n") { PROMPT_SILENCE_AFTER_LINE } else { PROMPT_SILENCE };
        (!self.silence_checked && self.status.bytes > 0).then_some(quiet)
    }

    /// Called when the program has been silent long enough. Marks the task as quiet if its last line may be a prompt.
    /// If the program moved the cursor, the last line is unknown. The task is then marked as quiet too, so that the
    /// daemon checks the screen.
    fn handle_silence(&mut self) {
        self.silence_checked = true;
        self.prompt_line = last_line(&self.tail);
        self.status.quiet = self.prompt_line.as_ref().is_none_or(|line| recognize_prompt(line).is_some());
        if self.status.quiet {
            self.typed_answer.get_or_insert_default();
        }
    }

    fn push_output(&mut self, bytes: &[u8]) {
        self.split_at_mark(bytes);
        self.count_answer(bytes);
        // A half-typed answer leaves the prompt open. The same prompt on a new line is a new question.
        let is_answered = |prompt: &String| {
            bytes.contains(&b'\n') || last_line(&self.tail).is_none_or(|line| !line.starts_with(prompt))
        };
        if !self.status.quiet || self.prompt_line.as_ref().is_none_or(is_answered) {
            (self.status.quiet, self.silence_checked) = (false, false);
        }
    }

    /// Counts an answer when a newline ends the line of the prompt. If the output moves the cursor before this newline,
    /// the program is redrawing the prompt, and no answer is counted.
    fn count_answer(&mut self, bytes: &[u8]) {
        let Some(mut typed) = self.typed_answer.take() else { return };
        let end = bytes.iter().position(|byte| *byte == b'\n');
        typed.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        let is_typed = typed.len() <= TAIL_BYTES && stays_in_line(&typed);
        match end {
            Some(_) if is_typed => self.status.answers += 1,
            None if is_typed => self.typed_answer = Some(typed),
            _ => {}
        }
    }

    fn split_at_mark(&mut self, bytes: &[u8]) {
        let all = [std::mem::take(&mut self.held), bytes.to_vec()].concat();
        match find_mark(&all, &self.mark) {
            Some(at) => {
                self.store(&all[..at]);
                self.status.ended = true;
            }
            None => {
                let from = all.len() - partial_end(&all, &self.mark);
                self.store(&all[..from]);
                self.held = all[from..].to_vec();
            }
        }
    }

    fn end(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.store(&held);
        self.status.ended = true;
    }

    fn store(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        self.status.bells += self.bells.count(bytes);
        self.status.bytes += bytes.len() as u64;
        if let Some(log) = &mut self.log
            && log.append(bytes).is_err()
        {
            // Stop logging: a full disk must not stop the task.
            self.log = None;
        }
    }
}

fn find_mark(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_mark_is_found_wherever_the_output_is_split() {
        let text =
            [b"\x07a\x07\x1b]0;t\x07b \x1b]7502;agtmux-end;other\x1b\\".to_vec(), end_marker("run"), b"\x07".to_vec()];
        let text = text.concat();
        for cut in 0..=text.len() {
            let mut monitor = OutputMonitor::new(None, "run");
            monitor.push_output(&text[..cut]);
            if !monitor.status.ended {
                monitor.push_output(&text[cut..]);
            }
            let OutputStatus { bells, ended, .. } = monitor.status;
            assert_eq!((bells, ended), (2, true), "cut at {cut}");
        }
    }

    #[test]
    fn a_closed_pipe_ends_the_output_without_a_mark() {
        let mut monitor = OutputMonitor::new(None, "run");
        monitor.push_output(b"abc\x1b]7502;agt");
        monitor.end();
        assert_eq!((monitor.status.bytes, monitor.status.ended), (13, true));
    }

    #[test]
    fn silence_is_checked_sooner_in_an_unfinished_line() {
        let mut monitor = OutputMonitor::new(None, "run");
        assert_eq!(monitor.silence_timeout(), None);
        monitor.push_output(b"line\r\n");
        assert_eq!(monitor.silence_timeout(), Some(PROMPT_SILENCE_AFTER_LINE));
        monitor.push_output(b"Go on? [y/N] ");
        assert_eq!(monitor.silence_timeout(), Some(PROMPT_SILENCE));
        monitor.handle_silence();
        assert!(monitor.status.quiet && monitor.silence_timeout().is_none());
        monitor.push_output(b"\r\n");
        assert!(!monitor.status.quiet && monitor.silence_timeout().is_some());
    }

    #[test]
    fn a_prompt_stays_open_until_the_typed_answer_ends_its_line() {
        let mut monitor = OutputMonitor::new(None, "run");
        monitor.push_output(b"Go on? [y/N] ");
        monitor.handle_silence();
        for typed in [&b"n"[..], b"\x08 \x08", b"yes"] {
            monitor.push_output(typed);
            assert!(monitor.status.quiet && monitor.silence_timeout().is_none(), "{typed:?}");
        }
        monitor.push_output(b"\r\nGo on? [y/N] ");
        assert!(!monitor.status.quiet && monitor.silence_timeout().is_some());
    }

    #[test]
    fn answers_are_counted_and_redraws_are_not() {
        let drawn = b"\x1b[H\x1b[2J\x1b[3Jmenu\r\nSelect an option: ";
        // The second prompt moves the cursor, so its line is unknown.
        for prompt in [&drawn[..], b"\x1b[2J\x1b[5;1HSelect an option: "] {
            let mut monitor = OutputMonitor::new(None, "run");
            monitor.push_output(prompt);
            monitor.handle_silence();
            assert!(monitor.status.quiet && monitor.status.answers == 0);
            for _ in 0..3 {
                monitor.push_output(prompt);
                monitor.handle_silence();
                assert_eq!(monitor.status.answers, 0, "a redraw is not an answer");
            }
            monitor.push_output(b"1");
            let previous = monitor.status;
            monitor.push_output(b"\r\n");
            assert_eq!(monitor.status.answers, 1);
            assert!(needs_status_write(previous, monitor.status));
            monitor.push_output(prompt);
            monitor.handle_silence();
            monitor.push_output(&[b"2\x08 \x0823\r\nmore\r\n", prompt].concat());
            monitor.handle_silence();
            assert_eq!((monitor.status.answers, monitor.status.quiet), (2, true));
        }
    }

    #[test]
    fn pauses_are_reported_only_at_a_possible_prompt() {
        let mut monitor = OutputMonitor::new(None, "run");
        let previous = monitor.status;
        for n in 0..100 {
            monitor.push_output(format!("\r{n} % done").as_bytes());
            monitor.handle_silence();
            assert!(!needs_status_write(previous, monitor.status) && monitor.silence_timeout().is_none());
        }
        monitor.push_output(b"\r\nPassword: ");
        monitor.handle_silence();
        assert!(needs_status_write(previous, monitor.status));
        // A cursor movement makes the last line unknown.
        monitor.push_output(b"\x1b[5;1Hready");
        monitor.handle_silence();
        assert!(monitor.status.quiet);
    }
}
