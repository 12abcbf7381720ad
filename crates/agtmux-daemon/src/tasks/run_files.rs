//! What the files of one run tell that was not told yet. Nothing counts as told before it is stored.

use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, OutputStatus, ReaderStatus, RunFiles};
use agtmux_core::fleet::PaneTaskStatus;
use agtmux_core::ids::WindowId;
use agtmux_core::task::{ExitSignal, TaskExit, TaskInput};

use super::follow::log_tail;
use super::task_registry::{TrackedRun, UnreadOutput};
use super::{TaskSessionKey, Tasks};

/// A task that was answered has gone on by then.
const ANSWER_DELAY: Duration = Duration::from_millis(250);
/// While an end waits for a reader that lives: it may die, and nothing tells of that.
pub(super) const READER_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A reader that has read nothing for so long, and has not come to the end, will not: whoever was to mark that was killed.
const READER_STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Whoever is about to take a window away waits no longer than this.
const READER_WAIT: Duration = Duration::from_secs(10);
/// Where the end could not be marked, so much longer for what is still on its way.
const UNMARKED_WAIT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// What is new of one run.
#[derive(Debug, Default)]
pub(super) struct RunChanges {
    pub(super) inputs: Vec<TaskInput>,
    /// Somebody should look at its screen.
    pub(super) check_screen: bool,
    bells: u64,
    quiet_at_bytes: Option<u64>,
    is_over: bool,
}

impl Tasks {
    /// Waits until what was written by those that have ended is read, of the windows of which `concerns` is true. Others have the book
    /// meanwhile.
    pub(super) async fn wait_for_readers(&self, place: &TaskSessionKey, concerns: impl Fn(WindowId) -> bool) {
        let unread = |run: &&TrackedRun| concerns(run.row.window) && awaits_reader(&run.files);
        let ended: Vec<RunFiles> = {
            let mut book = self.0.registry.lock().await;
            book.session(place).runs.values().filter(unread).map(|run| run.files.clone()).collect()
        };
        let until = Instant::now() + READER_WAIT;
        for files in ended {
            while awaits_reader(&files) && Instant::now() < until {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
}

/// It has ended, and its reader is on its way to the end.
fn awaits_reader(files: &RunFiles) -> bool {
    files.read_exit().is_some_and(|exit| !exit.unmarked) && files.reader_status() != ReaderStatus::Finished
}

impl TrackedRun {
    /// How it ended, if it did so by itself and that was not told.
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

    /// With `at_once` an end is told though its output was not read to the end.
    pub(super) fn read_changes(&mut self, now: Instant, at_once: bool) -> RunChanges {
        // In this order: what is read of the output after the end is all of it.
        let exit = self.files.read_exit();
        let is_read = exit.is_some_and(|exit| at_once || self.is_output_complete(exit, now));
        let status = self.files.read_output();
        let known = OutputStatus { bells: self.bells, ..Default::default() };
        let bells = status.unwrap_or(known).bells.max(self.bells);
        let mut news = RunChanges { bells, quiet_at_bytes: self.quiet_at_bytes, ..RunChanges::default() };
        let run = self.row.run_id.clone();
        match exit {
            Some(exit) if is_read => {
                let (output, hung_up, exit) = (log_tail(&self.files), exit.hung_up, recorded_exit(exit));
                // Whether its window was taken away from it is seen by a look.
                news.inputs.push(match hung_up {
                    true => TaskInput::Exited { run, exit, bells, output },
                    false => TaskInput::ExitConfirmed { run, exit, bells, output },
                });
                news.is_over = true;
            }
            // Its bells are told with it.
            Some(_) => news.bells = self.bells,
            None => {
                if bells > self.bells {
                    news.inputs.push(TaskInput::BellRang { run, bells, output: log_tail(&self.files) });
                }
                self.note_silence(status, now, &mut news);
            }
        }
        news
    }

    /// Whether all that it wrote is in the log, as far as it will ever be.
    fn is_output_complete(&mut self, exit: ExitRecord, now: Instant) -> bool {
        let log = self.files.log_size();
        if self.unread_output.is_none_or(|unread| unread.log_bytes != log) {
            self.unread_output = Some(UnreadOutput { since: now, log_bytes: log });
        }
        let patience = if exit.unmarked { UNMARKED_WAIT } else { READER_STALL_TIMEOUT };
        let is_stalled = self.unread_output.is_some_and(|unread| now >= unread.since + patience);
        is_stalled || self.files.reader_status() == ReaderStatus::Finished
    }

    /// It may ask something, or no longer do so.
    fn note_silence(&mut self, status: Option<OutputStatus>, now: Instant, news: &mut RunChanges) {
        if let Some(status) = status {
            news.quiet_at_bytes = status.quiet.then_some(status.bytes);
            news.check_screen = news.quiet_at_bytes != self.quiet_at_bytes && (status.quiet || self.is_asking());
        }
        news.check_screen |= self.recheck_at.take_if(|at| *at <= now).is_some();
    }

    fn is_asking(&self) -> bool {
        matches!(self.state, PaneTaskStatus::WaitingInput(_))
    }

    /// What came of the news is stored.
    pub(super) fn mark_stored(&mut self, news: RunChanges, now: Instant) {
        if news.quiet_at_bytes.is_none() && self.quiet_at_bytes.is_some() && self.is_asking() {
            self.recheck_at = Some(now + ANSWER_DELAY);
        }
        (self.bells, self.quiet_at_bytes) = (news.bells, news.quiet_at_bytes);
        if news.is_over {
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
        std::fs::create_dir_all(dir.join("logs")).expect("made");
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
    fn nothing_counts_as_told_before_it_is_stored() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("made");
        status.write(OutputStatus { bells: 2, ..OutputStatus::default() }).expect("written");
        let rang = |news: &RunChanges| matches!(news.inputs[..], [TaskInput::BellRang { bells: 2, .. }]);
        assert!(rang(&run.read_changes(now, false)));
        let again = run.read_changes(now, false);
        assert!(rang(&again), "the first was not stored");
        run.mark_stored(again, now);
        assert!(run.read_changes(now, false).inputs.is_empty());
        status.write(OutputStatus { bells: 3, ended: true, ..OutputStatus::default() }).expect("written");
        ended(&run, false);
        for _ in 0..2 {
            let news = run.read_changes(now, false);
            assert!(matches!(news.inputs[..], [TaskInput::ExitConfirmed { bells: 3, .. }]), "{news:?}");
        }
    }

    #[test]
    fn an_end_waits_for_its_reader_as_long_as_that_reads() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, mut now) = (run(dir.path()), Instant::now());
        let mut log = BoundedLog::create(&run.files.log(), 1 << 20).expect("made");
        ended(&run, false);
        assert!(run.read_changes(now, false).inputs.is_empty(), "its reader has not begun");
        let status = OutputStatusFile::create(&run.files.output()).expect("made");
        for _ in 0..10 {
            now += READER_STALL_TIMEOUT / 2;
            log.append(b"more").expect("written");
            assert!(run.read_changes(now, false).inputs.is_empty(), "it reads");
        }
        assert!(run.read_changes(now + READER_STALL_TIMEOUT - POLL_INTERVAL, false).inputs.is_empty());
        assert_eq!(
            run.read_changes(now + READER_STALL_TIMEOUT, false).inputs.len(),
            1,
            "nobody marks the end any more"
        );
        assert_eq!(run.read_changes(now, true).inputs.len(), 1, "whoever takes its window away waits no longer");
        drop(status);
        assert_eq!(run.read_changes(now, false).inputs.len(), 1, "there is no reader any more");
    }

    #[test]
    fn an_end_that_could_not_be_marked_is_not_waited_for_long() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let _status = OutputStatusFile::create(&run.files.output()).expect("made");
        ended(&run, true);
        assert!(run.read_changes(now, false).inputs.is_empty());
        assert_eq!(run.read_changes(now + UNMARKED_WAIT, false).inputs.len(), 1);
    }

    #[test]
    fn two_prompts_between_looks_are_two() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = OutputStatusFile::create(&run.files.output()).expect("made");
        let mut look = |quiet, bytes| {
            status.write(OutputStatus { quiet, bytes, ..OutputStatus::default() }).expect("written");
            let news = run.read_changes(now, false);
            let look = news.check_screen;
            run.mark_stored(news, now);
            look
        };
        assert!(!look(false, 5));
        assert!(look(true, 5));
        assert!(!look(true, 5), "it was looked at");
        assert!(look(true, 9), "another one");
        assert!(!look(false, 12), "it was never told to ask");
    }
}
