//! Brings each signal of the platform to the observer whom it concerns.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_tmux::platform::{PlatformSignal, PlatformSignals, PlatformWatcher, WatchToken};
use tokio::sync::mpsc;

/// A hint that something is worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObserverHint {
    /// The program in this pane wrote or read.
    Output(u32),
    /// The pane's first process ended, or its terminal went.
    PaneEnded(u32),
    /// The agent in this pane ended.
    AgentEnded(u32),
    /// The agent in this pane said something of itself.
    AgentSpoke(u32),
    /// A file that the agent in this pane keeps about itself may have changed.
    AgentFileChanged(u32),
    ServerEnded,
    /// A hook left a note.
    HookFired,
    /// Terminals came or went somewhere on this machine.
    TerminalsChanged,
    /// Sockets came or went in a directory.
    SocketsChanged,
    /// The user's manifests may have changed.
    ManifestsChanged,
    /// Other agents are known, or are known by other signs: everybody is to be looked at anew.
    RegistryChanged,
    /// Hints were lost.
    RecheckAll,
    /// Put the hooks away and end.
    Stop,
}

pub(super) type HintSender = mpsc::UnboundedSender<ObserverHint>;

pub(super) struct SignalRouter {
    watcher: Arc<dyn PlatformWatcher>,
    routes: Mutex<HashMap<WatchToken, (HintSender, ObserverHint)>>,
    next: AtomicU64,
}

/// A watch that ends when it is dropped.
pub(super) struct WatchGuard {
    token: WatchToken,
    router: Arc<SignalRouter>,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.router.watcher.unwatch(self.token);
        self.router.routes().remove(&self.token);
    }
}

impl SignalRouter {
    pub(super) fn new(watcher: Arc<dyn PlatformWatcher>) -> Arc<Self> {
        Arc::new(Self { watcher, routes: Mutex::default(), next: AtomicU64::new(1) })
    }

    pub(super) fn reports_output(&self) -> bool {
        self.watcher.reports_output()
    }

    pub(super) fn watch_terminal(
        self: &Arc<Self>,
        tty: &Path,
        to: &HintSender,
        notice: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, notice, |token| self.watcher.watch_terminal(token, tty))
    }

    pub(super) fn watch_process(
        self: &Arc<Self>,
        pid: u32,
        start: Option<u64>,
        to: &HintSender,
        notice: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, notice, |token| self.watcher.watch_process(token, pid, start))
    }

    pub(super) fn watch_file(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        notice: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, notice, |token| self.watcher.watch_file(token, path))
    }

    pub(super) fn watch_dir(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        notice: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, notice, |token| self.watcher.watch_dir(token, path))
    }

    pub(super) fn watch_contents(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        notice: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, notice, |token| self.watcher.watch_dir_contents(token, path))
    }

    /// The route stands before the watch: a signal may come at once.
    fn watch(
        self: &Arc<Self>,
        to: &HintSender,
        notice: ObserverHint,
        begin: impl Fn(WatchToken) -> io::Result<()>,
    ) -> io::Result<WatchGuard> {
        let token = WatchToken(self.next.fetch_add(1, Ordering::Relaxed));
        self.routes().insert(token, (to.clone(), notice));
        let watch = WatchGuard { token, router: self.clone() };
        begin(token)?;
        Ok(watch)
    }

    /// Runs until the platform stops.
    pub(super) async fn run(self: Arc<Self>, mut signals: PlatformSignals) {
        while let Some(signal) = signals.recv().await {
            match signal.token() {
                Some(token) => self.route(token, &signal),
                None => self.broadcast_recheck(),
            }
        }
    }

    fn route(&self, token: WatchToken, signal: &PlatformSignal) {
        let routes = self.routes();
        let Some((to, notice)) = routes.get(&token) else { return };
        let notice = match (signal, notice) {
            (PlatformSignal::TerminalGone(_), ObserverHint::Output(pane)) => ObserverHint::PaneEnded(*pane),
            (_, notice) => notice.clone(),
        };
        // An observer that has ended needs no notices.
        let _ = to.send(notice);
    }

    fn broadcast_recheck(&self) {
        for (to, _) in self.routes().values() {
            let _ = to.send(ObserverHint::RecheckAll);
        }
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<WatchToken, (HintSender, ObserverHint)>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
