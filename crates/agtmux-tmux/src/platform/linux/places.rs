//! Plain files and directories, watched for as long as somebody asks.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::inotify::{Event, Inotify, Wd};
use crate::platform::signals::{Sender, Signal, Token};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    File,
    Dir,
    /// A directory and what is written to the files in it.
    Contents,
}

const ENTRIES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVE).union(WatchFlags::ONLYDIR);

impl Kind {
    fn flags(self) -> WatchFlags {
        let own_end = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        match self {
            // A file that somebody holds open is unlinked without DELETE_SELF: only ATTRIB tells.
            Self::File => own_end | WatchFlags::MODIFY | WatchFlags::ATTRIB | WatchFlags::OPEN,
            Self::Dir => own_end | ENTRIES,
            Self::Contents => own_end | ENTRIES | WatchFlags::MODIFY,
        }
    }

    fn signal(self) -> fn(Token) -> Signal {
        match self {
            Self::File => Signal::FileGrew,
            Self::Dir | Self::Contents => Signal::DirChanged,
        }
    }
}

/// After one of these the path may name something else.
const MOVED: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::ATTRIB)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

struct Place {
    kind: Kind,
    path: PathBuf,
    tokens: Vec<Token>,
}

#[derive(Default)]
pub(super) struct Places {
    by_wd: HashMap<Wd, Place>,
    by_token: HashMap<(Kind, Token), Wd>,
}

impl Places {
    pub(super) fn watch(&mut self, inotify: &Inotify, kind: Kind, token: Token, path: &Path) -> io::Result<()> {
        let wd = add(inotify, kind, path)?;
        if self.by_token.get(&(kind, token)) == Some(&wd) {
            return Ok(());
        }
        self.forget_kind(inotify, kind, token);
        let place = self.by_wd.entry(wd).or_insert_with(|| Place { kind, path: path.into(), tokens: Vec::new() });
        place.tokens.push(token);
        self.by_token.insert((kind, token), wd);
        Ok(())
    }

    pub(super) fn forget(&mut self, inotify: &Inotify, token: Token) {
        for kind in [Kind::File, Kind::Dir, Kind::Contents] {
            self.forget_kind(inotify, kind, token);
        }
    }

    fn forget_kind(&mut self, inotify: &Inotify, kind: Kind, token: Token) {
        let Some(wd) = self.by_token.remove(&(kind, token)) else { return };
        let Some(place) = self.by_wd.get_mut(&wd) else { return };
        place.tokens.retain(|&other| other != token);
        if place.tokens.is_empty() {
            self.by_wd.remove(&wd);
            inotify.remove(wd);
        }
    }

    pub(super) fn on_event(&mut self, inotify: &Inotify, event: Event, signals: &Sender) {
        let Some(place) = self.by_wd.get(&event.wd) else { return };
        signals.send_all(&place.tokens, place.kind.signal());
        if event.what.intersects(MOVED) {
            self.find_again(inotify, event.wd);
        }
    }

    /// Events were lost, among them perhaps the end of a watch.
    pub(super) fn find_all_again(&mut self, inotify: &Inotify) {
        for wd in self.by_wd.keys().copied().collect::<Vec<_>>() {
            self.find_again(inotify, wd);
        }
    }

    /// Moves the watch to what the path names now. If it names nothing the watch ends.
    fn find_again(&mut self, inotify: &Inotify, old: Wd) {
        let Some(place) = self.by_wd.remove(&old) else { return };
        let found = add(inotify, place.kind, &place.path).ok();
        if found != Some(old) {
            inotify.remove(old);
        }
        for &token in &place.tokens {
            match found {
                Some(wd) => self.by_token.insert((place.kind, token), wd),
                None => self.by_token.remove(&(place.kind, token)),
            };
        }
        let Some(wd) = found else { return };
        match self.by_wd.get_mut(&wd) {
            Some(other) => other.tokens.extend(place.tokens),
            None => drop(self.by_wd.insert(wd, place)),
        }
    }
}

fn add(inotify: &Inotify, kind: Kind, path: &Path) -> io::Result<Wd> {
    // The kernel checks directories itself; a terminal or a pipe must not be watched as if it were a file.
    if kind == Kind::File && !std::fs::metadata(path)?.is_file() {
        let message = format!("{} is not a plain file", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    inotify.add(path, kind.flags())
}
