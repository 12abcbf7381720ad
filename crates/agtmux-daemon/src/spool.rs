//! Delivers events that hooks saved while the daemon was not reachable. The daemon reads the spool directory when it
//! starts and after each change of the directory. It deletes a file after delivering it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::paths::private_dir;
use agtmux_api::wire::EventSubmission;
use agtmux_tmux::platform::{self, Platform, PlatformOptions, WatchToken};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::engine::{EngineHandle, IncomingEvent};
use crate::observe::Discovery;
use crate::serve;

/// The most bytes of an event in the spool. The API has the same limit.
const MAX_EVENT_BYTES: u64 = 1 << 20;
/// How many unreadable files are kept for inspection.
const MAX_BAD_FILES: usize = 100;
/// The delay before the next attempt after a disk error or a failed delivery.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

const WATCH_TOKEN: WatchToken = WatchToken(1);

pub(crate) struct Spool {
    dir: PathBuf,
    engine: EngineHandle,
    discovery: Discovery,
}

enum SpoolOutcome {
    /// The event is stored, or permanently refused.
    Done,
    Unreadable(String),
    /// The file stays in the spool.
    RetryLater,
}

impl Spool {
    pub(crate) fn new(dir: PathBuf, engine: EngineHandle, discovery: Discovery) -> Self {
        Self { dir, engine, discovery }
    }

    /// Runs until the daemon stops.
    pub(crate) async fn run(&self) {
        match platform::open(PlatformOptions { pty_events: false, force_portable: false }) {
            Ok(platform) => self.follow(platform).await,
            Err(error) => {
                tracing::warn!(%error, "cannot watch the spool; polling it");
                loop {
                    self.deliver_all().await;
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
            }
        }
    }

    async fn follow(&self, mut platform: Platform) {
        let mut warned = false;
        loop {
            // Watch before reading, so that a file that arrives during the read causes a signal.
            let watched = self.watch(&platform);
            if let Err(error) = &watched
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(%error, "cannot watch the spool; polling it");
            }
            let signal = if self.deliver_all().await && watched.is_ok() {
                platform.signals.recv().await
            } else {
                match timeout(RETRY_INTERVAL, platform.signals.recv()).await {
                    Ok(signal) => signal,
                    Err(_) => continue,
                }
            };
            if signal.is_none() {
                return;
            }
        }
    }

    /// Creates the spool directory if it is missing, and watches it. Called before every read, because the directory
    /// may have been replaced since the last one.
    fn watch(&self, platform: &Platform) -> io::Result<()> {
        private_dir(&self.dir, "AGTMUX_STATE_DIR").map_err(io::Error::other)?;
        platform.watcher.watch_dir(WATCH_TOKEN, &self.dir)
    }

    /// Delivers all files, oldest first. Returns false if at least one file must be delivered again later.
    async fn deliver_all(&self) -> bool {
        let mut all = true;
        let files = match try_pending_files(&self.dir) {
            Ok(files) => files,
            Err(error) => return !platform::is_exhausted(&error),
        };
        for path in files {
            match self.deliver(&path).await {
                SpoolOutcome::Done => remove(&path),
                SpoolOutcome::Unreadable(why) => {
                    tracing::warn!(file = %path.display(), why, "cannot read an event in the spool; moving it to bad/");
                    move_to_bad(&self.dir, &path);
                }
                SpoolOutcome::RetryLater => all = false,
            }
        }
        all
    }

    async fn deliver(&self, path: &Path) -> SpoolOutcome {
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            // A hook deleted the file to make room.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return SpoolOutcome::Done,
            Err(error) if platform::is_exhausted(&error) => return SpoolOutcome::RetryLater,
            Err(error) => return SpoolOutcome::Unreadable(error.to_string()),
        };
        let (document, event) = match parse(&bytes) {
            Ok(parsed) => parsed,
            Err(error) => return SpoolOutcome::Unreadable(error.to_string()),
        };
        if let Some(socket) = event.socket {
            // Registers the tmux server of the event. A hook that reaches the daemon directly does the same.
            self.discovery.add_caller_sockets(Some(format!("{socket},0,0")), None).await;
        }
        let outcome = match serve::read_event(bytes.len(), move || Ok(document), &self.discovery, None).await {
            Ok(incoming) => self.engine.ingest_event(IncomingEvent { was_spooled: true, ..incoming }).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(_) => SpoolOutcome::Done,
            Err(error) if serve::is_retryable(error.code) => SpoolOutcome::RetryLater,
            Err(error) => {
                tracing::debug!(file = %path.display(), %error, "an event from the spool was refused");
                SpoolOutcome::Done
            }
        }
    }
}

/// The event files, oldest first: their names sort by time. Unfinished files and the `bad` directory are left out.
fn try_pending_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_event = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).filter(is_event).collect();
    files.sort();
    Ok(files)
}

/// Like [`try_pending_files`], but empty if the directory cannot be read.
fn pending_files(dir: &Path) -> Vec<PathBuf> {
    try_pending_files(dir).unwrap_or_default()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
    }
    if meta.len() > MAX_EVENT_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 1 MiB"));
    }
    fs::read(path)
}

fn parse(bytes: &[u8]) -> serde_json::Result<(Value, EventSubmission)> {
    let document: Value = serde_json::from_slice(bytes)?;
    let event = EventSubmission::deserialize(&document)?;
    Ok((document, event))
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file = %path.display(), %error, "cannot delete a delivered event from the spool");
        }
        _ => {}
    }
}

fn move_to_bad(dir: &Path, path: &Path) {
    let bad = dir.join("bad");
    let moved = fs::create_dir_all(&bad).and_then(|()| {
        let mut earlier = pending_files(&bad);
        let surplus = (earlier.len() + 1).saturating_sub(MAX_BAD_FILES);
        earlier.drain(..surplus).for_each(|path| remove(&path));
        fs::rename(path, bad.join(path.file_name().unwrap_or_default()))
    });
    if moved.is_err() {
        remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_files_are_limited_and_drafts_are_ignored() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(".x.tmp"), "draft").expect("written");
        for n in 0..MAX_BAD_FILES + 3 {
            let path = dir.path().join(format!("{n:04}.json"));
            fs::write(&path, "no event").expect("written");
            assert_eq!(pending_files(dir.path()), std::slice::from_ref(&path));
            move_to_bad(dir.path(), &path);
        }
        let bad = pending_files(&dir.path().join("bad"));
        assert_eq!(bad.len(), MAX_BAD_FILES);
        assert!(bad[0].ends_with("0003.json"), "the oldest are deleted first: {}", bad[0].display());
    }

    #[test]
    fn links_and_huge_files_are_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("a.json"), dir.path().join("b.json"));
        fs::write(&file, vec![b' '; (1 << 20) + 1]).expect("written");
        std::os::unix::fs::symlink("/etc/hostname", &link).expect("linked");
        assert!(read(&file).is_err() && read(&link).is_err());
    }
}
