//! Terminals are watched one-shot: an event disarms the watch, and a timer arms it again. So a program that writes as
//! fast as it can costs as little as one that writes ten times a second, and is not slowed down.
//!
//! What is written while the watch is disarmed is not seen. Arming it again therefore always ends with one more
//! [`Signal::Wrote`]: a reader that looks after it sees everything written before, and what comes later gives an event.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::inotify::{Event, Inotify, Wd};
use crate::platform::signals::{Sender, Signal, Token};
use crate::platform::tty::Terminal;

/// At most one [`Signal::Wrote`] per terminal in this time.
pub(super) const REARM: Duration = Duration::from_millis(100);

/// How long to wait when the kernel refuses to arm a watch that it granted before.
const RETRY: Duration = Duration::from_secs(1);

const OUTPUT: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ACCESS);
const END: WatchFlags = WatchFlags::CLOSE_WRITE.union(WatchFlags::DELETE_SELF).union(WatchFlags::ONESHOT);

type Id = u64;

struct Watched {
    path: PathBuf,
    terminal: Terminal,
    tokens: Vec<Token>,
    /// `None` while disarmed; then it is due.
    wd: Option<Wd>,
    last_wrote: Option<Instant>,
}

pub(super) struct Terminals {
    report_output: bool,
    watched: HashMap<Id, Watched>,
    by_wd: HashMap<Wd, Id>,
    by_token: HashMap<Token, Id>,
    due: BTreeSet<(Instant, Id)>,
    next_id: Id,
}

impl Terminals {
    pub(super) fn new(report_output: bool) -> Self {
        Self {
            report_output,
            watched: HashMap::new(),
            by_wd: HashMap::new(),
            by_token: HashMap::new(),
            due: BTreeSet::new(),
            next_id: 0,
        }
    }

    pub(super) fn watch(&mut self, inotify: &Inotify, token: Token, path: &Path) -> io::Result<()> {
        let terminal = Terminal::at(path)?;
        let known = self.watched.iter().find(|(_, watched)| watched.terminal.is(&terminal)).map(|(&id, _)| id);
        if known.is_some() && known == self.by_token.get(&token).copied() {
            return Ok(());
        }
        self.forget(inotify, token);
        let id = match known {
            Some(id) => id,
            None => self.watch_new(inotify, terminal, path)?,
        };
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.tokens.push(token);
            self.by_token.insert(token, id);
        }
        Ok(())
    }

    fn watch_new(&mut self, inotify: &Inotify, terminal: Terminal, path: &Path) -> io::Result<Id> {
        let wd = inotify.add(path, self.flags())?;
        if let Some(&id) = self.by_wd.get(&wd) {
            return Ok(id);
        }
        let id = self.next_id;
        self.next_id += 1;
        let watched = Watched { path: path.into(), terminal, tokens: Vec::new(), wd: Some(wd), last_wrote: None };
        self.watched.insert(id, watched);
        self.by_wd.insert(wd, id);
        Ok(id)
    }

    pub(super) fn forget(&mut self, inotify: &Inotify, token: Token) {
        let Some(id) = self.by_token.remove(&token) else { return };
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.tokens.retain(|&other| other != token);
        if watched.tokens.is_empty()
            && let Some(wd) = self.drop_watch(id).and_then(|watched| watched.wd)
        {
            inotify.remove(wd);
        }
    }

    fn drop_watch(&mut self, id: Id) -> Option<Watched> {
        let watched = self.watched.remove(&id)?;
        if let Some(wd) = watched.wd {
            self.by_wd.remove(&wd);
        }
        self.due.retain(|&(_, due)| due != id);
        for token in &watched.tokens {
            self.by_token.remove(token);
        }
        Some(watched)
    }

    /// Events of watches that ended by our own doing, and those of others, are not known here.
    pub(super) fn on_event(&mut self, event: Event, now: Instant, signals: &Sender) {
        let Some(id) = self.by_wd.remove(&event.wd) else { return };
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.wd = None;
        if event.what.intersects(ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT) {
            self.gone(id, signals);
            return;
        }
        let mut due = now + REARM;
        if event.what.contains(ReadFlags::CLOSE_WRITE) {
            signals.send_all(&watched.tokens, Signal::TerminalGone);
        } else if event.what.intersects(ReadFlags::MODIFY | ReadFlags::ACCESS) {
            match watched.last_wrote.map(|last| last + REARM).filter(|&free| now < free) {
                Some(free) => due = free,
                None => {
                    signals.send_all(&watched.tokens, Signal::Wrote);
                    watched.last_wrote = Some(now);
                }
            }
        }
        self.due.insert((due, id));
    }

    /// When [`rearm_due`](Self::rearm_due) has something to do; `None` while all is quiet.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(due, _)| due)
    }

    pub(super) fn rearm_due(&mut self, inotify: &Inotify, now: Instant, signals: &Sender) {
        while let Some(&(due, id)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            self.rearm(inotify, id, now, signals);
        }
    }

    /// Events were lost, and with each of them a watch that is disarmed without our knowing.
    pub(super) fn rearm_all(&mut self, inotify: &Inotify, now: Instant, signals: &Sender) {
        for id in std::mem::take(&mut self.by_wd).into_values() {
            self.rearm(inotify, id, now, signals);
        }
    }

    fn rearm(&mut self, inotify: &Inotify, id: Id, now: Instant, signals: &Sender) {
        let flags = self.flags();
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.wd = None;
        let armed = inotify.add(&watched.path, flags);
        // Looked at after arming: if it is still the same terminal now, it was the one that got the watch.
        if !Terminal::at(&watched.path).is_ok_and(|terminal| terminal.is(&watched.terminal)) {
            if let Ok(wd) = armed
                && !self.by_wd.contains_key(&wd)
            {
                inotify.remove(wd);
            }
            self.gone(id, signals);
            return;
        }
        match armed {
            Ok(wd) => {
                watched.wd = Some(wd);
                self.by_wd.insert(wd, id);
            }
            Err(error) => {
                tracing::warn!(%error, tty = %watched.path.display(), "cannot watch a terminal again; will retry");
                self.due.insert((now + RETRY, id));
            }
        }
        if self.report_output {
            watched.last_wrote = Some(now);
            signals.send_all(&watched.tokens, Signal::Wrote);
        }
    }

    fn gone(&mut self, id: Id, signals: &Sender) {
        if let Some(watched) = self.drop_watch(id) {
            signals.send_all(&watched.tokens, Signal::TerminalGone);
        }
    }

    fn flags(&self) -> WatchFlags {
        if self.report_output { OUTPUT | END } else { END }
    }
}
