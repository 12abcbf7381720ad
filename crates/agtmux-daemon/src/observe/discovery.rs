//! Finds tmux servers by their sockets. These are all live sockets in the user's tmux directory, the sockets in the
//! configuration, and the sockets that a caller's `$TMUX` or `$TMUX_TMPDIR` points to.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::config::Config;
use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{Fleet, OutageCode, TopologyUpdate};
use agtmux_core::ids::{ServerKey, TargetName};
use agtmux_tmux::platform::{self, PlatformOptions, ProcessTable};
use agtmux_tmux::{
    MIN_VERSION, SocketDir, TmuxError, TmuxServer, is_listening, is_own_socket, socket_of_tmux_variable,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;

use super::ObserverContext;
use super::convert;
use super::local_server::LocalServer;
use super::manifests::UserManifestWatch;
use super::recheck_hints::RecheckHints;
use super::reported_agents::RememberedServer;
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard, WatchSubject};
use crate::background::BackgroundTasks;
use crate::clock::Clock;
use crate::current_registry::CurrentRegistry;
use crate::engine::EngineHandle;
use crate::remote::{AgentlessHostMap, HostProcesses, ServerAccess};

/// How often to look for sockets in a directory that cannot be watched, for example because it does not exist yet.
const RESCAN_INTERVAL: Duration = Duration::from_secs(1);

/// The longest time that a new server may take from creating its socket to opening its first terminal.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the daemon waits at its start until each server has been listed once. A server that takes longer appears
/// when it answers.
const FIRST_LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the daemon waits before it observes a server again after the server's observer panicked.
const RESTART_DELAY: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Discovery(Arc<DiscoveryInner>);

struct DiscoveryInner {
    context: Arc<ObserverContext>,
    default_dir: SocketDir,
    known: Mutex<KnownSockets>,
    /// Wakes the loop that looks for new servers.
    rescan: Notify,
}

/// The data that the observers get from the rest of the daemon.
pub(crate) struct ObserverSetup {
    pub(crate) config: Config,
    pub(crate) hook_dir: PathBuf,
    pub(crate) engine: EngineHandle,
    pub(crate) recheck_hints: Arc<RecheckHints>,
    pub(crate) clock: Clock,
    pub(crate) background: BackgroundTasks,
}

#[derive(Default)]
struct KnownSockets {
    dirs: BTreeSet<SocketDir>,
    /// The sockets that the configuration names.
    configured: BTreeSet<PathBuf>,
    /// The sockets that callers named. A socket is removed from this set when its server ends.
    from_callers: BTreeSet<PathBuf>,
    observed: HashMap<PathBuf, RunningObserver>,
    stopped: bool,
}

struct RunningObserver {
    hints: HintSender,
    report: watch::Receiver<Option<ServerHealth>>,
    task: JoinHandle<()>,
}

impl Discovery {
    /// Finds the running servers and waits until each of them has been listed once, so that the daemon's first response
    /// is complete.
    pub(crate) async fn start(
        setup: ObserverSetup,
        remembered: &Fleet,
        manifests: UserManifestWatch,
    ) -> io::Result<Self> {
        let ObserverSetup { config, hook_dir, engine, recheck_hints, clock, background } = setup;
        let platform = platform::open(PlatformOptions { pty_events: config.tmux.pty_events, force_portable: false })?;
        let router = SignalRouter::new(platform.watcher);
        let signals = Arc::new(tokio::sync::Mutex::new((router.clone(), platform.signals)));
        background.keep("signal_router", move || {
            let signals = signals.clone();
            async move {
                let (router, signals) = &mut *signals.lock().await;
                router.run(signals).await;
            }
        });
        let default_dir = convert::default_socket_dir();
        let known = KnownSockets {
            dirs: BTreeSet::from([default_dir.clone()]),
            configured: config.tmux.sockets.iter().cloned().collect(),
            ..KnownSockets::default()
        };
        let context = Arc::new(ObserverContext {
            config,
            hook_dir,
            engine,
            router,
            processes: platform.processes,
            registry: CurrentRegistry::new(manifests.registry()),
            recheck_hints,
            clock,
            agentless: AgentlessHostMap::default(),
            background,
        });
        let discovery =
            Self(Arc::new(DiscoveryInner { context, default_dir, known: Mutex::new(known), rescan: Notify::new() }));
        discovery.initial_scan(remembered).await;
        discovery.start_followers(manifests);
        Ok(discovery)
    }

    fn start_followers(&self, manifests: UserManifestWatch) {
        let (background, discovery) = (&self.0.context.background, self.clone());
        background.keep("server_discovery", move || discovery.clone().watch_sockets());
        let (manifests, discovery) = (Arc::new(tokio::sync::Mutex::new(manifests)), self.clone());
        background.keep("user_manifests", move || {
            let (manifests, discovery) = (manifests.clone(), discovery.clone());
            async move { manifests.lock().await.follow(&discovery).await }
        });
    }

    async fn initial_scan(&self, remembered: &Fleet) {
        self.check_program().await;
        let local = remembered.servers().filter(|(key, _)| key.target.is_local());
        let known: HashMap<ServerKey, RememberedServer> =
            local.map(|(key, server)| (key.clone(), RememberedServer::new(server))).collect();
        self.scan(&known);
        let found: BTreeSet<ServerKey> =
            self.known().observed.keys().map(|socket| convert::server_key(socket, &self.0.default_dir)).collect();
        for key in known.into_keys().filter(|key| !found.contains(key)) {
            self.0.context.engine.apply_topology(TopologyUpdate::ServerGone { server: key }).await;
        }
        self.wait_for_first_look().await;
    }

    /// Reports an outage of this host if tmux is missing or too old. Works even if no tmux server runs.
    async fn check_program(&self) {
        let config = &self.0.context.config.tmux;
        let fault = match TmuxServer::program_version(&config.program, config.command_timeout.0).await {
            Ok(version) if version.is_supported() => None,
            Ok(version) => {
                let message = format!("the installed tmux is {version}; agtmux requires {MIN_VERSION} or newer");
                Some((OutageCode::TmuxTooOld, message))
            }
            Err(error @ TmuxError::NotInstalled(_)) => Some((OutageCode::TmuxNotInstalled, error.to_string())),
            Err(error) => Some((OutageCode::ListingFailed, error.to_string())),
        };
        let outage = TopologyUpdate::TargetOutage { target: TargetName::local(), outage: fault };
        self.0.context.engine.apply_topology(outage).await;
    }

    async fn watch_sockets(self) {
        let (to, mut hints) = mpsc::unbounded_channel();
        let watcher = self.0.context.router.watcher(to);
        let terminals = watcher.watch(WatchSubject::Dir(Path::new("/dev/pts")), ObserverHint::TerminalsChanged);
        let _terminals = terminals.inspect_err(|error| tracing::debug!(%error, "cannot watch /dev/pts"));
        let mut watches: HashMap<SocketDir, WatchGuard> = HashMap::new();
        let mut sockets_changed_at = None;
        loop {
            let dirs = self.known().dirs.clone();
            watches.retain(|dir, _| dir.path().is_dir());
            for dir in &dirs {
                if !watches.contains_key(dir)
                    && let Ok(watch) = watcher.watch(WatchSubject::Dir(dir.path()), ObserverHint::SocketsChanged)
                {
                    watches.insert(dir.clone(), watch);
                }
            }
            // Scan after the watches are set, so that no socket is missed in between.
            self.scan(&HashMap::new());
            let must_poll = watches.len() < dirs.len() || self.has_unobserved_configured();
            tokio::select! {
                more = self.forward_terminal_hints(&mut hints, &mut sockets_changed_at) => if !more { return },
                () = self.0.rescan.notified() => {}
                () = tokio::time::sleep(RESCAN_INTERVAL), if must_poll => {}
            }
        }
    }

    /// Forwards hints about new or closed terminals to the observers. Returns true when new servers must be looked for,
    /// and false when the channel of hints is closed.
    async fn forward_terminal_hints(
        &self,
        hints: &mut mpsc::UnboundedReceiver<ObserverHint>,
        sockets_changed_at: &mut Option<Instant>,
    ) -> bool {
        loop {
            match hints.recv().await {
                None => return false,
                Some(ObserverHint::TerminalsChanged) => {
                    self.broadcast(&ObserverHint::TerminalsChanged);
                    // A new server listens on its socket only after creating it, and then opens its first terminal.
                    // Scan again, because the first scan may have come too early.
                    if sockets_changed_at.is_some_and(|at| at.elapsed() < LISTEN_TIMEOUT) {
                        return true;
                    }
                }
                Some(_) => {
                    *sockets_changed_at = Some(Instant::now());
                    return true;
                }
            }
        }
    }

    /// Starts an observer for every live server that does not have one.
    fn scan(&self, known: &HashMap<ServerKey, RememberedServer>) {
        let mut known_sockets = self.known();
        if known_sockets.stopped {
            return;
        }
        let KnownSockets { dirs, observed, from_callers, .. } = &mut *known_sockets;
        observed.retain(|_, observed| !observed.task.is_finished());
        dirs.retain(|dir| *dir == self.0.default_dir || dir.path().is_dir());
        from_callers.retain(|socket| observed.contains_key(socket) || is_listening(socket));
        let in_dirs = known_sockets.dirs.iter().flat_map(SocketDir::sockets);
        let named = known_sockets
            .configured
            .iter()
            .chain(&known_sockets.from_callers)
            .filter(|socket| is_own_socket(socket))
            .cloned();
        let sockets: BTreeSet<PathBuf> = in_dirs.chain(named).collect();
        for socket in sockets {
            if !known_sockets.observed.contains_key(&socket) && is_listening(&socket) {
                let observed = self.observe(&socket, known);
                known_sockets.observed.insert(socket, observed);
            }
        }
    }

    fn observe(&self, socket: &Path, known: &HashMap<ServerKey, RememberedServer>) -> RunningObserver {
        let context = self.0.context.clone();
        let key = convert::server_key(socket, &self.0.default_dir);
        let tmux = TmuxServer::new(&context.config.tmux.program, socket, context.config.tmux.command_timeout.0);
        let remembered = known.get(&key).cloned();
        tracing::info!(server = %key.server, "watching a tmux server");
        let (name, background) = (format!("observer_of_{}", key.server), context.background.clone());
        let (engine, server) = (context.engine.clone(), key.clone());
        let (observer, hints, report) = LocalServer::new(context, key, tmux, remembered);
        let inner = self.0.clone();
        let task = tokio::spawn(async move {
            match background.attempt(&name, observer.run()).await.0 {
                Ok(()) => background.clear(&name),
                Err(panic) => {
                    background.report_fault(&name, format!("{panic}; the server is observed again"));
                    report_failed_observer(&engine, server).await;
                    background.pause(RESTART_DELAY).await;
                }
            }
            // A new server may use the same socket, and only a scan finds it.
            inner.rescan.notify_one();
        });
        RunningObserver { hints, report, task }
    }

    /// Whether a configured socket has no running observer. The daemon polls such a socket, because its server may
    /// start at any time.
    fn has_unobserved_configured(&self) -> bool {
        let known = self.known();
        known.configured.iter().any(|socket| known.observed.get(socket).is_none_or(|o| o.task.is_finished()))
    }

    /// Starts watching the servers that a caller's `$TMUX` and `$TMUX_TMPDIR` name, if they are new.
    pub(crate) async fn add_caller_sockets(&self, tmux: Option<String>, tmpdir: Option<String>) {
        let socket = tmux.as_deref().and_then(socket_of_tmux_variable).filter(|socket| is_own_socket(socket));
        let dir = tmpdir.as_deref().map(|dir| SocketDir::below(Some(OsStr::new(dir))));
        let dir = dir.filter(|dir| dir.path().is_dir());
        let is_new = {
            let mut known = self.known();
            let new_dir = dir.is_some_and(|dir| known.dirs.insert(dir));
            let new_socket = socket.is_some_and(|s| !known.observed.contains_key(&s) && known.from_callers.insert(s));
            new_dir || new_socket
        };
        if is_new {
            // The caller expects to see its own server, so wait for the first look at it.
            self.scan(&HashMap::new());
            self.wait_for_first_look().await;
            self.0.rescan.notify_one();
        }
    }

    async fn wait_for_first_look(&self) {
        let reports: Vec<_> = self.known().observed.values().map(|o| o.report.clone()).collect();
        let all = async {
            for mut report in reports {
                let _ = report.wait_for(Option::is_some).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_LOOK_TIMEOUT, all).await;
        self.0.context.engine.flush().await;
    }

    /// The means to access an observed server, with the timeout for actions.
    pub(crate) fn server_access(&self, key: &ServerKey) -> Option<ServerAccess> {
        let timeout = self.config().tmux_bridge.subprocess_timeout.0;
        if !key.target.is_local() {
            return self.0.context.agentless.server_access(key, timeout);
        }
        let known = self.known();
        let socket = known.observed.keys().find(|socket| convert::server_key(socket, &self.0.default_dir) == *key)?;
        let tmux = TmuxServer::new(&self.config().tmux.program, socket, timeout);
        Some(ServerAccess { tmux, processes: HostProcesses::Local(self.processes()) })
    }

    /// Notes that an action ran on this target. If the target is an agentless host, polls it at once, because such a
    /// host sends no hints.
    pub(crate) fn note_action(&self, target: &TargetName) {
        self.0.context.agentless.wake(target);
    }

    pub(crate) fn context(&self) -> &Arc<ObserverContext> {
        &self.0.context
    }

    pub(crate) fn processes(&self) -> Arc<dyn ProcessTable> {
        self.0.context.processes.clone()
    }

    /// The current registry of agents.
    pub(crate) fn registry(&self) -> Arc<AgentRegistry> {
        self.0.context.registry.get()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.context.config
    }

    /// Replaces the agent registry. The engine gets the new registry before the observers use it, so that the engine
    /// never mixes evidence from old and new rules.
    pub(super) async fn replace_registry(&self, registry: Arc<AgentRegistry>) {
        self.0.context.registry.replace(registry.clone());
        self.0.context.engine.set_registry(registry).await;
        self.broadcast(&ObserverHint::RegistryChanged);
    }

    /// Watches the entries of these directories. Returns `None` if one of them cannot be watched.
    pub(crate) fn watch_dirs(
        &self,
        dirs: &[&Path],
    ) -> Option<(mpsc::UnboundedReceiver<ObserverHint>, Vec<WatchGuard>)> {
        let (to, hints) = mpsc::unbounded_channel();
        let watcher = self.0.context.router.watcher(to);
        let watch = |dir: &&Path| watcher.watch(WatchSubject::Dir(dir), ObserverHint::FilesChanged).ok();
        Some((hints, dirs.iter().map(watch).collect::<Option<Vec<_>>>()?))
    }

    /// Watches the output of a pane on this machine. Returns `None` if its terminal cannot be watched.
    pub(crate) fn watch_output(
        &self,
        terminal: &Path,
        pane: u32,
    ) -> Option<(mpsc::UnboundedReceiver<ObserverHint>, WatchGuard)> {
        let (to, hints) = mpsc::unbounded_channel();
        let watcher = self.0.context.router.watcher(to);
        let watch = watcher.watch(WatchSubject::Terminal(terminal), ObserverHint::Output(pane)).ok()?;
        Some((hints, watch))
    }

    /// The background tasks of the daemon.
    pub(crate) fn background(&self) -> &BackgroundTasks {
        &self.0.context.background
    }

    fn broadcast(&self, hint: &ObserverHint) {
        for observed in self.known().observed.values() {
            let _ = observed.hints.send(hint.clone());
        }
    }

    pub(crate) fn servers(&self) -> Vec<ServerHealth> {
        let known = self.known();
        let alive = known.observed.values().filter(|o| !o.task.is_finished());
        let local = alive.filter_map(|o| o.report.borrow().clone());
        let mut servers: Vec<ServerHealth> = local.chain(self.0.context.agentless.reports()).collect();
        servers.sort_by(|a, b| (&a.target, &a.server).cmp(&(&b.target, &b.server)));
        servers
    }

    /// Removes the tmux hooks and stops all observers.
    pub(crate) async fn stop(&self) {
        let observed: Vec<RunningObserver> = {
            let mut known = self.known();
            known.stopped = true;
            known.observed.drain().map(|(_, observed)| observed).collect()
        };
        for one in &observed {
            let _ = one.hints.send(ObserverHint::Stop);
        }
        for one in observed {
            let _ = one.task.await;
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownSockets> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
/// Reports an outage of the server whose observer failed. The states of its agents are out of date until the server is
/// observed again.
async fn report_failed_observer(engine: &EngineHandle, failed: ServerKey) {
    let known = engine.servers_of(failed.target.clone()).await;
    let Some((server, generation)) = known.into_iter().find(|(server, _)| *server == failed) else { return };
    let message = "agtmux failed to observe this server and tries again".to_owned();
    let code = OutageCode::ListingFailed;
    engine.apply_topology(TopologyUpdate::ServerOutage { server, generation, code, message }).await;
}
