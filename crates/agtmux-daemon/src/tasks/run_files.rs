//! Reads the changes in the files of a run. A change is found again until it is stored.

use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, OutputStatus, ReaderStatus, RunFiles};
use agtmux_core::fleet::PaneTaskStatus;
use agtmux_core::ids::WindowId;
use agtmux_core::task::{ExitSignal, TaskExit, TaskInput};

use super::follow::log_tail;
use super::task_registry::{TrackedRun, UnreadOutput};
use super::{TaskSessionKey, Tasks};

/// How long after an answer the screen of the task is checked.
const ANSWER_DELAY: Duration = Duration::from_millis(250);
/// How often to check a reader after the task ended. No event announces that a reader died.
pub(super) const READER_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A reader that has read nothing for this long will not see an end mark: the supervisor was killed before writing it.
const READER_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest wait for readers before a window is closed.
const READER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait for the rest of the output if the supervisor could not write an end mark.
const UNMARKED_WAIT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The changes of one run.
#[derive(Debug, Default)]
pub(super) struct RunChanges {
    pub(super) inputs: Vec<TaskInput>,
    /// The task's screen should be checked for a prompt.
    pub(super) check_screen: bool,
    bells: u64,
    quiet_at_bytes: Option<u64>,
    is_over: bool,
}

impl Tasks {
    /// Waits until the output of ended runs in the windows accepted by `concerns` is read. Does not hold the registry
    /// lock meanwhile.
    pub(super) async fn wait_for_readers(&self, key: &TaskSessionKey, affects: impl Fn(WindowId) -> bool) {
        let unread = |run: &&TrackedRun| affects(run.row.window) && awaits_reader(&run.files);
        let ended: Vec<RunFiles> = {
            let mut registry = self.0.registry.lock().await;
            registry.session(key).runs.values().filter(unread).map(|run| run.files.clone()).collect()
        };
        let until = Instant::now() + READER_WAIT;
        for files in ended {
            while awaits_reader(&files) && Instant::now() < until {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

/// Whether the run has ended and its reader has not reached the end mark.
fn awaits_reader(files: &RunFiles) -> bool {
    files.read_exit().is_some_and(|exit| !exit.unmarked) && files.reader_status() != ReaderStatus::Finished
}

impl TrackedRun {
    /// The exit of a run that ended by itself, if it is not published yet.
    pub(super) fn unreported_exit(&mut self) -> Option<TaskInput> {
        let exit = self.files.read_exit().filter(|exit| !exit.hung_up)?;
        let bells = self.files.read_output().map_or(0, |status| status.bells).max(self.bells);
        Some(TaskInput::ExitConfirmed {
            run: self.row.run_id.clone(),
            exit: recorded_exit(exit),
            bells,
            output: log_tail(&self.files),
        })
    }

    /// Reads the files and returns the changes. With `at_once`, reports an end even if the output is not read
    /// completely.
    pub(super) fn read_changes(&mut self, now: Instant, at_once: bool) -> RunChanges {
        // Read the exit record first: output that is read after it is complete.
        let exit = self.files.read_exit();
        let is_read = exit.is_some_and(|exit| at_once || self.is_output_complete(exit, now));
        let status = self.files.read_output();
        let known = OutputStatus { bells: self.bells, ..Default::default() };
        let bells = status.unwrap_or(known).bells.max(self.bells);
        let mut changes = RunChanges { bells, quiet_at_bytes: self.quiet_at_bytes, ..RunChanges::default() };
        let run = self.row.run_id.clone();
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
            // Bells are reported together with the end.
            Some(_) => changes.bells = self.bells,
            None => {
                if bells > self.bells {
                    changes.inputs.push(TaskInput::BellRang { run, bells, output: log_tail(&self.files) });
                }
                self.note_silence(status, now, &mut changes);
            }
        }
        changes
    }

    /// Whether the log contains all output that it will ever contain.
    fn is_output_complete(&mut self, exit: ExitRecord, now: Instant) -> bool {
        let log = self.files.log_size();
        if self.unread_output.is_none_or(|unread| unread.log_bytes != log) {
            self.unread_output = Some(UnreadOutput { since: now, log_bytes: log });
        }
        let wait = if exit.unmarked { UNMARKED_WAIT } else { READER_STALL_TIMEOUT };
        let is_stalled = self.unread_output.is_some_and(|unread| now >= unread.since + wait);
        is_stalled || self.files.reader_status() == ReaderStatus::Finished
    }

    /// Notes that the task fell silent at a possible prompt, or writes again.
    fn note_silence(&mut self, status: Option<OutputStatus>, now: Instant, changes: &mut RunChanges) {
        if let Some(status) = status {
            changes.quiet_at_bytes = status.quiet.then_some(status.bytes);
            changes.check_screen = changes.quiet_at_bytes != self.quiet_at_bytes && (status.quiet || self.is_asking());
        }
        changes.check_screen |= self.recheck_at.take_if(|at| *at <= now).is_some();
    }

    fn is_asking(&self) -> bool {
        matches!(self.state, PaneTaskStatus::WaitingInput(_))
    }

    /// Marks the changes as stored.
    pub(super) fn mark_stored(&mut self, changes: RunChanges, now: Instant) {
        if changes.quiet_at_bytes.is_none() && self.quiet_at_bytes.is_some() && self.is_asking() {
            self.recheck_at = Some(now + ANSWER_DELAY);
        }
        (self.bells, self.quiet_at_bytes) = (changes.bells, changes.quiet_at_bytes);
        if changes.is_over {
            self.unread_output = None;
        }
    }
}

fn recorded_exit(record: ExitRecord) -> TaskExit {
    let signal = record.signal.and_then(|number| u8::try_from(number).ok()).map(ExitSignal);
    TaskExit { code: record.code.filter(|_| signal.is_none()), signal }
}

#[cfg(test)]
mod tests {
    use agtmux_api::task_files::{BoundedLog, OutputStatusFile};
    use agtmux_core::ids::{Generation, PaneId, ProcessRef};
    use jiff::Timestamp;

    use super::*;
    use crate::store::TaskRunRow;

    fn run(dir: &std::path::Path) -> TrackedRun {
        std::fs::create_dir_all(dir.join("logs")).expect("created");
        let row = TaskRunRow {
            run_id: "r1".parse().expect("an id"),
            socket: "/s".into(),
            session: "pi-x-1".into(),
            task: "t".into(),
            generation: Generation { pid: 1, start_time: 1 },
            window: WindowId(1),
            pane: PaneId(1),
            process: ProcessRef { pid: 2, start: 3 },
            launched_at: Timestamp::UNIX_EPOCH,
            ended: false,
        };
        TrackedRun::new(row, dir)
    }

    fn ended(run: &TrackedRun, unmarked: bool) {
        run.files.write_exit(&ExitRecord { code: Some(3), signal: None, hung_up: false, unmarked }).expect("written");
    }

    #[test]
    fn changes_are_reported_again_until_they_are_stored() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        status.write(OutputStatus { bells: 2, ..OutputStatus::default() }).expect("written");
        let rang = |changes: &RunChanges| matches!(changes.inputs[..], [TaskInput::BellRang { bells: 2, .. }]);
        assert!(rang(&run.read_changes(now, false)));
        let again = run.read_changes(now, false);
        assert!(rang(&again), "the first report was not stored");
        run.mark_stored(again, now);
        assert!(run.read_changes(now, false).inputs.is_empty());
        status.write(OutputStatus { bells: 3, ended: true, ..OutputStatus::default() }).expect("written");
        ended(&run, false);
        for _ in 0..2 {
            let changes = run.read_changes(now, false);
            assert!(matches!(changes.inputs[..], [TaskInput::ExitConfirmed { bells: 3, .. }]), "{changes:?}");
        }
    }

    #[test]
    fn an_end_is_reported_when_its_reader_stops() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, mut now) = (run(dir.path()), Instant::now());
        let mut log = BoundedLog::create(&run.files.log(), 1 << 20).expect("created");
        ended(&run, false);
        assert!(run.read_changes(now, false).inputs.is_empty(), "the reader has not started");
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        for _ in 0..10 {
            now += READER_STALL_TIMEOUT / 2;
            log.append(b"more").expect("written");
            assert!(run.read_changes(now, false).inputs.is_empty(), "the reader makes progress");
        }
        assert!(run.read_changes(now + READER_STALL_TIMEOUT - POLL_INTERVAL, false).inputs.is_empty());
        assert_eq!(run.read_changes(now + READER_STALL_TIMEOUT, false).inputs.len(), 1, "the reader has stalled");
        assert_eq!(run.read_changes(now, true).inputs.len(), 1, "closing the window does not wait");
        drop(status);
        assert_eq!(run.read_changes(now, false).inputs.len(), 1, "the reader has exited");
    }

    #[test]
    fn an_end_without_a_mark_is_reported_after_a_short_wait() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let _status = OutputStatusFile::create(&run.files.output()).expect("created");
        ended(&run, true);
        assert!(run.read_changes(now, false).inputs.is_empty());
        assert_eq!(run.read_changes(now + UNMARKED_WAIT, false).inputs.len(), 1);
    }

    #[test]
    fn two_prompts_between_checks_are_both_checked() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("created");
        let mut look = |quiet, bytes| {
            status.write(OutputStatus { quiet, bytes, ..OutputStatus::default() }).expect("written");
            let changes = run.read_changes(now, false);
            let look = changes.check_screen;
            run.mark_stored(changes, now);
            look
        };
        assert!(!look(false, 5));
        assert!(look(true, 5));
        assert!(!look(true, 5), "already checked");
        assert!(look(true, 9), "another prompt");
        assert!(!look(false, 12), "the task was never in the asking state");
    }
}
