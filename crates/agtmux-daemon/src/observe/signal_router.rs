//! Routes each platform signal to the observer that watches for it.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_tmux::platform::{PlatformSignal, PlatformSignals, PlatformWatcher, WatchToken};
use tokio::sync::mpsc;

use super::reported_agents::AgentReport;

/// A hint that something may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObserverHint {
    /// The program in this pane wrote output or read input.
    Output(u32),
    /// The pane's first process ended, or its terminal was closed.
    PaneEnded(u32),
    /// The agent in this pane ended.
    AgentEnded(u32),
    /// The agent in this pane sent an event.
    AgentSentEvent(u32),
    /// The agent in this pane reported a dialog. Only the screen shows the content of the dialog.
    AgentAsked(u32),
    /// An agent reported that it runs in this pane, but agtmux has found no agent in this pane.
    AgentReported(u32, AgentReport),
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
    /// Files of the daemon were created or removed.
    FilesChanged,
    /// The registry of agents changed. All panes must be checked again.
    RegistryChanged,
    /// Some hints were lost, so everything must be checked again.
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

/// What to watch on this machine.
#[derive(Debug, Clone, Copy)]
pub(super) enum WatchSubject<'a> {
    Terminal(&'a Path),
    /// A pid and the start time of its process.
    Process(u32, Option<u64>),
    File(&'a Path),
    Dir(&'a Path),
    /// The entries of a directory, and writes to the files in it.
    DirContents(&'a Path),
}

/// Starts watches whose hints go to one observer.
#[derive(Clone)]
pub(super) struct HintWatcher {
    router: Arc<SignalRouter>,
    to: HintSender,
}

impl HintWatcher {
    pub(super) fn watch(&self, subject: WatchSubject<'_>, hint: ObserverHint) -> io::Result<WatchGuard> {
        let watcher = &self.router.watcher;
        let token = WatchToken(self.router.next.fetch_add(1, Ordering::Relaxed));
        // The route comes first, because a signal may arrive at once.
        self.router.routes().insert(token, (self.to.clone(), hint));
        let guard = WatchGuard { token, router: self.router.clone() };
        match subject {
            WatchSubject::Terminal(tty) => watcher.watch_terminal(token, tty)?,
            WatchSubject::Process(pid, start) => watcher.watch_process(token, pid, start)?,
            WatchSubject::File(path) => watcher.watch_file(token, path)?,
            WatchSubject::Dir(path) => watcher.watch_dir(token, path)?,
            WatchSubject::DirContents(path) => watcher.watch_dir_contents(token, path)?,
        }
        Ok(guard)
    }

    /// Sends this hint to the watcher's own observer at once, without a watch.
    pub(super) fn send(&self, hint: ObserverHint) {
        // The observer may have ended.
        let _ = self.to.send(hint);
    }
}

/// A watch that ends when it is dropped.
pub(crate) struct WatchGuard {
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

    /// Starts watches whose hints go to this observer.
    pub(super) fn watcher(self: &Arc<Self>, to: HintSender) -> HintWatcher {
        HintWatcher { router: self.clone(), to }
    }

    /// Runs until the platform sends no more signals.
    pub(super) async fn run(&self, signals: &mut PlatformSignals) {
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
