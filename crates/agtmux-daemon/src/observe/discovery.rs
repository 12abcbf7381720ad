//! Which servers there are: every live socket in the user's tmux directory, those in the configuration, and any that a
//! caller brings along.

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
use agtmux_core::ids::{Generation, ServerKey, TargetName};
use agtmux_tmux::platform::{self, PlatformOptions, ProcessTable};
use agtmux_tmux::{
    MIN_VERSION, SocketDir, TmuxError, TmuxServer, is_listening, is_own_socket, socket_of_tmux_variable,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::ObserverContext;
use super::agentless::{AgentlessHostMap, HostProcesses, ServerAccess};
use super::convert;
use super::manifests::UserManifestWatch;
use super::recheck_hints::RecheckHints;
use super::server_observer::ServerObserver;
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard};
use crate::clock::Clock;
use crate::current_registry::CurrentRegistry;
use crate::engine::EngineHandle;

/// A directory that cannot be watched, for instance because it is not there yet, is looked into this often.
const RESCAN_INTERVAL: Duration = Duration::from_secs(1);

/// How long a server may take from making its socket to making its first terminal.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the start waits for the first answers. A server that is slower is shown when it comes.
const FIRST_LISTING_TIMEOUT: Duration = Duration::from_millis(1500);

#[derive(Clone)]
pub(crate) struct Discovery(Arc<DiscoveryInner>);

struct DiscoveryInner {
    context: Arc<ObserverContext>,
    default_dir: SocketDir,
    known: Mutex<KnownSockets>,
    /// Somebody named a new place.
    rescan: Notify,
}

#[derive(Default)]
struct KnownSockets {
    dirs: BTreeSet<SocketDir>,
    /// Named by the configuration.
    configured: BTreeSet<PathBuf>,
    /// Named by callers: forgotten when they are gone.
    from_callers: BTreeSet<PathBuf>,
    observed: HashMap<PathBuf, RunningObserver>,
    stopped: bool,
}

struct RunningObserver {
    notices: HintSender,
    report: watch::Receiver<Option<ServerHealth>>,
    task: JoinHandle<()>,
}

impl Discovery {
    /// Finds what is there and waits for its first listing, so that the first answer of the daemon is a true one.
    pub(crate) async fn start(
        config: Config,
        hook_dir: PathBuf,
        engine: EngineHandle,
        lookout: Arc<RecheckHints>,
        clock: Clock,
        remembered: &Fleet,
        manifests: UserManifestWatch,
    ) -> io::Result<Self> {
        let platform = platform::open(PlatformOptions { pty_events: config.tmux.pty_events, force_portable: false })?;
        let switchboard = SignalRouter::new(platform.watcher);
        tokio::spawn(switchboard.clone().run(platform.signals));
        let usual = convert::default_socket_dir();
        let places = KnownSockets {
            dirs: BTreeSet::from([usual.clone()]),
            configured: config.tmux.sockets.iter().cloned().collect(),
            ..KnownSockets::default()
        };
        let senses = Arc::new(ObserverContext {
            config,
            hook_dir,
            engine,
            router: switchboard,
            processes: platform.processes,
            registry: CurrentRegistry::new(manifests.registry()),
            recheck_hints: lookout,
            clock,
            agentless: AgentlessHostMap::default(),
        });
        let discovery = Self(Arc::new(DiscoveryInner {
            context: senses,
            default_dir: usual,
            known: Mutex::new(places),
            rescan: Notify::new(),
        }));
        discovery.initial_scan(remembered).await;
        tokio::spawn(discovery.clone().watch_sockets());
        tokio::spawn(manifests.follow(discovery.clone()));
        Ok(discovery)
    }

    async fn initial_scan(&self, remembered: &Fleet) {
        self.check_program().await;
        let here = remembered.servers().filter(|(key, _)| key.target.is_local());
        let known: HashMap<ServerKey, Generation> =
            here.map(|(key, server)| (key.clone(), server.generation)).collect();
        self.scan(&known);
        let found: BTreeSet<ServerKey> =
            self.known().observed.keys().map(|socket| convert::server_key(socket, &self.0.default_dir)).collect();
        for key in known.into_keys().filter(|key| !found.contains(key)) {
            self.0.context.engine.apply_topology(TopologyUpdate::ServerGone { server: key }).await;
        }
        let mut answers: JoinSet<()> = JoinSet::new();
        for observed in self.known().observed.values() {
            let mut report = observed.report.clone();
            answers.spawn(async move { drop(report.wait_for(Option::is_some).await) });
        }
        let all = async { while answers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FIRST_LISTING_TIMEOUT, all).await;
        self.0.context.engine.flush().await;
    }

    /// A tmux that is missing or too old is worth a word even when no server runs.
    async fn check_program(&self) {
        let config = &self.0.context.config.tmux;
        let fault = match TmuxServer::program_version(&config.program, config.command_timeout.0).await {
            Ok(version) if version.is_supported() => None,
            Ok(version) => {
                let message = format!("the installed tmux is {version}; agtmux needs {MIN_VERSION} or newer");
                Some((OutageCode::TmuxTooOld, message))
            }
            Err(error @ TmuxError::NotInstalled(_)) => Some((OutageCode::TmuxNotInstalled, error.to_string())),
            Err(error) => Some((OutageCode::ListingFailed, error.to_string())),
        };
        let outage = TopologyUpdate::TargetOutage { target: TargetName::local(), outage: fault };
        self.0.context.engine.apply_topology(outage).await;
    }

    async fn watch_sockets(self) {
        let (to, mut notices) = mpsc::unbounded_channel();
        let senses = self.0.context.clone();
        let terminals = senses.router.watch_dir(Path::new("/dev/pts"), &to, ObserverHint::TerminalsChanged);
        let _terminals = terminals.inspect_err(|error| tracing::debug!(%error, "new terminals go unnoticed"));
        let mut watches: HashMap<SocketDir, WatchGuard> = HashMap::new();
        let mut sockets_came = None;
        loop {
            let dirs = self.known().dirs.clone();
            watches.retain(|dir, _| dir.path().is_dir());
            for dir in &dirs {
                if !watches.contains_key(dir)
                    && let Ok(watch) = senses.router.watch_dir(dir.path(), &to, ObserverHint::SocketsChanged)
                {
                    watches.insert(dir.clone(), watch);
                }
            }
            // After the watches stand: what came before them is found now, what comes later is told.
            self.scan(&HashMap::new());
            tokio::select! {
                more = self.forward_terminal_hints(&mut notices, &mut sockets_came) => if !more { return },
                () = self.0.rescan.notified() => {}
                () = tokio::time::sleep(RESCAN_INTERVAL), if watches.len() < dirs.len() || self.has_unobserved_configured() => {}
            }
        }
    }

    /// Terminals come and go all day and are told to the observers. Returns when servers are to be looked for, or with
    /// false after the last notice.
    async fn forward_terminal_hints(
        &self,
        notices: &mut mpsc::UnboundedReceiver<ObserverHint>,
        sockets_came: &mut Option<Instant>,
    ) -> bool {
        loop {
            match notices.recv().await {
                None => return false,
                Some(ObserverHint::TerminalsChanged) => {
                    self.broadcast(&ObserverHint::TerminalsChanged);
                    // A server has its socket before it listens, and its first terminal after that.
                    if sockets_came.is_some_and(|at| at.elapsed() < LISTEN_TIMEOUT) {
                        return true;
                    }
                }
                Some(_) => {
                    *sockets_came = Some(Instant::now());
                    return true;
                }
            }
        }
    }

    /// Begins to observe every live server that is not observed yet.
    fn scan(&self, known: &HashMap<ServerKey, Generation>) {
        let mut places = self.known();
        if places.stopped {
            return;
        }
        let KnownSockets { dirs, observed, from_callers: brought, .. } = &mut *places;
        observed.retain(|_, observed| !observed.task.is_finished());
        dirs.retain(|dir| *dir == self.0.default_dir || dir.path().is_dir());
        brought.retain(|socket| observed.contains_key(socket) || is_listening(socket));
        let in_dirs = places.dirs.iter().flat_map(SocketDir::sockets);
        let named =
            places.configured.iter().chain(&places.from_callers).filter(|socket| is_own_socket(socket)).cloned();
        let sockets: BTreeSet<PathBuf> = in_dirs.chain(named).collect();
        for socket in sockets {
            if !places.observed.contains_key(&socket) && is_listening(&socket) {
                let observed = self.observe(&socket, known);
                places.observed.insert(socket, observed);
            }
        }
    }

    fn observe(&self, socket: &Path, known: &HashMap<ServerKey, Generation>) -> RunningObserver {
        let senses = self.0.context.clone();
        let key = convert::server_key(socket, &self.0.default_dir);
        let tmux = TmuxServer::new(&senses.config.tmux.program, socket, senses.config.tmux.command_timeout.0);
        let generation = known.get(&key).copied();
        tracing::info!(server = %key.server, "watching a tmux server");
        let (observer, notices, report) = ServerObserver::new(senses, key, tmux, generation);
        let inner = self.0.clone();
        let task = tokio::spawn(async move {
            observer.run().await;
            // Its socket may come back to life, and only looking tells.
            inner.rescan.notify_one();
        });
        RunningObserver { notices, report, task }
    }

    /// A socket in the configuration that is not there yet may come at any time, in any directory.
    fn has_unobserved_configured(&self) -> bool {
        let places = self.known();
        places.configured.iter().any(|socket| places.observed.get(socket).is_none_or(|o| o.task.is_finished()))
    }

    /// A caller's `$TMUX` and `$TMUX_TMPDIR`. What is new in them is watched from now on.
    pub(crate) async fn add_caller_sockets(&self, tmux: Option<String>, tmpdir: Option<String>) {
        let socket = tmux.as_deref().and_then(socket_of_tmux_variable).filter(|socket| is_own_socket(socket));
        let dir = tmpdir.as_deref().map(|dir| SocketDir::below(Some(OsStr::new(dir))));
        let dir = dir.filter(|dir| dir.path().is_dir());
        let fresh = {
            let mut places = self.known();
            let new_dir = dir.is_some_and(|dir| places.dirs.insert(dir));
            let new_socket = socket.is_some_and(|s| !places.observed.contains_key(&s) && places.from_callers.insert(s));
            new_dir || new_socket
        };
        if fresh {
            // The caller wants to see its own server: look now, and wait until it has answered once.
            self.scan_and_wait().await;
            self.0.rescan.notify_one();
        }
    }

    async fn scan_and_wait(&self) {
        self.scan(&HashMap::new());
        let mut reports: Vec<_> = self.known().observed.values().map(|o| o.report.clone()).collect();
        reports.retain(|report| report.borrow().is_none());
        let all = async {
            for mut report in reports {
                let _ = report.wait_for(Option::is_some).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_LISTING_TIMEOUT, all).await;
        self.0.context.engine.flush().await;
    }

    /// The way to the server of this name, if it is being observed, with as much patience as those have who act on it.
    pub(crate) fn server_access(&self, key: &ServerKey) -> Option<ServerAccess> {
        if !key.target.is_local() {
            return self.0.context.agentless.server_access(key, self.0.context.config.tmux_bridge.subprocess_timeout.0);
        }
        Some(ServerAccess { tmux: self.tmux(key)?, processes: HostProcesses::Local(self.processes()) })
    }

    /// Something was done on this host: what comes of it is worth a look, where nothing else tells.
    pub(crate) fn note_action(&self, target: &TargetName) {
        self.0.context.agentless.wake(target);
    }

    fn tmux(&self, key: &ServerKey) -> Option<TmuxServer> {
        let places = self.known();
        let socket = places.observed.keys().find(|socket| convert::server_key(socket, &self.0.default_dir) == *key)?;
        let config = &self.0.context.config;
        Some(TmuxServer::new(&config.tmux.program, socket, config.tmux_bridge.subprocess_timeout.0))
    }

    pub(super) fn context(&self) -> &Arc<ObserverContext> {
        &self.0.context
    }

    pub(crate) fn processes(&self) -> Arc<dyn ProcessTable> {
        self.0.context.processes.clone()
    }

    /// The agents that are known at this moment.
    pub(crate) fn registry(&self) -> Arc<AgentRegistry> {
        self.0.context.registry.get()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.context.config
    }

    pub(super) fn router(&self) -> &Arc<SignalRouter> {
        &self.0.context.router
    }

    /// Other agents are known from now on. The engine hears of it before anybody looks again: what it is told then is
    /// what the new rules say.
    pub(super) async fn replace_registry(&self, registry: Arc<AgentRegistry>) {
        self.0.context.registry.replace(registry.clone());
        self.0.context.engine.set_registry(registry).await;
        self.broadcast(&ObserverHint::RegistryChanged);
    }

    fn broadcast(&self, notice: &ObserverHint) {
        for observed in self.known().observed.values() {
            let _ = observed.notices.send(notice.clone());
        }
    }

    pub(crate) fn servers(&self) -> Vec<ServerHealth> {
        let places = self.known();
        let alive = places.observed.values().filter(|o| !o.task.is_finished());
        let here = alive.filter_map(|o| o.report.borrow().clone());
        let mut servers: Vec<ServerHealth> = here.chain(self.0.context.agentless.reports()).collect();
        servers.sort_by(|a, b| (&a.target, &a.server).cmp(&(&b.target, &b.server)));
        servers
    }

    /// Puts the hooks away and ends every observer.
    pub(crate) async fn stop(&self) {
        let observed: Vec<RunningObserver> = {
            let mut places = self.known();
            places.stopped = true;
            places.observed.drain().map(|(_, observed)| observed).collect()
        };
        for one in &observed {
            let _ = one.notices.send(ObserverHint::Stop);
        }
        for one in observed {
            let _ = one.task.await;
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownSockets> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
