//! `agtmux task-log SPEC`: what the output of a task is piped to. It keeps the newest of it, counts every bell, and notes when the
//! task has fallen silent at what may be a prompt. It lives and ends with the task, whether a daemon runs or not.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use agtmux_api::task_files::{BoundedLog, OutputStatus, OutputStatusFile, RunFiles, end_marker};
use agtmux_core::output::{BellCounter, last_line, stays_in_line};
use agtmux_core::task::recognize_prompt;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whoever asks something writes nothing for at least so long; for longer, where the line is ended.
const PROMPT_SILENCE: Duration = Duration::from_millis(150);
const PROMPT_SILENCE_AFTER_LINE: Duration = Duration::from_secs(1);
/// As much of the end of the output as a prompt can be in.
const TAIL_BYTES: usize = 4 << 10;

pub(super) fn run(spec: &Path) {
    // However it ends, there is nobody to tell.
    let _ = read_all(&RunFiles::at(spec));
}

fn read_all(files: &RunFiles) -> io::Result<()> {
    // On a machine that is very busy the task may be over, and told, before this begins: then there is still its output to keep.
    let spec = files.read_spec();
    let status = spec.is_ok().then(|| OutputStatusFile::create(&files.output())).transpose()?;
    let spec = spec.or_else(|_| files.read_kept_spec())?;
    let log = BoundedLog::create(&files.log(), spec.log_bytes);
    let mut listener = OutputMonitor::new(log.ok(), &spec.run_id);
    let tell = |now: OutputStatus| status.as_ref().map_or(Ok(()), |status| status.write(now));
    let stdin = io::stdin();
    let mut buffer = vec![0; 64 << 10];
    while !listener.status.ended {
        let told = listener.status;
        match wait_readable(&stdin, listener.silence_timeout())? {
            false => listener.handle_silence(),
            true => match stdin.lock().read(&mut buffer)? {
                0 => listener.end(),
                length => listener.push_output(&buffer[..length]),
            },
        }
        if needs_status_write(told, listener.status) {
            tell(listener.status)?;
        }
    }
    Ok(())
}

fn needs_status_write(before: OutputStatus, now: OutputStatus) -> bool {
    let told = |status: OutputStatus| OutputStatus { bytes: 0, ..status };
    told(before) != told(now)
}

/// Whether something is there to be read, or it was waited for in vain.
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

struct OutputMonitor {
    log: Option<BoundedLog>,
    bells: BellCounter,
    mark: Vec<u8>,
    /// The beginning of what may be the mark.
    held: Vec<u8>,
    status: OutputStatus,
    /// The end of what was written.
    tail: Vec<u8>,
    /// It has been silent since, and that was judged.
    silence_checked: bool,
    /// The line that may be a prompt.
    prompt_line: Option<String>,
    /// What has come since it was silent there, as long as that may be an answer that is typed.
    typed_answer: Option<Vec<u8>>,
}

impl OutputMonitor {
    fn new(log: Option<BoundedLog>, run_id: &str) -> Self {
        let (mark, bells) = (end_marker(run_id), BellCounter::default());
        let (held, tail, status) = (Vec::new(), Vec::new(), OutputStatus::default());
        Self { log, bells, mark, held, status, tail, silence_checked: false, prompt_line: None, typed_answer: None }
    }

    /// How long it has to be silent to be judged; none once it is, or if it has never said anything.
    fn silence_timeout(&self) -> Option<Duration> {
        let quiet = if self.tail.ends_with(b"\n") { PROMPT_SILENCE_AFTER_LINE } else { PROMPT_SILENCE };
        (!self.silence_checked && self.status.bytes > 0).then_some(quiet)
    }

    /// Whoever prints and pauses is looked at only if the last line may ask for something. Where the cursor was moved about only
    /// a look can tell.
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
        // An answer that is being typed is none yet. The same words below it are asked anew.
        let is_answered = |asked: &String| {
            bytes.contains(&b'\n') || last_line(&self.tail).is_none_or(|line| !line.starts_with(asked))
        };
        if !self.status.quiet || self.prompt_line.as_ref().is_none_or(is_answered) {
            (self.status.quiet, self.silence_checked) = (false, false);
        }
    }

    /// An answer ends the line at which it was silent. Whoever draws the same once more moves the cursor there first.
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
                let from = all.len() - partial_mark_len(&all, &self.mark);
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
            // A full disk must not stop the task: from here on nothing is kept.
            self.log = None;
        }
    }
}

fn find_mark(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// How much of the end of these bytes could be the beginning of the mark.
fn partial_mark_len(bytes: &[u8], mark: &[u8]) -> usize {
    (1..mark.len().min(bytes.len() + 1)).rev().find(|length| bytes.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_at_its_own_mark_wherever_that_is_cut() {
        let text =
            [b"\x07a\x07\x1b]0;t\x07b \x1b]7502;agtmux-end;other\x1b\\".to_vec(), end_marker("run"), b"\x07".to_vec()];
        let text = text.concat();
        for cut in 0..=text.len() {
            let mut listener = OutputMonitor::new(None, "run");
            listener.push_output(&text[..cut]);
            if !listener.status.ended {
                listener.push_output(&text[cut..]);
            }
            let OutputStatus { bells, ended, .. } = listener.status;
            assert_eq!((bells, ended), (2, true), "cut at {cut}");
        }
    }

    #[test]
    fn an_end_without_a_mark_is_an_end() {
        let mut listener = OutputMonitor::new(None, "run");
        listener.push_output(b"abc\x1b]7502;agt");
        listener.end();
        assert_eq!((listener.status.bytes, listener.status.ended), (13, true));
    }

    #[test]
    fn silence_in_an_open_line_is_told_sooner() {
        let mut listener = OutputMonitor::new(None, "run");
        assert_eq!(listener.silence_timeout(), None);
        listener.push_output(b"line\r\n");
        assert_eq!(listener.silence_timeout(), Some(PROMPT_SILENCE_AFTER_LINE));
        listener.push_output(b"Go on? [y/N] ");
        assert_eq!(listener.silence_timeout(), Some(PROMPT_SILENCE));
        listener.handle_silence();
        assert!(listener.status.quiet && listener.silence_timeout().is_none());
        listener.push_output(b"\r\n");
        assert!(!listener.status.quiet && listener.silence_timeout().is_some());
    }

    #[test]
    fn an_answer_that_is_typed_ends_the_question_with_its_line() {
        let mut listener = OutputMonitor::new(None, "run");
        listener.push_output(b"Go on? [y/N] ");
        listener.handle_silence();
        for typed in [&b"n"[..], b"\x08 \x08", b"yes"] {
            listener.push_output(typed);
            assert!(listener.status.quiet && listener.silence_timeout().is_none(), "{typed:?}");
        }
        listener.push_output(b"\r\nGo on? [y/N] ");
        assert!(!listener.status.quiet && listener.silence_timeout().is_some());
    }

    #[test]
    fn an_answer_is_counted_and_what_is_drawn_once_more_is_not() {
        let drawn = b"\x1b[H\x1b[2J\x1b[3Jmenu\r\nSelect an option: ";
        // Where the cursor was moved about in the line itself only a look can tell what it says.
        for prompt in [&drawn[..], b"\x1b[2J\x1b[5;1HSelect an option: "] {
            let mut listener = OutputMonitor::new(None, "run");
            listener.push_output(prompt);
            listener.handle_silence();
            assert!(listener.status.quiet && listener.status.answers == 0);
            for _ in 0..3 {
                listener.push_output(prompt);
                listener.handle_silence();
                assert_eq!(listener.status.answers, 0, "nobody has answered");
            }
            listener.push_output(b"1");
            let told = listener.status;
            listener.push_output(b"\r\n");
            assert_eq!(listener.status.answers, 1);
            assert!(needs_status_write(told, listener.status));
            listener.push_output(prompt);
            listener.handle_silence();
            listener.push_output(&[b"2\x08 \x0823\r\nmore\r\n", prompt].concat());
            listener.handle_silence();
            assert_eq!((listener.status.answers, listener.status.quiet), (2, true));
        }
    }

    #[test]
    fn what_prints_and_pauses_is_worth_no_look_unless_it_may_ask() {
        let mut listener = OutputMonitor::new(None, "run");
        let told = listener.status;
        for n in 0..100 {
            listener.push_output(format!("\r{n} % done").as_bytes());
            listener.handle_silence();
            assert!(!needs_status_write(told, listener.status) && listener.silence_timeout().is_none());
        }
        listener.push_output(b"\r\nPassword: ");
        listener.handle_silence();
        assert!(needs_status_write(told, listener.status));
        // Only a terminal knows where this leaves the cursor.
        listener.push_output(b"\x1b[5;1Hready");
        listener.handle_silence();
        assert!(listener.status.quiet);
    }
}
