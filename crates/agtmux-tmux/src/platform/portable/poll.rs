use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::ps;
use super::watched_item::{WatchedItem, WatchedItemChange, is_alive};
use crate::platform::signals::{PlatformSignal, SignalSender, WatchToken};
use crate::platform::{PathKind, PlatformWatcher, ProcessInfo};

pub(in crate::platform) const INTERVAL: Duration = Duration::from_secs(1);

/// Each round of polling checks processes with `kill(pid, 0)`, which is cheap but does not detect a zombie or a reused
/// pid. `ps` detects both, and runs once in this many rounds.
const ROUNDS_PER_PS: u32 = 5;

/// Two readings of one process's start time may differ by this much. `ps` prints start times in seconds, and some
/// versions compute them from a clock that can be set.
const START_TOLERANCE_SECONDS: u64 = 2;

pub(in crate::platform) struct PollingWatcher {
    state: Arc<PollState>,
    task: AbortHandle,
}

struct PollState {
    signals: SignalSender,
    /// The watched items. The key is the signal that is sent when the item changes. A second watch with the same signal
    /// replaces the first.
    watched: Mutex<HashMap<PlatformSignal, WatchedItem>>,
    /// Wakes the polling loop when a watch is added.
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
    fn watched(&self) -> MutexGuard<'_, HashMap<PlatformSignal, WatchedItem>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches_processes(&self) -> bool {
        self.watched().keys().any(|signal| matches!(signal, PlatformSignal::Exited(_)))
    }

    fn poll_all(&self) {
        self.watched().retain(|signal, watched| {
            let change = watched.poll();
            if change != WatchedItemChange::None {
                self.signals.send(*signal);
            }
            change != WatchedItemChange::Gone
        });
    }

    fn check_processes(&self, rows: &HashMap<u32, ProcessInfo>) {
        self.watched().retain(|signal, watched| {
            let WatchedItem::Process { pid, start } = *watched else { return true };
            // A process that is missing in the listing may have started after the listing was read. The next round
            // checks it with the kernel.
            let lives = rows.get(&pid).is_none_or(|row| is_that_process(row, start));
            if !lives {
                self.signals.send(*signal);
            }
            lives
        });
    }

    fn insert(&self, token: WatchToken, item: WatchedItem) {
        let signal = item.signal(token);
        let mut watched = self.watched();
        // Keep an existing watch of the same object, so that no change since the last poll is lost.
        if !watched.get(&signal).is_some_and(|known| known.is_same_as(&item)) {
            watched.insert(signal, item);
        }
        drop(watched);
        self.watch_added.notify_one();
    }
}

fn is_that_process(row: &ProcessInfo, start: Option<u64>) -> bool {
    !row.zombie && start.is_none_or(|start| row.start.abs_diff(start) <= START_TOLERANCE_SECONDS)
}

impl PlatformWatcher for PollingWatcher {
    fn watch_terminal(&self, token: WatchToken, tty: &Path) -> io::Result<()> {
        self.state.insert(token, WatchedItem::terminal(tty)?);
        Ok(())
    }

    fn watch_process(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()> {
        if is_alive(pid) && ps::row(pid)?.is_some_and(|row| is_that_process(&row, start)) {
            self.state.insert(token, WatchedItem::Process { pid, start });
        } else {
            let exited = PlatformSignal::Exited(token);
            let mut watched = self.state.watched();
            watched.remove(&exited);
            self.state.signals.send(exited);
        }
        Ok(())
    }

    fn watch_path(&self, kind: PathKind, token: WatchToken, path: &Path) -> io::Result<()> {
        self.state.insert(token, WatchedItem::path(kind, path)?);
        Ok(())
    }

    fn unwatch(&self, token: WatchToken) {
        self.state.watched().retain(|signal, _| signal.token() != Some(token));
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
