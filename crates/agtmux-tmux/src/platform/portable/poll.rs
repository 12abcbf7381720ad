use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::look::{Change, Kind, Watched, is_alive};
use super::ps;
use super::rows::Row;
use crate::platform::Watcher;
use crate::platform::signals::{Sender, Signal, Token};

pub(in crate::platform) const INTERVAL: Duration = Duration::from_secs(1);

/// `kill(pid, 0)` is free but cannot tell a zombie or a stranger with the same number; `ps` can. So `ps` runs rarely.
const ROUNDS_PER_PS: u32 = 5;

/// Start times are printed in seconds, and some versions of `ps` compute them from a clock that moves.
const SLACK_SECONDS: u64 = 2;

pub(in crate::platform) struct PollingWatcher {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    signals: Sender,
    watched: Mutex<HashMap<(Token, Kind), Watched>>,
    /// There is something to watch again.
    begun: Notify,
}

impl PollingWatcher {
    pub(in crate::platform) fn start(runtime: &Handle, signals: Sender, interval: Duration) -> Self {
        let shared = Arc::new(Shared { signals, watched: Mutex::default(), begun: Notify::new() });
        let task = runtime.spawn(run(shared.clone(), interval)).abort_handle();
        Self { shared, task }
    }
}

async fn run(shared: Arc<Shared>, interval: Duration) {
    for round in (1..=ROUNDS_PER_PS).cycle() {
        while shared.watched().is_empty() {
            shared.begun.notified().await;
        }
        tokio::time::sleep(interval).await;
        shared.look_at_all();
        if round == ROUNDS_PER_PS && shared.watches_processes() {
            let rows = tokio::task::spawn_blocking(ps::rows).await;
            match rows.map_err(io::Error::other).flatten() {
                Ok(rows) => shared.look_at_processes(&rows),
                Err(error) => tracing::warn!(%error, "ps failed; the end of a process may be noticed late"),
            }
        }
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, HashMap<(Token, Kind), Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches_processes(&self) -> bool {
        self.watched().keys().any(|&(_, kind)| kind == Kind::Process)
    }

    fn look_at_all(&self) {
        self.watched().retain(|&(token, kind), watched| match watched.look_again() {
            Change::None => true,
            Change::Changed => {
                self.signals.send(kind.signal()(token));
                true
            }
            Change::Gone => {
                self.signals.send(kind.signal()(token));
                false
            }
        });
    }

    fn look_at_processes(&self, rows: &HashMap<u32, Row>) {
        self.watched().retain(|&(token, _), watched| {
            let Watched::Process { pid, start } = *watched else { return true };
            // Who is not in the list may have begun after it was made; the next round asks the kernel about that one.
            let lives = rows.get(&pid).is_none_or(|row| is_that_process(row, start));
            if !lives {
                self.signals.send(Signal::Exited(token));
            }
            lives
        });
    }

    fn insert(&self, token: Token, kind: Kind, watched: Watched) {
        // One watch of the same thing stays as it is, so that no change since the last look gets lost.
        match self.watched().entry((token, kind)) {
            Entry::Occupied(entry) if entry.get().is_same_as(&watched) => {}
            Entry::Occupied(mut entry) => drop(entry.insert(watched)),
            Entry::Vacant(entry) => drop(entry.insert(watched)),
        }
        self.begun.notify_one();
    }
}

fn is_that_process(row: &Row, start: Option<u64>) -> bool {
    !row.zombie && start.is_none_or(|start| row.start.abs_diff(start) <= SLACK_SECONDS)
}

impl Watcher for PollingWatcher {
    fn watch_terminal(&self, token: Token, tty: &Path) -> io::Result<()> {
        self.shared.insert(token, Kind::Terminal, Watched::terminal(tty)?);
        Ok(())
    }

    fn watch_process(&self, token: Token, pid: u32, start: Option<u64>) -> io::Result<()> {
        if is_alive(pid) && ps::row(pid)?.is_some_and(|row| is_that_process(&row, start)) {
            self.shared.insert(token, Kind::Process, Watched::Process { pid, start });
        } else {
            let mut watched = self.shared.watched();
            watched.remove(&(token, Kind::Process));
            self.shared.signals.send(Signal::Exited(token));
        }
        Ok(())
    }

    fn watch_file(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.insert(token, Kind::File, Watched::file(path)?);
        Ok(())
    }

    fn watch_dir(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.insert(token, Kind::Dir, Watched::dir(path)?);
        Ok(())
    }

    fn watch_contents(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.insert(token, Kind::Dir, Watched::contents(path)?);
        Ok(())
    }

    fn forget(&self, token: Token) {
        self.shared.watched().retain(|&(other, _), _| other != token);
        self.shared.signals.discard(token);
    }

    fn reports_output(&self) -> bool {
        false
    }
}

impl Drop for PollingWatcher {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.signals.close();
    }
}
