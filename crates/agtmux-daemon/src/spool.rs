//! Events that hooks could not deliver: read at the start and whenever one appears, taken in like any other, and deleted
//! when they are stored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::paths::private_dir;
use agtmux_api::wire::EventIn;
use agtmux_tmux::platform::{self, Options, Platform, Token};
use tokio::time::timeout;

use crate::engine::{EngineHandle, Incoming};
use crate::observe::Discovery;
use crate::serve;

/// What the API takes, too.
const LARGEST: u64 = 1 << 20;
/// How many unreadable files are kept to be looked at.
const MOST_BAD: usize = 100;
/// When the disk refuses, or a file cannot be read now.
const TRY_AGAIN: Duration = Duration::from_secs(5);

const WATCH: Token = Token(1);

pub(crate) struct Spool {
    dir: PathBuf,
    engine: EngineHandle,
    discovery: Discovery,
}

enum Fate {
    /// Stored, or refused for good.
    Done,
    Unreadable(String),
    /// It stays where it is.
    Later,
}

impl Spool {
    pub(crate) fn new(dir: PathBuf, engine: EngineHandle, discovery: Discovery) -> Self {
        Self { dir, engine, discovery }
    }

    /// Runs until the daemon stops.
    pub(crate) async fn run(self) {
        match platform::open(Options { pty_events: false, force_portable: false }) {
            Ok(platform) => self.follow(platform).await,
            Err(error) => {
                tracing::warn!(%error, "the spool cannot be watched; what is in it now is read once");
                self.take_all().await;
            }
        }
    }

    async fn follow(&self, mut platform: Platform) {
        let mut warned = false;
        loop {
            // Before it is read: what comes after that is told of.
            let watched = self.watch(&platform);
            if let Err(error) = &watched
                && !std::mem::replace(&mut warned, true)
            {
                tracing::warn!(%error, "the spool cannot be watched; it is looked into now and then");
            }
            let signal = if self.take_all().await && watched.is_ok() {
                platform.signals.recv().await
            } else {
                match timeout(TRY_AGAIN, platform.signals.recv()).await {
                    Ok(signal) => signal,
                    Err(_) => continue,
                }
            };
            if signal.is_none() {
                return;
            }
        }
    }

    /// A directory that is gone is made again, and one that was replaced is watched anew.
    fn watch(&self, platform: &Platform) -> io::Result<()> {
        private_dir(&self.dir, "AGTMUX_STATE_DIR").map_err(io::Error::other)?;
        platform.watcher.watch_dir(WATCH, &self.dir)
    }

    /// The oldest first, one after the other. False when something had to be left for later.
    async fn take_all(&self) -> bool {
        let mut all = true;
        for path in waiting(&self.dir) {
            match self.take(&path).await {
                Fate::Done => remove(&path),
                Fate::Unreadable(why) => {
                    tracing::warn!(file = %path.display(), why, "an event in the spool cannot be read; it is put aside");
                    put_aside(&self.dir, &path);
                }
                Fate::Later => all = false,
            }
        }
        all
    }

    async fn take(&self, path: &Path) -> Fate {
        let bytes = match read(path) {
            Ok(bytes) => bytes,
            // Dropped by a hook that needed the room.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Fate::Done,
            Err(error) => return Fate::Unreadable(error.to_string()),
        };
        let event: EventIn = match serde_json::from_slice(&bytes) {
            Ok(event) => event,
            Err(error) => return Fate::Unreadable(error.to_string()),
        };
        if let Some(socket) = event.socket {
            // As if the hook had come in person: its server is watched from now on.
            self.discovery.caller(Some(format!("{socket},0,0")), None).await;
        }
        let outcome = match serve::read_event(bytes.into()).await {
            Ok(incoming) => {
                let incoming = serve::located(incoming, &self.discovery).await;
                self.engine.event(Incoming { was_kept: true, ..incoming }).await.map(drop)
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(()) => Fate::Done,
            Err(error) if serve::may_pass(error.code) => Fate::Later,
            Err(error) => {
                tracing::debug!(file = %path.display(), %error, "an event from the spool was refused");
                Fate::Done
            }
        }
    }
}

/// The names begin with the time. Drafts and the folder of bad ones are left out.
fn waiting(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let is_event = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_event).collect();
    files.sort();
    files
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    if meta.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it has more than 1 MiB"));
    }
    fs::read(path)
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file = %path.display(), %error, "a delivered event stays in the spool");
        }
        _ => {}
    }
}

fn put_aside(dir: &Path, path: &Path) {
    let bad = dir.join("bad");
    let moved = fs::create_dir_all(&bad).and_then(|()| {
        let mut earlier = waiting(&bad);
        let surplus = (earlier.len() + 1).saturating_sub(MOST_BAD);
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
    fn bad_ones_are_bounded_and_drafts_are_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(".x.tmp"), "draft").expect("written");
        for n in 0..MOST_BAD + 3 {
            let path = dir.path().join(format!("{n:04}.json"));
            fs::write(&path, "no event").expect("written");
            assert_eq!(waiting(dir.path()), std::slice::from_ref(&path));
            put_aside(dir.path(), &path);
        }
        let bad = waiting(&dir.path().join("bad"));
        assert_eq!(bad.len(), MOST_BAD);
        assert!(bad[0].ends_with("0003.json"), "the oldest go first: {}", bad[0].display());
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
