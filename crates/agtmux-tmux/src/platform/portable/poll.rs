use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::ps;
use super::watched_item::{WatchKind, WatchedItem, WatchedItemChange, is_alive};
use crate::platform::signals::{PlatformSignal, SignalSender, WatchToken};
use crate::platform::{PlatformWatcher, ProcessInfo};

pub(in crate::platform) const INTERVAL: Duration = Duration::from_secs(1);

/// `kill(pid, 0)` is cheap but cannot detect a zombie or a reused pid; `ps` can, so it runs in every fifth round.
const ROUNDS_PER_PS: u32 = 5;

/// `ps` prints start times in seconds, and some versions compute them from an adjustable clock.
const START_TOLERANCE_SECONDS: u64 = 2;

pub(in crate::platform) struct PollingWatcher {
    state: Arc<PollState>,
    task: AbortHandle,
}

struct PollState {
    signals: SignalSender,
    watched: Mutex<HashMap<(WatchToken, WatchKind), WatchedItem>>,
    /// Notified when a watch is added.
    watch_added: Notify,
}

impl PollingWatcher {
    pub(in crate::platform) fn start(runtime: &Handle, signals: SignalSender, interval: Duration) -> Self {
        let state = Arc::new(PollState { signals, watched: Mutex::default(), watch_added: Notify::new() });
        let task = runtime.spawn(run(state.clone(), interval)).abort_handle();
        Self { state, task }
    }
}

async fn run(state: Arc<PollState>, interval: Duration) {
    for round in (1..=ROUNDS_PER_PS).cycle() {
        while state.watched().is_empty() {
            state.watch_added.notified().await;
        }
        tokio::time::sleep(interval).await;
        state.poll_all();
        if round == ROUNDS_PER_PS && state.watches_processes() {
            let rows = tokio::task::spawn_blocking(ps::rows).await;
            match rows.map_err(io::Error::other).flatten() {
                Ok(rows) => state.check_processes(&rows),
                Err(error) => tracing::warn!(%error, "ps failed; a process exit may be detected late"),
            }
        }
    }
}

impl PollState {
    fn watched(&self) -> MutexGuard<'_, HashMap<(WatchToken, WatchKind), WatchedItem>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches_processes(&self) -> bool {
        self.watched().keys().any(|&(_, kind)| kind == WatchKind::Process)
    }

    fn poll_all(&self) {
        self.watched().retain(|&(token, kind), watched| match watched.poll() {
            WatchedItemChange::None => true,
            WatchedItemChange::Changed => {
                self.signals.send(kind.signal()(token));
                true
            }
            WatchedItemChange::Gone => {
                self.signals.send(kind.signal()(token));
                false
            }
        });
    }

    fn check_processes(&self, rows: &HashMap<u32, ProcessInfo>) {
        self.watched().retain(|&(token, _), watched| {
            let WatchedItem::Process { pid, start } = *watched else { return true };
            // A process that is missing in the listing may have started later. The next round checks it with the
            // kernel.
            let lives = rows.get(&pid).is_none_or(|row| is_that_process(row, start));
            if !lives {
                self.signals.send(PlatformSignal::Exited(token));
            }
            lives
        });
    }

    fn insert(&self, token: WatchToken, kind: WatchKind, watched: WatchedItem) {
        // Keep an existing watch of the same object, so that no change since the last poll is lost.
        match self.watched().entry((token, kind)) {
            Entry::Occupied(entry) if entry.get().is_same_as(&watched) => {}
            Entry::Occupied(mut entry) => drop(entry.insert(watched)),
            Entry::Vacant(entry) => drop(entry.insert(watched)),
        }
        self.watch_added.notify_one();
    }
}

fn is_that_process(row: &ProcessInfo, start: Option<u64>) -> bool {
    !row.zombie && start.is_none_or(|start| row.start.abs_diff(start) <= START_TOLERANCE_SECONDS)
}

impl PlatformWatcher for PollingWatcher {
    fn watch_terminal(&self, token: WatchToken, tty: &Path) -> io::Result<()> {
        self.state.insert(token, WatchKind::Terminal, WatchedItem::terminal(tty)?);
        Ok(())
    }

    fn watch_process(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()> {
        if is_alive(pid) && ps::row(pid)?.is_some_and(|row| is_that_process(&row, start)) {
            self.state.insert(token, WatchKind::Process, WatchedItem::Process { pid, start });
        } else {
            let mut watched = self.state.watched();
            watched.remove(&(token, WatchKind::Process));
            self.state.signals.send(PlatformSignal::Exited(token));
        }
        Ok(())
    }

    fn watch_file(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.state.insert(token, WatchKind::File, WatchedItem::file(path)?);
        Ok(())
    }

    fn watch_dir(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.state.insert(token, WatchKind::Dir, WatchedItem::dir(path)?);
        Ok(())
    }

    fn watch_dir_contents(&self, token: WatchToken, path: &Path) -> io::Result<()> {
        self.state.insert(token, WatchKind::Dir, WatchedItem::contents(path)?);
        Ok(())
    }

    fn unwatch(&self, token: WatchToken) {
        self.state.watched().retain(|&(other, _), _| other != token);
        self.state.signals.discard(token);
    }

    fn reports_output(&self) -> bool {
        false
    }
}

impl Drop for PollingWatcher {
    fn drop(&mut self) {
        self.task.abort();
        self.state.signals.close();
    }
}
