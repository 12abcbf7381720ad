//! Routes each platform signal to the observer that watches for it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_tmux::platform::{PlatformSignal, PlatformSignals, PlatformWatcher, WatchToken};
use tokio::sync::mpsc;

/// A hint that something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObserverHint {
    /// The program in this pane wrote or read.
    Output(u32),
    /// The pane's first process ended, or its terminal was closed.
    PaneEnded(u32),
    /// The agent in this pane ended.
    AgentEnded(u32),
    /// The agent in this pane sent an event.
    AgentSentEvent(u32),
    /// A status file or log of the agent in this pane may have changed.
    AgentFileChanged(u32),
    ServerEnded,
    /// A tmux hook fired.
    HookFired,
    /// Terminals were opened or closed on this machine.
    TerminalsChanged,
    /// Sockets were created or removed in a directory.
    SocketsChanged,
    /// The user's manifests may have changed.
    ManifestsChanged,
    /// The registry of agents changed. All panes must be checked again.
    RegistryChanged,
    /// Hints were lost.
    RecheckAll,
    /// Remove the tmux hooks and stop.
    Stop,
}

pub(crate) type HintSender = mpsc::UnboundedSender<ObserverHint>;

pub(crate) struct SignalRouter {
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
        hint: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, hint, |token| self.watcher.watch_terminal(token, tty))
    }

    pub(super) fn watch_process(
        self: &Arc<Self>,
        pid: u32,
        start: Option<u64>,
        to: &HintSender,
        hint: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, hint, |token| self.watcher.watch_process(token, pid, start))
    }

    pub(super) fn watch_file(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        hint: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, hint, |token| self.watcher.watch_file(token, path))
    }

    pub(super) fn watch_dir(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        hint: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, hint, |token| self.watcher.watch_dir(token, path))
    }

    pub(super) fn watch_contents(
        self: &Arc<Self>,
        path: &Path,
        to: &HintSender,
        hint: ObserverHint,
    ) -> io::Result<WatchGuard> {
        self.watch(to, hint, |token| self.watcher.watch_dir_contents(token, path))
    }

    /// Adds a route and starts the watch. The route comes first, because a signal may arrive at once.
    fn watch(
        self: &Arc<Self>,
        to: &HintSender,
        hint: ObserverHint,
        begin: impl Fn(WatchToken) -> io::Result<()>,
    ) -> io::Result<WatchGuard> {
        let token = WatchToken(self.next.fetch_add(1, Ordering::Relaxed));
        self.routes().insert(token, (to.clone(), hint));
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
        let Some((to, hint)) = routes.get(&token) else { return };
        let hint = match (signal, hint) {
            (PlatformSignal::TerminalGone(_), ObserverHint::Output(pane)) => ObserverHint::PaneEnded(*pane),
            (_, hint) => hint.clone(),
        };
        // The observer may have ended.
        let _ = to.send(hint);
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
