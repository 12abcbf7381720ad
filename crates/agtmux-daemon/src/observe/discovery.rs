//! Which servers there are: every live socket in the user's tmux directory, those in the configuration, and any that a
//! caller brings along.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agtmux_agents::Registry;
use agtmux_api::config::Config;
use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{Fleet, Observation, OutageCode};
use agtmux_core::ids::{Generation, ServerKey, TargetName};
use agtmux_tmux::platform::{self, Options, ProcessTable};
use agtmux_tmux::{MINIMUM, SocketDir, TmuxError, TmuxServer, is_listening, own_socket, socket_of_tmux_variable};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::Senses;
use super::bare::{BareHosts, Processes, Reach};
use super::convert;
use super::lookout::Lookout;
use super::manifests::Manifests;
use super::server::ServerObserver;
use super::switchboard::{Notice, Notices, Switchboard, Watch};
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::roster::Roster;

/// A directory that cannot be watched, for instance because it is not there yet, is looked into this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long a server may take from making its socket to making its first terminal.
const LISTENS_WITHIN: Duration = Duration::from_secs(5);

/// How long the start waits for the first answers. A server that is slower is shown when it comes.
const FIRST_ANSWERS: Duration = Duration::from_millis(1500);

#[derive(Clone)]
pub(crate) struct Discovery(Arc<Inner>);

struct Inner {
    senses: Arc<Senses>,
    usual: SocketDir,
    places: Mutex<Places>,
    /// Somebody named a new place.
    named: Notify,
}

#[derive(Default)]
struct Places {
    dirs: BTreeSet<SocketDir>,
    /// Named by the configuration.
    sockets: BTreeSet<PathBuf>,
    /// Named by callers: forgotten when they are gone.
    brought: BTreeSet<PathBuf>,
    observed: HashMap<PathBuf, Observed>,
    retired: bool,
}

struct Observed {
    notices: Notices,
    report: watch::Receiver<Option<ServerHealth>>,
    task: JoinHandle<()>,
}

impl Discovery {
    /// Finds what is there and waits for its first listing, so that the first answer of the daemon is a true one.
    pub(crate) async fn start(
        config: Config,
        hook_dir: PathBuf,
        engine: EngineHandle,
        lookout: Arc<Lookout>,
        clock: Clock,
        remembered: &Fleet,
        manifests: Manifests,
    ) -> io::Result<Self> {
        let platform = platform::open(Options { pty_events: config.tmux.pty_events, force_portable: false })?;
        let switchboard = Switchboard::new(platform.watcher);
        tokio::spawn(switchboard.clone().connect(platform.signals));
        let usual = convert::usual_dir();
        let places = Places {
            dirs: BTreeSet::from([usual.clone()]),
            sockets: config.tmux.sockets.iter().cloned().collect(),
            ..Places::default()
        };
        let senses = Arc::new(Senses {
            config,
            hook_dir,
            engine,
            switchboard,
            processes: platform.processes,
            roster: Roster::new(manifests.registry()),
            lookout,
            clock,
            bare: BareHosts::default(),
        });
        let discovery = Self(Arc::new(Inner { senses, usual, places: Mutex::new(places), named: Notify::new() }));
        discovery.first_look(remembered).await;
        tokio::spawn(discovery.clone().keep_looking());
        tokio::spawn(manifests.follow(discovery.clone()));
        Ok(discovery)
    }

    async fn first_look(&self, remembered: &Fleet) {
        self.check_program().await;
        let here = remembered.servers().filter(|(key, _)| key.target.is_local());
        let known: HashMap<ServerKey, Generation> =
            here.map(|(key, server)| (key.clone(), server.generation)).collect();
        self.look(&known);
        let found: BTreeSet<ServerKey> =
            self.places().observed.keys().map(|socket| convert::server_key(socket, &self.0.usual)).collect();
        for key in known.into_keys().filter(|key| !found.contains(key)) {
            self.0.senses.engine.observe(Observation::ServerGone { server: key }).await;
        }
        let mut answers: JoinSet<()> = JoinSet::new();
        for observed in self.places().observed.values() {
            let mut report = observed.report.clone();
            answers.spawn(async move { drop(report.wait_for(Option::is_some).await) });
        }
        let all = async { while answers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FIRST_ANSWERS, all).await;
        self.0.senses.engine.settle().await;
    }

    /// A tmux that is missing or too old is worth a word even when no server runs.
    async fn check_program(&self) {
        let config = &self.0.senses.config.tmux;
        let fault = match TmuxServer::program_version(&config.program, config.command_timeout.0).await {
            Ok(version) if version.is_supported() => None,
            Ok(version) => {
                let message = format!("the installed tmux is {version}; agtmux needs {MINIMUM} or newer");
                Some((OutageCode::TmuxTooOld, message))
            }
            Err(error @ TmuxError::NotInstalled(_)) => Some((OutageCode::TmuxNotInstalled, error.to_string())),
            Err(error) => Some((OutageCode::ListingFailed, error.to_string())),
        };
        let outage = Observation::TargetOutage { target: TargetName::local(), outage: fault };
        self.0.senses.engine.observe(outage).await;
    }

    async fn keep_looking(self) {
        let (to, mut notices) = mpsc::unbounded_channel();
        let senses = self.0.senses.clone();
        let terminals = senses.switchboard.dir(Path::new("/dev/pts"), &to, Notice::Terminals);
        let _terminals = terminals.inspect_err(|error| tracing::debug!(%error, "new terminals go unnoticed"));
        let mut watches: HashMap<SocketDir, Watch> = HashMap::new();
        let mut sockets_came = None;
        loop {
            let dirs = self.places().dirs.clone();
            watches.retain(|dir, _| dir.path().is_dir());
            for dir in &dirs {
                if !watches.contains_key(dir)
                    && let Ok(watch) = senses.switchboard.dir(dir.path(), &to, Notice::Sockets)
                {
                    watches.insert(dir.clone(), watch);
                }
            }
            // After the watches stand: what came before them is found now, what comes later is told.
            self.look(&HashMap::new());
            tokio::select! {
                more = self.pass_on_terminals(&mut notices, &mut sockets_came) => if !more { return },
                () = self.0.named.notified() => {}
                () = tokio::time::sleep(LOOK_AGAIN), if watches.len() < dirs.len() || self.has_dead_sockets() => {}
            }
        }
    }

    /// Terminals come and go all day and are told to the observers. Returns when servers are to be looked for, or with
    /// false after the last notice.
    async fn pass_on_terminals(
        &self,
        notices: &mut mpsc::UnboundedReceiver<Notice>,
        sockets_came: &mut Option<Instant>,
    ) -> bool {
        loop {
            match notices.recv().await {
                None => return false,
                Some(Notice::Terminals) => {
                    self.tell(&Notice::Terminals);
                    // A server has its socket before it listens, and its first terminal after that.
                    if sockets_came.is_some_and(|at| at.elapsed() < LISTENS_WITHIN) {
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
    fn look(&self, known: &HashMap<ServerKey, Generation>) {
        let mut places = self.places();
        if places.retired {
            return;
        }
        let Places { dirs, observed, brought, .. } = &mut *places;
        observed.retain(|_, observed| !observed.task.is_finished());
        dirs.retain(|dir| *dir == self.0.usual || dir.path().is_dir());
        brought.retain(|socket| observed.contains_key(socket) || is_listening(socket));
        let in_dirs = places.dirs.iter().flat_map(SocketDir::sockets);
        let named = places.sockets.iter().chain(&places.brought).filter(|socket| own_socket(socket)).cloned();
        let sockets: BTreeSet<PathBuf> = in_dirs.chain(named).collect();
        for socket in sockets {
            if !places.observed.contains_key(&socket) && is_listening(&socket) {
                let observed = self.observe(&socket, known);
                places.observed.insert(socket, observed);
            }
        }
    }

    fn observe(&self, socket: &Path, known: &HashMap<ServerKey, Generation>) -> Observed {
        let senses = self.0.senses.clone();
        let key = convert::server_key(socket, &self.0.usual);
        let tmux = TmuxServer::new(&senses.config.tmux.program, socket, senses.config.tmux.command_timeout.0);
        let generation = known.get(&key).copied();
        tracing::info!(server = %key.server, "watching a tmux server");
        let (observer, notices, report) = ServerObserver::new(senses, key, tmux, generation);
        let inner = self.0.clone();
        let task = tokio::spawn(async move {
            observer.run().await;
            // Its socket may come back to life, and only looking tells.
            inner.named.notify_one();
        });
        Observed { notices, report, task }
    }

    /// A socket in the configuration that is not there yet may come at any time, in any directory.
    fn has_dead_sockets(&self) -> bool {
        let places = self.places();
        places.sockets.iter().any(|socket| places.observed.get(socket).is_none_or(|o| o.task.is_finished()))
    }

    /// A caller's `$TMUX` and `$TMUX_TMPDIR`. What is new in them is watched from now on.
    pub(crate) async fn caller(&self, tmux: Option<String>, tmpdir: Option<String>) {
        let socket = tmux.as_deref().and_then(socket_of_tmux_variable).filter(|socket| own_socket(socket));
        let dir = tmpdir.as_deref().map(|dir| SocketDir::below(Some(OsStr::new(dir))));
        let dir = dir.filter(|dir| dir.path().is_dir());
        let fresh = {
            let mut places = self.places();
            let new_dir = dir.is_some_and(|dir| places.dirs.insert(dir));
            let new_socket = socket.is_some_and(|s| !places.observed.contains_key(&s) && places.brought.insert(s));
            new_dir || new_socket
        };
        if fresh {
            // The caller wants to see its own server: look now, and wait until it has answered once.
            self.first_look_at_new().await;
            self.0.named.notify_one();
        }
    }

    async fn first_look_at_new(&self) {
        self.look(&HashMap::new());
        let mut reports: Vec<_> = self.places().observed.values().map(|o| o.report.clone()).collect();
        reports.retain(|report| report.borrow().is_none());
        let all = async {
            for mut report in reports {
                let _ = report.wait_for(Option::is_some).await;
            }
        };
        let _ = tokio::time::timeout(FIRST_ANSWERS, all).await;
        self.0.senses.engine.settle().await;
    }

    /// The way to the server of this name, if it is being observed, with as much patience as those have who act on it.
    pub(crate) fn reach(&self, key: &ServerKey) -> Option<Reach> {
        if !key.target.is_local() {
            return self.0.senses.bare.reach(key, self.0.senses.config.tmux_bridge.subprocess_timeout.0);
        }
        Some(Reach { tmux: self.tmux(key)?, processes: Processes::Here(self.processes()) })
    }

    /// Something was done on this host: what comes of it is worth a look, where nothing else tells.
    pub(crate) fn acted(&self, target: &TargetName) {
        self.0.senses.bare.nudge(target);
    }

    fn tmux(&self, key: &ServerKey) -> Option<TmuxServer> {
        let places = self.places();
        let socket = places.observed.keys().find(|socket| convert::server_key(socket, &self.0.usual) == *key)?;
        let config = &self.0.senses.config;
        Some(TmuxServer::new(&config.tmux.program, socket, config.tmux_bridge.subprocess_timeout.0))
    }

    pub(super) fn senses(&self) -> &Arc<Senses> {
        &self.0.senses
    }

    pub(crate) fn processes(&self) -> Arc<dyn ProcessTable> {
        self.0.senses.processes.clone()
    }

    /// The agents that are known at this moment.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.0.senses.roster.now()
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.senses.config
    }

    pub(super) fn switchboard(&self) -> &Arc<Switchboard> {
        &self.0.senses.switchboard
    }

    /// Other agents are known from now on. The engine hears of it before anybody looks again: what it is told then is
    /// what the new rules say.
    pub(super) async fn relearn(&self, registry: Arc<Registry>) {
        self.0.senses.roster.replace(registry.clone());
        self.0.senses.engine.relearn(registry).await;
        self.tell(&Notice::Relearned);
    }

    fn tell(&self, notice: &Notice) {
        for observed in self.places().observed.values() {
            let _ = observed.notices.send(notice.clone());
        }
    }

    pub(crate) fn servers(&self) -> Vec<ServerHealth> {
        let places = self.places();
        let alive = places.observed.values().filter(|o| !o.task.is_finished());
        let here = alive.filter_map(|o| o.report.borrow().clone());
        let mut servers: Vec<ServerHealth> = here.chain(self.0.senses.bare.reports()).collect();
        servers.sort_by(|a, b| (&a.target, &a.server).cmp(&(&b.target, &b.server)));
        servers
    }

    /// Puts the hooks away and ends every observer.
    pub(crate) async fn retire(&self) {
        let observed: Vec<Observed> = {
            let mut places = self.places();
            places.retired = true;
            places.observed.drain().map(|(_, observed)| observed).collect()
        };
        for one in &observed {
            let _ = one.notices.send(Notice::Retire);
        }
        for one in observed {
            let _ = one.task.await;
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
