use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::inotify::ReadFlags;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::inotify::{Inotify, InotifyEvent};
use super::paths::PathWatches;
use super::pidfd::{self, ProcessWatches};
use super::terminals::TerminalWatches;
use super::{readiness, selftest};
use crate::platform::signals::{PlatformSignal, SignalSender, WatchToken};
use crate::platform::{PathKind, PlatformWatcher};

pub(in crate::platform) struct LinuxWatcher {
    state: Arc<WatcherState>,
    processes: ProcessWatches,
    reports_output: bool,
    task: AbortHandle,
}

struct WatcherState {
    inotify: Inotify,
    signals: SignalSender,
    tables: Mutex<WatchTables>,
}

/// All watches except those of processes, behind one lock. Signals are sent while the lock is held, and `unwatch` takes
/// the same lock. After `unwatch` has returned, its token therefore gets no more signals.
struct WatchTables {
    terminals: TerminalWatches,
    paths: PathWatches,
}

pub(in crate::platform) fn open(
    runtime: &Handle,
    signals: &SignalSender,
    pty_events: bool,
) -> io::Result<LinuxWatcher> {
    pidfd::works()?;
    let inotify = Inotify::new()?;
    let reports_output = pty_events && terminal_output_is_reported();
    let tables =
        WatchTables { terminals: TerminalWatches::new(reports_output, Instant::now())?, paths: PathWatches::default() };
    let state = Arc::new(WatcherState { inotify, signals: signals.clone(), tables: Mutex::new(tables) });
    let processes = ProcessWatches::new(runtime.clone(), signals.clone());
    let readiness = {
        let _runtime = runtime.enter();
        readiness::readable_fd(state.inotify.fd())?
    };
    let task = runtime.spawn(run(state.clone(), readiness)).abort_handle();
    Ok(LinuxWatcher { state, processes, reports_output, task })
}

fn terminal_output_is_reported() -> bool {
    selftest::terminals_report_output()
        .inspect_err(|error| tracing::warn!(%error, "cannot use inotify to watch terminals; agtmux polls tmux instead"))
        .is_ok()
}

/// Closes the signal queue when the watcher ends, even by a panic. The reader of the queue then knows that nothing is
/// watched any more.
struct CloseSignals(SignalSender);

impl Drop for CloseSignals {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn run(state: Arc<WatcherState>, readiness: AsyncFd<Arc<OwnedFd>>) {
    let _close = CloseSignals(state.signals.clone());
    loop {
        // Only this tokio task schedules terminals, so no earlier due time can appear while it sleeps.
        let due = state.tables().terminals.next_due();
        let result = tokio::select! {
            result = state.handle_events(&readiness) => result,
            () = sleep_until(due) => {
                state.tables().terminals.rearm_due(&state.inotify, Instant::now(), &state.signals);
                Ok(())
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, "inotify failed; watching stops");
            return;
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

impl WatcherState {
    fn tables(&self) -> MutexGuard<'_, WatchTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn handle_events(&self, readiness: &AsyncFd<Arc<OwnedFd>>) -> io::Result<()> {
        let mut ready = readiness.readable().await?;
        let events = match ready.try_io(|_| self.inotify.read()) {
            Ok(Ok(events)) => events,
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => return Ok(()),
        };
        let mut tables = self.tables();
        let now = Instant::now();
        for event in events {
            tables.handle(&self.inotify, event, now, &self.signals);
        }
        Ok(())
    }
}

impl WatchTables {
    fn handle(&mut self, inotify: &Inotify, event: InotifyEvent, now: Instant, signals: &SignalSender) {
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.paths.rewatch_all(inotify);
            self.terminals.rearm_all(inotify, now, signals);
            signals.send(PlatformSignal::Overflow);
        } else {
            self.terminals.on_event(inotify, event, now, signals);
            self.paths.on_event(inotify, event, signals);
        }
    }
}

impl PlatformWatcher for LinuxWatcher {
    fn watch_terminal(&self, token: WatchToken, tty: &Path) -> io::Result<()> {
        self.state.tables().terminals.watch(&self.state.inotify, token, tty)
    }

    fn watch_process(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()> {
        self.processes.watch(token, pid, start)
    }

    fn watch_path(&self, kind: PathKind, token: WatchToken, path: &Path) -> io::Result<()> {
        self.state.tables().paths.watch(&self.state.inotify, kind, token, path)
    }

    fn unwatch(&self, token: WatchToken) {
        let mut tables = self.state.tables();
        tables.terminals.unwatch(&self.state.inotify, token);
        tables.paths.unwatch(&self.state.inotify, token);
        drop(tables);
        self.processes.unwatch(token);
        self.state.signals.discard(token);
    }

    fn reports_output(&self) -> bool {
        self.reports_output
    }
}

impl Drop for LinuxWatcher {
    fn drop(&mut self) {
        self.task.abort();
        self.state.signals.close();
    }
}
