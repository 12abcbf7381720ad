//! Reads the files of a run and reports what has changed. A change is reported again until it is stored.

use std::path::Path;
use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, OutputStatus, ReaderStatus, RunFiles, read_log};
use agtmux_core::ids::WindowId;
use agtmux_core::task::{ExitSignal, RunId, TaskExit, TaskInput};

use super::Tasks;
use crate::store::TaskSessionKey;

/// An event shows this many of the last lines of the log. They are taken from the last `TAIL_BYTES` bytes of the log.
const PREVIEW_LINES: usize = 20;
const TAIL_BYTES: u64 = 16 << 10;
/// After the prompt of a task was answered, agtmux waits this long before it checks the task's screen again.
const ANSWER_DELAY: Duration = Duration::from_millis(250);
/// After a task has ended, agtmux checks at this interval whether the process that logs its output has died. agtmux
/// must poll, because no file changes when that process dies.
pub(super) const READER_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// If the log has not grown for this long after the task ended, agtmux stops waiting for the end mark in the output.
/// The supervisor was probably killed before it wrote the mark.
const READER_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Before agtmux closes a window, it waits at most this long until the task's output is logged.
const READER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait for more output if the supervisor reported that it could not write an end mark.
const UNMARKED_WAIT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Reads the files of one unfinished run.
pub(super) struct RunReader {
    run: RunId,
    files: RunFiles,
    /// How many bells of the task have been reported in stored events.
    bells: u64,
    /// Set if the task has fallen silent and may be showing a prompt: the number of bytes that it had written by then.
    pub(super) quiet_at_bytes: Option<u64>,
    /// Set if the task has ended but not all of its output has been read. The end is published when all output is read.
    unread_output: Option<UnreadOutput>,
    /// When to check the screen again, because the prompt of the task may have been answered.
    pub(super) recheck_at: Option<Instant>,
}

/// The size of the log of an ended task, while more output may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UnreadOutput {
    /// When the log last grew.
    since: Instant,
    log_bytes: u64,
}

/// The changes that one read of a run's files has found.
#[derive(Debug, Default)]
pub(super) struct RunChanges {
    pub(super) inputs: Vec<TaskInput>,
    /// Whether agtmux should check the task's screen for a prompt.
    pub(super) check_screen: bool,
    bells: u64,
    quiet_at_bytes: Option<u64>,
    is_over: bool,
}

impl Tasks {
    /// Waits until all output of ended runs is logged. Considers only runs in windows for which `affects` returns true.
    pub(super) async fn wait_for_readers(&self, key: &TaskSessionKey, affects: impl Fn(WindowId) -> bool) {
        let session = self.session(key);
        let until = Instant::now() + READER_WAIT;
        for run in session.runs.values().filter(|run| affects(run.window)) {
            let files = self.run_files(&run.run_id);
            while awaits_reader(&files) && Instant::now() < until {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

/// Whether the run has ended but the process that logs its output has not reached the end mark.
fn awaits_reader(files: &RunFiles) -> bool {
    files.read_exit().is_some_and(|exit| !exit.unmarked) && files.reader_status() != ReaderStatus::Finished
}

/// The recorded exit of a run whose window runs another task now.
pub(super) fn replaced_exit(run: &RunId, files: &RunFiles) -> Option<TaskInput> {
    let exit = files.read_exit()?;
    let bells = files.read_output().map_or(0, |status| status.bells);
    Some(TaskInput::ExitConfirmed { run: run.clone(), exit: recorded_exit(exit), bells, output: log_tail(files) })
}

impl RunReader {
    pub(super) fn new(run: &RunId, dir: &Path) -> Self {
        Self {
            run: run.clone(),
            files: RunFiles::in_dir(dir, run.as_str()),
            bells: 0,
            quiet_at_bytes: None,
            unread_output: None,
            recheck_at: None,
        }
    }

    pub(super) fn has_unread_output(&self) -> bool {
        self.unread_output.is_some()
    }

    /// Reads the files and returns the changes. With `at_once`, the end of the run is reported even if not all output
    /// is read.
    pub(super) fn read_changes(&mut self, now: Instant, at_once: bool, waits_for_input: bool) -> RunChanges {
        // Read the exit record before the output. In the other order, output from just before the exit could be missed.
        let exit = self.files.read_exit();
        let is_read = exit.is_some_and(|exit| at_once || self.is_output_complete(exit, now));
        let status = self.files.read_output();
        let bells = status.map_or(0, |status| status.bells).max(self.bells);
        let mut changes = RunChanges { bells, quiet_at_bytes: self.quiet_at_bytes, ..RunChanges::default() };
        let run = self.run.clone();
        match exit {
            Some(exit) if is_read => {
                let (output, hung_up, exit) = (log_tail(&self.files), exit.hung_up, recorded_exit(exit));
                // After a hangup only a check in tmux shows whether the window was closed.
                changes.inputs.push(match hung_up {
                    true => TaskInput::Exited { run, exit, bells, output },
                    false => TaskInput::ExitConfirmed { run, exit, bells, output },
                });
                changes.is_over = true;
            }
            // Not all output is read yet. New bells are reported together with the end.
            Some(_) => changes.bells = self.bells,
            None => {
                if bells > self.bells {
                    changes.inputs.push(TaskInput::BellRang { run, bells, output: log_tail(&self.files) });
                }
                self.note_silence(status, now, waits_for_input, &mut changes);
            }
        }
        changes
    }

    /// Whether the log is complete, so that no more output of the task will follow.
    fn is_output_complete(&mut self, exit: ExitRecord, now: Instant) -> bool {
        let log = self.files.log_size();
        if self.unread_output.is_none_or(|unread| unread.log_bytes != log) {
            self.unread_output = Some(UnreadOutput { since: now, log_bytes: log });
        }
        let wait = if exit.unmarked { UNMARKED_WAIT } else { READER_STALL_TIMEOUT };
        let is_stalled = self.unread_output.is_some_and(|unread| now >= unread.since + wait);
        is_stalled || self.files.reader_status() == ReaderStatus::Finished
    }

    /// Records that the task has fallen silent and may be showing a prompt, or that it writes again.
    fn note_silence(
        &mut self,
        status: Option<OutputStatus>,
        now: Instant,
        waits_for_input: bool,
        changes: &mut RunChanges,
    ) {
        if let Some(status) = status {
            changes.quiet_at_bytes = status.quiet.then_some(status.bytes);
            changes.check_screen = changes.quiet_at_bytes != self.quiet_at_bytes && (status.quiet || waits_for_input);
        }
        changes.check_screen |= self.recheck_at.take_if(|at| *at <= now).is_some();
    }

    /// Marks the changes as stored. `waits_for_input` says whether a prompt is open after these changes.
    pub(super) fn mark_stored(&mut self, changes: RunChanges, waits_for_input: bool, now: Instant) {
        if changes.quiet_at_bytes.is_none() && self.quiet_at_bytes.is_some() && waits_for_input {
            self.recheck_at = Some(now + ANSWER_DELAY);
        }
        (self.bells, self.quiet_at_bytes) = (changes.bells, changes.quiet_at_bytes);
        if changes.is_over {
            self.unread_output = None;
        }
    }
}

/// The last lines of the log.
pub(super) fn log_tail(files: &RunFiles) -> String {
    let bytes = read_log(&files.log(), TAIL_BYTES).unwrap_or_default();
    let lines = agtmux_core::output::lines(&bytes);
    let from = lines.len().saturating_sub(PREVIEW_LINES);
    lines[from..].join("\n")
}

fn recorded_exit(record: ExitRecord) -> TaskExit {
    let signal = record.signal.and_then(|number| u8::try_from(number).ok()).map(ExitSignal);
    TaskExit { code: record.code.filter(|_| signal.is_none()), signal }
}

#[cfg(test)]
mod tests {
    use agtmux_api::task_files::{BoundedLog, OutputStatusFile};

    use super::*;

    fn run(dir: &Path) -> RunReader {
        std::fs::create_dir_all(dir.join("logs")).expect("created");
        RunReader::new(&"r1".parse().expect("an id"), dir)
    }

    fn ended(run: &RunReader, unmarked: bool) {
        run.files.write_exit(&ExitRecord { code: Some(3), signal: None, hung_up: false, unmarked }).expect("written");
    }

    #[test]
    fn changes_are_reported_again_until_they_are_stored() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        status.write(OutputStatus { bells: 2, ..OutputStatus::default() }).expect("written");
        let rang = |changes: &RunChanges| matches!(changes.inputs[..], [TaskInput::BellRang { bells: 2, .. }]);
        assert!(rang(&run.read_changes(now, false, false)));
        let again = run.read_changes(now, false, false);
        assert!(rang(&again), "the first report was not stored");
        run.mark_stored(again, false, now);
        assert!(run.read_changes(now, false, false).inputs.is_empty());
        status.write(OutputStatus { bells: 3, ended: true, ..OutputStatus::default() }).expect("written");
        ended(&run, false);
        for _ in 0..2 {
            let changes = run.read_changes(now, false, false);
            assert!(matches!(changes.inputs[..], [TaskInput::ExitConfirmed { bells: 3, .. }]), "{changes:?}");
        }
    }

    #[test]
    fn an_end_is_reported_when_its_reader_stops() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, mut now) = (run(dir.path()), Instant::now());
        let mut log = BoundedLog::create(&run.files.log(), 1 << 20).expect("created");
        ended(&run, false);
        assert!(run.read_changes(now, false, false).inputs.is_empty(), "the reader has not started");
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        for _ in 0..10 {
            now += READER_STALL_TIMEOUT / 2;
            log.append(b"more").expect("written");
            assert!(run.read_changes(now, false, false).inputs.is_empty(), "the reader makes progress");
        }
        assert!(run.read_changes(now + READER_STALL_TIMEOUT - POLL_INTERVAL, false, false).inputs.is_empty());
        assert_eq!(
            run.read_changes(now + READER_STALL_TIMEOUT, false, false).inputs.len(),
            1,
            "the reader has stalled"
        );
        assert_eq!(run.read_changes(now, true, false).inputs.len(), 1, "closing the window does not wait");
        drop(status);
        assert_eq!(run.read_changes(now, false, false).inputs.len(), 1, "the reader has exited");
    }

    #[test]
    fn an_end_without_a_mark_is_reported_after_a_short_wait() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let _status = OutputStatusFile::create(&run.files.output()).expect("created");
        ended(&run, true);
        assert!(run.read_changes(now, false, false).inputs.is_empty());
        assert_eq!(run.read_changes(now + UNMARKED_WAIT, false, false).inputs.len(), 1);
    }

    #[test]
    fn two_prompts_between_checks_are_both_checked() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        let mut checks_screen = |quiet, bytes| {
            status.write(OutputStatus { quiet, bytes, ..OutputStatus::default() }).expect("written");
            let changes = run.read_changes(now, false, false);
            let check_screen = changes.check_screen;
            run.mark_stored(changes, false, now);
            check_screen
        };
        assert!(!checks_screen(false, 5));
        assert!(checks_screen(true, 5));
        assert!(!checks_screen(true, 5), "already checked");
        assert!(checks_screen(true, 9), "another prompt");
        assert!(!checks_screen(false, 12), "the task was never in the asking state");
    }

    #[test]
    fn output_that_is_stored_with_a_new_prompt_causes_another_check() {
        for is_open in [false, true] {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let (mut run, now) = (run(dir.path()), Instant::now());
            let status = OutputStatusFile::create(&run.files.output()).expect("created");
            for (quiet, is_open) in [(true, false), (false, is_open)] {
                status.write(OutputStatus { quiet, bytes: 5, ..OutputStatus::default() }).expect("written");
                let changes = run.read_changes(now, false, false);
                run.mark_stored(changes, is_open, now);
            }
            assert_eq!(run.recheck_at, is_open.then_some(now + ANSWER_DELAY), "the prompt may have been answered");
            assert_eq!(run.read_changes(now + ANSWER_DELAY, false, is_open).check_screen, is_open);
        }
    }
}
