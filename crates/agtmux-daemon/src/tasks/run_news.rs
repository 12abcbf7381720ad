//! What the files of one run tell that was not told yet. Nothing counts as told before it is stored.

use std::time::{Duration, Instant};

use agtmux_api::task_files::{ExitRecord, OutputStatus, Reading, RunFiles};
use agtmux_core::fleet::TaskStand;
use agtmux_core::ids::WindowId;
use agtmux_core::task::{Exit, Signal, TaskInput};

use super::book::{Run, Unread};
use super::follow::tail;
use super::{Place, Tasks};

/// A task that was answered has gone on by then.
const ANSWERED: Duration = Duration::from_millis(250);
/// While an end waits for a reader that lives: it may die, and nothing tells of that.
pub(super) const LOOK_AGAIN_AT_LOG: Duration = Duration::from_millis(100);
/// A reader that has read nothing for so long, and has not come to the end, will not: whoever was to mark that was killed.
const STALLED: Duration = Duration::from_secs(30);
/// Whoever is about to take a window away waits no longer than this.
const IMPATIENT: Duration = Duration::from_secs(10);
/// Where the end could not be marked, so much longer for what is still on its way.
const UNMARKED: Duration = Duration::from_millis(500);
const A_MOMENT: Duration = Duration::from_millis(2);

/// What is new of one run.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) inputs: Vec<TaskInput>,
    /// Somebody should look at its screen.
    pub(super) look: bool,
    bells: u64,
    quiet: Option<u64>,
    is_over: bool,
}

impl Tasks {
    /// Waits until what was written by those that have ended is read, of the windows of which `concerns` is true. Others have the book
    /// meanwhile.
    pub(super) async fn await_readers(&self, place: &Place, concerns: impl Fn(WindowId) -> bool) {
        let unread = |run: &&Run| concerns(run.row.window) && is_unread(&run.files);
        let ended: Vec<RunFiles> = {
            let mut book = self.0.book.lock().await;
            book.session(place).runs.values().filter(unread).map(|run| run.files.clone()).collect()
        };
        let until = Instant::now() + IMPATIENT;
        for files in ended {
            while is_unread(&files) && Instant::now() < until {
                tokio::time::sleep(A_MOMENT).await;
            }
        }
    }
}

/// It has ended, and its reader is on its way to the end.
fn is_unread(files: &RunFiles) -> bool {
    files.read_exit().is_some_and(|exit| !exit.unmarked) && files.reading() != Reading::Over
}

impl Run {
    /// How it ended, if it did so by itself and that was not told.
    pub(super) fn last_word(&mut self) -> Option<TaskInput> {
        let exit = self.files.read_exit().filter(|exit| !exit.hung_up)?;
        let bells = self.files.read_output().map_or(0, |status| status.bells).max(self.bells);
        Some(TaskInput::Finished {
            run: self.row.run_id.clone(),
            exit: exit_of(exit),
            bells,
            output: tail(&self.files),
        })
    }

    /// With `at_once` an end is told though its output was not read to the end.
    pub(super) fn news(&mut self, now: Instant, at_once: bool) -> News {
        // In this order: what is read of the output after the end is all of it.
        let exit = self.files.read_exit();
        let is_read = exit.is_some_and(|exit| at_once || self.is_read(exit, now));
        let status = self.files.read_output();
        let known = OutputStatus { bells: self.bells, ..Default::default() };
        let bells = status.unwrap_or(known).bells.max(self.bells);
        let mut news = News { bells, quiet: self.quiet, ..News::default() };
        let run = self.row.run_id.clone();
        match exit {
            Some(exit) if is_read => {
                let (output, hung_up, exit) = (tail(&self.files), exit.hung_up, exit_of(exit));
                // Whether its window was taken away from it is seen by a look.
                news.inputs.push(match hung_up {
                    true => TaskInput::Exited { run, exit, bells, output },
                    false => TaskInput::Finished { run, exit, bells, output },
                });
                news.is_over = true;
            }
            // Its bells are told with it.
            Some(_) => news.bells = self.bells,
            None => {
                if bells > self.bells {
                    news.inputs.push(TaskInput::Rang { run, bells, output: tail(&self.files) });
                }
                self.hear_silence(status, now, &mut news);
            }
        }
        news
    }

    /// Whether all that it wrote is in the log, as far as it will ever be.
    fn is_read(&mut self, exit: ExitRecord, now: Instant) -> bool {
        let log = self.files.log_size();
        if self.unread.is_none_or(|unread| unread.log != log) {
            self.unread = Some(Unread { since: now, log });
        }
        let patience = if exit.unmarked { UNMARKED } else { STALLED };
        let is_stalled = self.unread.is_some_and(|unread| now >= unread.since + patience);
        is_stalled || self.files.reading() == Reading::Over
    }

    /// It may ask something, or no longer do so.
    fn hear_silence(&mut self, status: Option<OutputStatus>, now: Instant, news: &mut News) {
        if let Some(status) = status {
            news.quiet = status.quiet.then_some(status.bytes);
            news.look = news.quiet != self.quiet && (status.quiet || self.asks());
        }
        news.look |= self.again_at.take_if(|at| *at <= now).is_some();
    }

    fn asks(&self) -> bool {
        matches!(self.stand, TaskStand::Asks(_))
    }

    /// What came of the news is stored.
    pub(super) fn was_told(&mut self, news: News, now: Instant) {
        if news.quiet.is_none() && self.quiet.is_some() && self.asks() {
            self.again_at = Some(now + ANSWERED);
        }
        (self.bells, self.quiet) = (news.bells, news.quiet);
        if news.is_over {
            self.unread = None;
        }
    }
}

fn exit_of(record: ExitRecord) -> Exit {
    let signal = record.signal.and_then(|number| u8::try_from(number).ok()).map(Signal);
    Exit { code: record.code.filter(|_| signal.is_none()), signal }
}

#[cfg(test)]
mod tests {
    use agtmux_api::task_files::{BoundedLog, StatusFile};
    use agtmux_core::ids::{Generation, PaneId, ProcessRef};
    use jiff::Timestamp;

    use super::*;
    use crate::store::RunRow;

    fn run(dir: &std::path::Path) -> Run {
        std::fs::create_dir_all(dir.join("logs")).expect("made");
        let row = RunRow {
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
        Run::new(row, dir)
    }

    fn ended(run: &Run, unmarked: bool) {
        run.files.write_exit(&ExitRecord { code: Some(3), signal: None, hung_up: false, unmarked }).expect("written");
    }

    #[test]
    fn nothing_counts_as_told_before_it_is_stored() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = StatusFile::create(&run.files.output()).expect("made");
        status.write(OutputStatus { bells: 2, ..OutputStatus::default() }).expect("written");
        let rang = |news: &News| matches!(news.inputs[..], [TaskInput::Rang { bells: 2, .. }]);
        assert!(rang(&run.news(now, false)));
        let again = run.news(now, false);
        assert!(rang(&again), "the first was not stored");
        run.was_told(again, now);
        assert!(run.news(now, false).inputs.is_empty());
        status.write(OutputStatus { bells: 3, ended: true, ..OutputStatus::default() }).expect("written");
        ended(&run, false);
        for _ in 0..2 {
            let news = run.news(now, false);
            assert!(matches!(news.inputs[..], [TaskInput::Finished { bells: 3, .. }]), "{news:?}");
        }
    }

    #[test]
    fn an_end_waits_for_its_reader_as_long_as_that_reads() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, mut now) = (run(dir.path()), Instant::now());
        let mut log = BoundedLog::create(&run.files.log(), 1 << 20).expect("made");
        ended(&run, false);
        assert!(run.news(now, false).inputs.is_empty(), "its reader has not begun");
        let status = StatusFile::create(&run.files.output()).expect("made");
        for _ in 0..10 {
            now += STALLED / 2;
            log.append(b"more").expect("written");
            assert!(run.news(now, false).inputs.is_empty(), "it reads");
        }
        assert!(run.news(now + STALLED - A_MOMENT, false).inputs.is_empty());
        assert_eq!(run.news(now + STALLED, false).inputs.len(), 1, "nobody marks the end any more");
        assert_eq!(run.news(now, true).inputs.len(), 1, "whoever takes its window away waits no longer");
        drop(status);
        assert_eq!(run.news(now, false).inputs.len(), 1, "there is no reader any more");
    }

    #[test]
    fn an_end_that_could_not_be_marked_is_not_waited_for_long() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let _status = StatusFile::create(&run.files.output()).expect("made");
        ended(&run, true);
        assert!(run.news(now, false).inputs.is_empty());
        assert_eq!(run.news(now + UNMARKED, false).inputs.len(), 1);
    }

    #[test]
    fn two_prompts_between_looks_are_two() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut run, now) = (run(dir.path()), Instant::now());
        let status = StatusFile::create(&run.files.output()).expect("made");
        let mut look = |quiet, bytes| {
            status.write(OutputStatus { quiet, bytes, ..OutputStatus::default() }).expect("written");
            let news = run.news(now, false);
            let look = news.look;
            run.was_told(news, now);
            look
        };
        assert!(!look(false, 5));
        assert!(look(true, 5));
        assert!(!look(true, 5), "it was looked at");
        assert!(look(true, 9), "another one");
        assert!(!look(false, 12), "it was never told to ask");
    }
}
