//! Brings each signal of the platform to the observer whom it concerns.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_tmux::platform::{Signal, Signals, Token, Watcher};
use tokio::sync::mpsc;

/// A hint that something is worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Notice {
    /// The program in this pane wrote or read.
    Output(u32),
    /// The pane's first process ended, or its terminal went.
    PaneEnded(u32),
    /// The agent in this pane ended.
    AgentEnded(u32),
    /// The agent in this pane said something of itself.
    AgentSpoke(u32),
    /// A file that the agent in this pane keeps about itself may have changed.
    AgentFile(u32),
    ServerEnded,
    /// A hook left a note.
    Hooked,
    /// Terminals came or went somewhere on this machine.
    Terminals,
    /// Sockets came or went in a directory.
    Sockets,
    /// The user's manifests may have changed.
    Manifests,
    /// Other agents are known, or are known by other signs: everybody is to be looked at anew.
    Relearned,
    /// Hints were lost.
    LookAgain,
    /// Put the hooks away and end.
    Retire,
}

pub(super) type Notices = mpsc::UnboundedSender<Notice>;

pub(super) struct Switchboard {
    watcher: Arc<dyn Watcher>,
    routes: Mutex<HashMap<Token, (Notices, Notice)>>,
    next: AtomicU64,
}

/// A watch that ends when it is dropped.
pub(super) struct Watch {
    token: Token,
    board: Arc<Switchboard>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.board.watcher.forget(self.token);
        self.board.routes().remove(&self.token);
    }
}

impl Switchboard {
    pub(super) fn new(watcher: Arc<dyn Watcher>) -> Arc<Self> {
        Arc::new(Self { watcher, routes: Mutex::default(), next: AtomicU64::new(1) })
    }

    pub(super) fn reports_output(&self) -> bool {
        self.watcher.reports_output()
    }

    pub(super) fn terminal(self: &Arc<Self>, tty: &Path, to: &Notices, notice: Notice) -> io::Result<Watch> {
        self.watch(to, notice, |token| self.watcher.watch_terminal(token, tty))
    }

    pub(super) fn process(
        self: &Arc<Self>,
        pid: u32,
        start: Option<u64>,
        to: &Notices,
        notice: Notice,
    ) -> io::Result<Watch> {
        self.watch(to, notice, |token| self.watcher.watch_process(token, pid, start))
    }

    pub(super) fn file(self: &Arc<Self>, path: &Path, to: &Notices, notice: Notice) -> io::Result<Watch> {
        self.watch(to, notice, |token| self.watcher.watch_file(token, path))
    }

    pub(super) fn dir(self: &Arc<Self>, path: &Path, to: &Notices, notice: Notice) -> io::Result<Watch> {
        self.watch(to, notice, |token| self.watcher.watch_dir(token, path))
    }

    pub(super) fn contents(self: &Arc<Self>, path: &Path, to: &Notices, notice: Notice) -> io::Result<Watch> {
        self.watch(to, notice, |token| self.watcher.watch_contents(token, path))
    }

    /// The route stands before the watch: a signal may come at once.
    fn watch(
        self: &Arc<Self>,
        to: &Notices,
        notice: Notice,
        begin: impl Fn(Token) -> io::Result<()>,
    ) -> io::Result<Watch> {
        let token = Token(self.next.fetch_add(1, Ordering::Relaxed));
        self.routes().insert(token, (to.clone(), notice));
        let watch = Watch { token, board: self.clone() };
        begin(token)?;
        Ok(watch)
    }

    /// Runs until the platform stops.
    pub(super) async fn connect(self: Arc<Self>, mut signals: Signals) {
        while let Some(signal) = signals.recv().await {
            match signal.token() {
                Some(token) => self.pass_on(token, &signal),
                None => self.tell_all(),
            }
        }
    }

    fn pass_on(&self, token: Token, signal: &Signal) {
        let routes = self.routes();
        let Some((to, notice)) = routes.get(&token) else { return };
        let notice = match (signal, notice) {
            (Signal::TerminalGone(_), Notice::Output(pane)) => Notice::PaneEnded(*pane),
            (_, notice) => notice.clone(),
        };
        // An observer that has ended needs no notices.
        let _ = to.send(notice);
    }

    fn tell_all(&self) {
        for (to, _) in self.routes().values() {
            let _ = to.send(Notice::LookAgain);
        }
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<Token, (Notices, Notice)>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
