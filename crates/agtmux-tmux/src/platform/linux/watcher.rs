use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::inotify::ReadFlags;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::inotify::{Event, Inotify};
use super::pidfd::{self, Processes};
use super::places::{Kind, Places};
use super::terminals::Terminals;
use super::{readiness, selftest};
use crate::platform::Watcher;
use crate::platform::signals::{Sender, Signal, Token};

pub(in crate::platform) struct LinuxWatcher {
    shared: Arc<Shared>,
    processes: Processes,
    reports_output: bool,
    task: AbortHandle,
}

struct Shared {
    inotify: Inotify,
    signals: Sender,
    tables: Mutex<Tables>,
}

/// Signals are sent under this lock, so that a forgotten token stays silent.
struct Tables {
    terminals: Terminals,
    places: Places,
}

pub(in crate::platform) fn open(runtime: &Handle, signals: &Sender, pty_events: bool) -> io::Result<LinuxWatcher> {
    pidfd::works()?;
    let inotify = Inotify::new()?;
    let reports_output = pty_events && output_is_seen();
    let tables = Tables { terminals: Terminals::new(reports_output, Instant::now())?, places: Places::default() };
    let shared = Arc::new(Shared { inotify, signals: signals.clone(), tables: Mutex::new(tables) });
    let processes = Processes::new(runtime.clone(), signals.clone());
    let readiness = {
        let _runtime = runtime.enter();
        readiness::of(shared.inotify.fd())?
    };
    let task = runtime.spawn(run(shared.clone(), readiness)).abort_handle();
    Ok(LinuxWatcher { shared, processes, reports_output, task })
}

fn output_is_seen() -> bool {
    selftest::terminals_report_output()
        .inspect_err(|error| tracing::warn!(%error, "terminals do not report their output here; asking tmux instead"))
        .is_ok()
}

async fn run(shared: Arc<Shared>, readiness: AsyncFd<Arc<OwnedFd>>) {
    loop {
        // Only events make a terminal due, and only this task reads them: nobody else can bring the time forward.
        let due = shared.tables().terminals.next_due();
        let result = tokio::select! {
            result = shared.handle_events(&readiness) => result,
            () = sleep_until(due) => {
                shared.rearm_due();
                Ok(())
            }
        };
        if let Err(error) = result {
            tracing::error!(%error, "inotify failed; watching ends");
            shared.signals.close();
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

impl Shared {
    fn tables(&self) -> MutexGuard<'_, Tables> {
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

    fn rearm_due(&self) {
        self.tables().terminals.rearm_due(&self.inotify, Instant::now(), &self.signals);
    }
}

impl Tables {
    fn handle(&mut self, inotify: &Inotify, event: Event, now: Instant, signals: &Sender) {
        if event.what.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.places.find_all_again(inotify);
            self.terminals.rearm_all(inotify, now, signals);
            signals.send(Signal::Overflow);
        } else {
            self.terminals.on_event(inotify, event, now, signals);
            self.places.on_event(inotify, event, signals);
        }
    }
}

impl Watcher for LinuxWatcher {
    fn watch_terminal(&self, token: Token, tty: &Path) -> io::Result<()> {
        self.shared.tables().terminals.watch(&self.shared.inotify, token, tty)
    }

    fn watch_process(&self, token: Token, pid: u32, start: Option<u64>) -> io::Result<()> {
        self.processes.watch(token, pid, start)
    }

    fn watch_file(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.tables().places.watch(&self.shared.inotify, Kind::File, token, path)
    }

    fn watch_dir(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.tables().places.watch(&self.shared.inotify, Kind::Dir, token, path)
    }

    fn watch_contents(&self, token: Token, path: &Path) -> io::Result<()> {
        self.shared.tables().places.watch(&self.shared.inotify, Kind::Contents, token, path)
    }

    fn forget(&self, token: Token) {
        let mut tables = self.shared.tables();
        tables.terminals.forget(&self.shared.inotify, token);
        tables.places.forget(&self.shared.inotify, token);
        drop(tables);
        self.processes.forget(token);
        self.shared.signals.discard(token);
    }

    fn reports_output(&self) -> bool {
        self.reports_output
    }
}

impl Drop for LinuxWatcher {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.signals.close();
    }
}
