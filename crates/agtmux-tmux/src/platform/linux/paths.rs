//! Watches plain files and directories.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::inotify::{Inotify, InotifyEvent, Wd};
use crate::platform::PathKind;
use crate::platform::signals::{SignalSender, WatchToken};

const ENTRIES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVE).union(WatchFlags::ONLYDIR);

fn watch_flags(kind: PathKind) -> WatchFlags {
    let own_end = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    match kind {
        // Unlinking an open file causes no DELETE_SELF, only ATTRIB.
        PathKind::File => own_end | WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::OPEN,
        PathKind::Dir => own_end | ENTRIES,
        PathKind::Contents => own_end | ENTRIES | WatchFlags::MODIFY,
    }
}

/// After one of these events, the path may name another file than before.
const PATH_MAY_HAVE_CHANGED: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::ATTRIB)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

struct WatchedPath {
    kind: PathKind,
    path: PathBuf,
    tokens: Vec<WatchToken>,
}

#[derive(Default)]
pub(super) struct PathWatches {
    by_wd: HashMap<Wd, WatchedPath>,
    by_token: HashMap<(PathKind, WatchToken), Wd>,
}

impl PathWatches {
    pub(super) fn watch(
        &mut self,
        inotify: &Inotify,
        kind: PathKind,
        token: WatchToken,
        path: &Path,
    ) -> io::Result<()> {
        let wd = add(inotify, kind, path)?;
        if self.by_token.get(&(kind, token)) == Some(&wd) {
            return Ok(());
        }
        self.unwatch_kind(inotify, kind, token);
        let watched =
            self.by_wd.entry(wd).or_insert_with(|| WatchedPath { kind, path: path.into(), tokens: Vec::new() });
        watched.tokens.push(token);
        self.by_token.insert((kind, token), wd);
        Ok(())
    }

    pub(super) fn unwatch(&mut self, inotify: &Inotify, token: WatchToken) {
        for kind in [PathKind::File, PathKind::Dir, PathKind::Contents] {
            self.unwatch_kind(inotify, kind, token);
        }
    }

    fn unwatch_kind(&mut self, inotify: &Inotify, kind: PathKind, token: WatchToken) {
        let Some(wd) = self.by_token.remove(&(kind, token)) else { return };
        let Some(watched) = self.by_wd.get_mut(&wd) else { return };
        watched.tokens.retain(|&other| other != token);
        if watched.tokens.is_empty() {
            self.by_wd.remove(&wd);
            inotify.remove(wd);
        }
    }

    pub(super) fn on_event(&mut self, inotify: &Inotify, event: InotifyEvent, signals: &SignalSender) {
        let Some(watched) = self.by_wd.get(&event.wd) else { return };
        signals.send_all(&watched.tokens, watched.kind.signal());
        if event.flags.intersects(PATH_MAY_HAVE_CHANGED) {
            self.rewatch(inotify, event.wd);
        }
    }

    /// Renews all watches after events were lost. One of the lost events may have said that a watch has ended.
    pub(super) fn rewatch_all(&mut self, inotify: &Inotify) {
        for wd in self.by_wd.keys().copied().collect::<Vec<_>>() {
            self.rewatch(inotify, wd);
        }
    }

    /// Moves a watch to the file that its path names now. Ends the watch if the path names no file.
    fn rewatch(&mut self, inotify: &Inotify, old: Wd) {
        let Some(watched) = self.by_wd.remove(&old) else { return };
        let found = add(inotify, watched.kind, &watched.path).ok();
        if found != Some(old) {
            inotify.remove(old);
        }
        for &token in &watched.tokens {
            match found {
                Some(wd) => self.by_token.insert((watched.kind, token), wd),
                None => self.by_token.remove(&(watched.kind, token)),
            };
        }
        let Some(wd) = found else { return };
        match self.by_wd.get_mut(&wd) {
            Some(other) => other.tokens.extend(watched.tokens),
            None => drop(self.by_wd.insert(wd, watched)),
        }
    }
}

fn add(inotify: &Inotify, kind: PathKind, path: &Path) -> io::Result<Wd> {
    // For a directory, the kernel itself checks the type. A terminal or pipe must not be watched as a file.
    if kind == PathKind::File && !std::fs::metadata(path)?.is_file() {
        let message = format!("{} is not a plain file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    inotify.add(path, watch_flags(kind))
}
