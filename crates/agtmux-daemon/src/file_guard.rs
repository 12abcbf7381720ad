//! Restores the daemon's files if another program removes them while the daemon runs. The files are the directories,
//! locks, socket, database and log.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agtmux_api::paths::Paths;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::engine::EngineHandle;
use crate::lock::{DaemonLock, LockState};
use crate::logging;
use crate::observe::Discovery;
use crate::store::Store;

/// The name under which the health report lists the daemon's files.
const FILES: &str = "files";
/// The delay before another attempt to restore the files. Also the interval of checks if the directories cannot be
/// watched.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The daemon restores the files once no file has been removed for this long. A program that removes a directory
/// removes its files one after the other.
const SETTLE_TIME: Duration = Duration::from_millis(50);
/// The daemon restores the files after this many times `SETTLE_TIME` at the latest, even if the removals continue.
const MAX_SETTLE_STEPS: u32 = 20;
/// How long this daemon tries to take its locks again while another process holds one of them. A second daemon that
/// tries to start may hold one lock for a moment, and gives up when the other lock is taken. If other processes still
/// hold all locks after this time, this daemon stops.
const LOST_LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_RETRY: Duration = Duration::from_millis(100);

pub(crate) struct FileGuard {
    pub(crate) paths: Paths,
    pub(crate) lock: Arc<Mutex<DaemonLock>>,
    pub(crate) store: Arc<Store>,
    pub(crate) engine: EngineHandle,
    pub(crate) discovery: Discovery,
    /// Tells the API server to check its socket, and to create the socket again if it is gone.
    pub(crate) check_socket: Arc<Notify>,
    /// Signals that another daemon has taken over the files. This daemon must then stop.
    pub(crate) taken_over: Arc<Notify>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckOutcome {
    Unchanged,
    Restored,
    Failed,
}

impl FileGuard {
    /// Runs until the daemon stops.
    pub(crate) async fn run(&self) {
        let socket_dir = self.paths.socket.parent().unwrap_or(Path::new("/"));
        loop {
            // Watch before the check, so that a removal during the check is noticed.
            let watched = self.discovery.watch_dirs(&[&self.paths.state_dir, socket_dir]);
            match (self.check().await, watched) {
                (CheckOutcome::Restored, _) => {}
                (CheckOutcome::Unchanged, Some((mut changes, _guards))) => {
                    changes.recv().await;
                    self.keep_other_daemons_out();
                    for _ in 0..MAX_SETTLE_STEPS {
                        if timeout(SETTLE_TIME, changes.recv()).await.is_err() {
                            break;
                        }
                    }
                }
                (CheckOutcome::Unchanged, None) | (CheckOutcome::Failed, _) => sleep(RETRY_INTERVAL).await,
            }
        }
    }

    /// If all lock files are gone, takes the locks again at once. A client that finds no socket starts another daemon,
    /// which could take the locks first.
    fn keep_other_daemons_out(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_gone() && self.paths.prepare().is_ok() {
            // If this fails, the check that follows reports the error.
            let _ = lock.renew();
        }
    }

    /// Restores missing files and directories, and reports what was missing.
    async fn check(&self) -> CheckOutcome {
        let missing = self.missing();
        let background = self.discovery.background();
        match self.restore().await {
            Ok(()) if missing.is_empty() && !background.has_fault(FILES) => CheckOutcome::Unchanged,
            Ok(()) => {
                logging::reopen_if_removed();
                let what = if missing.is_empty() { "files of the daemon".to_owned() } else { missing.join(", ") };
                tracing::warn!(what, "files of the daemon were removed; they are restored");
                background.report_note(FILES, format!("removed by another program, restored {}: {what}", now()));
                CheckOutcome::Restored
            }
            Err(error) => {
                background.report_fault(FILES, format!("removed by another program: {}; {error}", missing.join(", ")));
                CheckOutcome::Failed
            }
        }
    }

    /// The names of the daemon's files and directories that do not exist.
    fn missing(&self) -> Vec<String> {
        let (state_dir, socket) = (&self.paths.state_dir, &self.paths.socket);
        // If a directory is missing, only the directory is listed, not the files in it.
        let of_state = match state_dir.exists() {
            true => vec![self.paths.database(), self.paths.lock()],
            false => vec![state_dir.clone()],
        };
        let of_socket = match socket.parent() {
            Some(dir) if !dir.exists() && dir != state_dir => dir.to_owned(),
            _ => socket.clone(),
        };
        let all = of_state.into_iter().chain([of_socket]).filter(|path| !path.exists());
        all.map(|path| path.display().to_string()).collect()
    }

    async fn restore(&self) -> Result<(), String> {
        self.paths.prepare().map_err(|error| error.to_string())?;
        self.renew_lock().await?;
        self.store.restore_if_removed().await.map_err(|error| error.to_string())?;
        // Make the engine run a step. If an earlier write failed, this step writes everything.
        self.engine.flush().await;
        self.check_socket.notify_one();
        let is_listening = async {
            while !self.paths.socket.exists() {
                sleep(SETTLE_TIME).await;
            }
        };
        let missing_socket = |_| format!("cannot listen on '{}' again", self.paths.socket.display());
        timeout(RETRY_INTERVAL, is_listening).await.map_err(missing_socket)
    }

    /// Takes the locks again whose files were removed. If other processes hold all locks, this daemon must stop.
    async fn renew_lock(&self) -> Result<(), String> {
        for _ in 0..LOST_LOCK_TIMEOUT.as_millis() / LOCK_RETRY.as_millis() {
            let renewed = self.lock.lock().unwrap_or_else(PoisonError::into_inner).renew();
            match renewed.map_err(|error| format!("cannot lock the files again: {error}"))? {
                LockState::Held => return Ok(()),
                LockState::Contended | LockState::Lost => sleep(LOCK_RETRY).await,
            }
        }
        let renewed = self.lock.lock().unwrap_or_else(PoisonError::into_inner).renew();
        if matches!(renewed, Ok(LockState::Lost)) {
            tracing::warn!("another daemon has taken over the files");
            self.taken_over.notify_one();
            // The daemon stops now.
            std::future::pending::<()>().await;
        }
        Err("another process holds a lock of the daemon".into())
    }
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
