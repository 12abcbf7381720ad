//! Watches the run files of tasks, and checks their sessions in tmux when a window may have changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use agtmux_core::ids::WindowId;
use agtmux_core::task::{RunId, TaskInput};
use agtmux_tmux::platform::{self, Platform, PlatformOptions, WatchToken};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast::error::RecvError;

use super::Tasks;
use super::run_files::{READER_CHECK_INTERVAL, RunChanges, RunReader};
use crate::store::{TaskSession, TaskSessionKey};

const WATCH: WatchToken = WatchToken(1);
/// If files cannot be watched, they are read at this interval. Failed operations are repeated after the same time.
pub(super) const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The state machine of a task session plans its next step at most this far ahead. If a planned time is further ahead,
/// the clock was set back after the step was planned.
const MAX_HOLD: SignedDuration = SignedDuration::from_secs(10);
/// How long the loop sleeps if no work is due.
const MAX_SLEEP: Duration = Duration::from_secs(3600);

/// What the daemon has read about a session, and when the daemon checks the session again. The engine decides which
/// task events result from this.
#[derive(Default)]
pub(super) struct FollowedSession {
    /// One reader for each run that has not finished.
    pub(super) runs: BTreeMap<RunId, RunReader>,
    /// When to check the session in tmux, if a check is planned.
    check_at: Option<Instant>,
    /// Set after a failed check. Until this time, only a command or a change in tmux causes another check.
    retry_at: Option<Instant>,
    /// Whether a check is in progress.
    checking: bool,
    /// Names of tasks whose windows are being made.
    pub(super) pending_windows: Vec<String>,
}

/// Marks a check as ended when dropped. This also happens if the check panics, so that the check is repeated.
struct CheckEnd<'a> {
    tasks: &'a Tasks,
    key: &'a TaskSessionKey,
    done: bool,
}

impl Drop for CheckEnd<'_> {
    fn drop(&mut self) {
        self.tasks.followed(self.key, |followed| followed.end_check(self.done, Instant::now()));
        self.tasks.0.wake.notify_one();
    }
}

impl Tasks {
    /// Follows all task sessions until the daemon stops.
    pub(super) async fn follow(self, unregistered: Vec<RunId>) {
        let mut changed_sessions = self.0.engine.subscribe_task_sessions();
        let platform = platform::open(PlatformOptions { pty_events: false, force_portable: false });
        let mut platform = platform
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; checking tasks once a second"))
            .ok();
        let mut watched = self.watch(platform.as_ref());
        self.plan_checks(|_| true);
        for run_id in unregistered {
            if !self.adopt(&run_id).await {
                self.adopt_later(run_id);
            }
        }
        loop {
            let next = self.do_due_work().await;
            let until = if watched { next } else { next.min(Instant::now() + RETRY_INTERVAL) };
            let file_changed = async {
                match platform.as_mut() {
                    Some(platform) => platform.signals.recv().await.is_some(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                more = file_changed => match more {
                    true => watched = self.watch(platform.as_ref()),
                    false => (platform, watched) = (None, false),
                },
                () = self.0.wake.notified() => {}
                session = changed_sessions.recv() => match session {
                    Ok(changed) => self.plan_checks(|key| *key == changed),
                    Err(RecvError::Lagged(_)) => self.plan_checks(|_| true),
                    Err(RecvError::Closed) => return,
                },
                () = tokio::time::sleep_until(until.into()) => {}
            }
        }
    }

    fn watch(&self, platform: Option<&Platform>) -> bool {
        platform.is_some_and(|platform| platform.watcher.watch_dir_contents(WATCH, &self.0.dir).is_ok())
    }

    pub(super) fn followed<T>(&self, key: &TaskSessionKey, change: impl FnOnce(&mut FollowedSession) -> T) -> T {
        let mut followed = self.0.followed.lock().unwrap_or_else(PoisonError::into_inner);
        change(followed.entry(key.clone()).or_default())
    }

    fn plan_checks(&self, affects: impl Fn(&TaskSessionKey) -> bool) {
        for key in self.0.engine.task_sessions().all().into_keys().filter(affects) {
            self.followed(&key, |followed| followed.check_by(Instant::now()));
        }
    }

    pub(super) fn check_soon(&self, key: &TaskSessionKey) {
        self.followed(key, |followed| followed.check_by(Instant::now()));
        self.0.wake.notify_one();
    }

    /// Does all work that is due now. Returns the time at which the next work is due.
    async fn do_due_work(&self) -> Instant {
        let mut keys: BTreeSet<TaskSessionKey> = self.0.engine.task_sessions().all().into_keys().collect();
        keys.extend(self.0.followed.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned());
        let mut next = Instant::now() + MAX_SLEEP;
        for key in keys {
            let tick = self.is_tick_due(&key).then_some(TaskInput::Tick);
            let stored = self.apply_run_files(&key, |_| false, tick).await;
            if self.take_due_check(&key) {
                // Check in the background, so that a server that does not answer blocks only its own sessions.
                self.check_in_background(key.clone());
            }
            // No file change announces that the store works again, so retry after an interval.
            let due = if stored { self.next_due(&key) } else { Instant::now() + RETRY_INTERVAL };
            next = next.min(due);
        }
        let sessions = self.0.engine.task_sessions().all();
        let mut followed = self.0.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.retain(|key, followed| sessions.contains_key(key) || followed.is_active());
        // Always sleep a little, so that a busy loop cannot starve other tasks.
        next.max(Instant::now() + Duration::from_millis(1))
    }

    /// Whether the next step of the session is due. A step is also due if its time was planned before the clock was set
    /// back.
    fn is_tick_due(&self, key: &TaskSessionKey) -> bool {
        let (machine, now) = (&self.session(key).machine, self.0.clock.now());
        let is_from_before = |at: Timestamp| at.duration_since(now) > MAX_HOLD;
        machine.next_tick_at().is_some_and(|at| at <= now || is_from_before(at))
            || machine.next_snapshot_at().is_some_and(is_from_before)
    }

    fn next_due(&self, key: &TaskSessionKey) -> Instant {
        let machine = &self.session(key).machine;
        let instant = |at| self.0.clock.instant(at).min(Instant::now() + MAX_HOLD.unsigned_abs());
        let (snapshot, tick) = (machine.next_snapshot_at().map(instant), machine.next_tick_at().map(instant));
        self.followed(key, |followed| {
            let check = followed.next_check(snapshot);
            // Poll while output is unread: a file change announces the end of the output, but not the death of the
            // reader.
            let has_unread = followed.runs.values().any(RunReader::has_unread_output);
            let unread = has_unread.then(|| Instant::now() + READER_CHECK_INTERVAL);
            let rechecks = followed.runs.values().filter_map(|run| run.recheck_at);
            check
                .into_iter()
                .chain(tick)
                .chain(unread)
                .chain(rechecks)
                .min()
                .unwrap_or_else(|| Instant::now() + MAX_SLEEP)
        })
    }

    fn take_due_check(&self, key: &TaskSessionKey) -> bool {
        let snapshot = self.session(key).machine.next_snapshot_at().map(|at| self.0.clock.instant(at));
        self.followed(key, |followed| followed.begin_due_check(snapshot, Instant::now()))
    }

    /// Checks a session in the background. Plans another check if this one fails.
    fn check_in_background(&self, key: TaskSessionKey) {
        let tasks = self.clone();
        self.0.discovery.background().run("task_session_check", async move {
            let mut end = CheckEnd { tasks: &tasks, key: &key, done: false };
            end.done = tasks.check_session(&key).await;
        });
    }

    /// Reads the files of a session's runs. Applies the changes, and then `input`. For a window that `at_once` accepts,
    /// the end of a run is applied even if not all of its output has been read.
    ///
    /// Returns false if the store failed. The next call then finds the same changes again.
    pub(super) async fn apply_run_files(
        &self,
        key: &TaskSessionKey,
        at_once: impl Fn(WindowId) -> bool,
        input: Option<TaskInput>,
    ) -> bool {
        let (now, session) = (Instant::now(), self.session(key));
        let mut changes = self.followed(key, |followed| followed.read_runs(&session, &self.0.dir, now, at_once));
        let from_files = changes.iter_mut().flat_map(|(_, changes)| std::mem::take(&mut changes.inputs));
        let inputs: Vec<TaskInput> = from_files.chain(input).collect();
        if !inputs.is_empty() && !self.apply(key, inputs, None).await {
            return false;
        }
        // Get the session again, because the input may be a snapshot that opened or closed a prompt.
        let session = self.session(key);
        self.followed(key, |followed| followed.mark_stored(changes, &session, now));
        true
    }
}

impl FollowedSession {
    fn check_by(&mut self, at: Instant) {
        self.check_at = Some(self.check_at.map_or(at, |known| known.min(at)));
    }

    /// When the next check of the session is due. `snapshot` is the time at which the state machine needs a check. It
    /// is `None` if the state machine needs no check.
    fn next_check(&self, snapshot: Option<Instant>) -> Option<Instant> {
        let needed = snapshot.map(|at| self.after_retry(at));
        // Only one check runs at a time. The next check is planned when the running one ends.
        needed.into_iter().chain(self.check_at).filter(|_| !self.checking).min()
    }

    fn begin_due_check(&mut self, snapshot: Option<Instant>, now: Instant) -> bool {
        if self.next_check(snapshot).is_none_or(|at| at > now) {
            return false;
        }
        (self.checking, self.check_at) = (true, self.check_at.filter(|at| *at > now));
        true
    }

    fn end_check(&mut self, done: bool, now: Instant) {
        (self.checking, self.retry_at) = (false, (!done).then_some(now + RETRY_INTERVAL));
        if let Some(at) = self.retry_at {
            self.check_by(at);
        }
    }

    fn after_retry(&self, at: Instant) -> Instant {
        self.retry_at.map_or(at, |retry_at| retry_at.max(at))
    }

    /// Whether the session must be followed even if the engine does not know it.
    fn is_active(&self) -> bool {
        self.check_at.is_some() || self.checking || !self.pending_windows.is_empty()
    }

    fn read_runs(
        &mut self,
        session: &TaskSession,
        dir: &Path,
        now: Instant,
        at_once: impl Fn(WindowId) -> bool,
    ) -> Vec<(RunId, RunChanges)> {
        self.runs.retain(|run_id, _| session.runs.contains_key(run_id));
        let mut all = Vec::new();
        for (run_id, run) in &session.runs {
            let reader = self.runs.entry(run_id.clone()).or_insert_with(|| RunReader::new(run_id, dir));
            let changes = reader.read_changes(now, at_once(run.window), session.waits_for_input(run));
            if changes.check_screen {
                self.check_by(self.after_retry(now));
            }
            all.push((run_id.clone(), changes));
        }
        all
    }

    /// Marks the changes as stored. `session` already contains them.
    fn mark_stored(&mut self, changes: Vec<(RunId, RunChanges)>, session: &TaskSession, now: Instant) {
        for (run_id, changes) in changes {
            let waits_for_input = session.runs.get(&run_id).is_some_and(|run| session.waits_for_input(run));
            if let Some(run) = self.runs.get_mut(&run_id) {
                run.mark_stored(changes, waits_for_input, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_check_is_repeated_after_an_interval() {
        let (mut followed, now) = (FollowedSession::default(), Instant::now());
        let later = now + RETRY_INTERVAL;
        assert!(followed.begin_due_check(Some(now), now));
        assert_eq!(followed.next_check(Some(now)), None, "one check at a time");
        followed.end_check(false, now);
        assert_eq!(followed.next_check(Some(now)), Some(later));
        assert!(!followed.begin_due_check(Some(now), now));
        assert!(followed.begin_due_check(Some(now), later));
        followed.end_check(false, later);
        followed.check_by(later);
        assert!(followed.begin_due_check(None, later), "a command does not wait");
        followed.end_check(true, later);
        assert_eq!((followed.next_check(None), followed.next_check(Some(later))), (None, Some(later)));
    }
}
