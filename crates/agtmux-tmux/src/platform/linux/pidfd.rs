use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::{readiness, stat};
use crate::platform::resources::{FileUse, has_room};
use crate::platform::signals::{PlatformSignal, SignalSender, WatchToken};

pub(super) fn works() -> io::Result<()> {
    pidfd_open(getpid(), PidfdFlags::NONBLOCK)?;
    Ok(())
}

/// Watches processes. Each watched process has its own tokio task, which sleeps until the process ends.
pub(super) struct ProcessWatches {
    runtime: Handle,
    signals: SignalSender,
    watched: Arc<Mutex<HashMap<WatchToken, ProcessWatch>>>,
}

struct ProcessWatch {
    process: (u32, Option<u64>),
    task: AbortHandle,
}

impl Drop for ProcessWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ProcessWatches {
    pub(super) fn new(runtime: Handle, signals: SignalSender) -> Self {
        Self { runtime, signals, watched: Arc::default() }
    }

    pub(super) fn watch(&self, token: WatchToken, pid: u32, start: Option<u64>) -> io::Result<()> {
        let mut watched = lock(&self.watched);
        if watched.get(&token).is_some_and(|watch| watch.process == (pid, start)) {
            return Ok(());
        }
        watched.remove(&token);
        let Some(pidfd) = open(pid, start)? else {
            self.signals.send(PlatformSignal::Exited(token));
            return Ok(());
        };
        let task = self.wait_for(pidfd, token)?;
        watched.insert(token, ProcessWatch { process: (pid, start), task });
        Ok(())
    }

    pub(super) fn unwatch(&self, token: WatchToken) {
        lock(&self.watched).remove(&token);
    }

    fn wait_for(&self, pidfd: OwnedFd, token: WatchToken) -> io::Result<AbortHandle> {
        let _runtime = self.runtime.enter();
        let pidfd = readiness::readable_fd(Arc::new(pidfd))?;
        let (watched, signals) = (self.watched.clone(), self.signals.clone());
        let task = self.runtime.spawn(async move {
            // An error means that the tokio runtime shuts down.
            if pidfd.readable().await.is_err() {
                return;
            }
            let mut watched = lock(&watched);
            // Since this tokio task woke up, the token may have been removed or used for another process.
            if watched.get(&token).is_some_and(|watch| Some(watch.task.id()) == tokio::task::try_id()) {
                watched.remove(&token);
                signals.send(PlatformSignal::Exited(token));
            }
        });
        Ok(task.abort_handle())
    }
}

impl Drop for ProcessWatches {
    fn drop(&mut self) {
        lock(&self.watched).clear();
    }
}

/// Opens a pidfd for the process. `None` if the process is gone or another process has its pid now.
fn open(pid: u32, start: Option<u64>) -> io::Result<Option<OwnedFd>> {
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let pidfd = match pidfd_open(id, PidfdFlags::NONBLOCK) {
        Ok(pidfd) if has_room(pidfd.as_fd(), FileUse::ProcessWatch) => pidfd,
        Ok(_) => return Err(Errno::MFILE.into()),
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    // Read the start time after opening the pidfd. The pidfd refers to the current owner of the pid, and the start time
    // tells whether that is the expected process. If the start time cannot be read, the process is hidden or has just
    // ended. The pidfd reports the end in both cases.
    let current_start = stat::read(pid).map(|stat| stat.start);
    let is_another = start.is_some() && current_start.is_some() && current_start != start;
    Ok((!is_another).then_some(pidfd))
}

fn lock(watched: &Mutex<HashMap<WatchToken, ProcessWatch>>) -> MutexGuard<'_, HashMap<WatchToken, ProcessWatch>> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
