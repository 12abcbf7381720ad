//! Watches one such host for as long as its shell lives.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::Registry;
use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{Observation, OutageCode};
use agtmux_core::ids::{Generation, ServerKey, ServerName, TargetName};
use agtmux_core::text;
use agtmux_tmux::host::{HostShell, MOST_SOCKETS, ShellError, Sweep, Swept};
use agtmux_tmux::platform::Snapshot;
use agtmux_tmux::{MINIMUM, PulseListing, TmuxError, Version};
use tokio::sync::mpsc;

use super::pace::{Census, Pace};
use super::reach::Watched;
use super::server::Server;
use crate::observe::screens::Look;
use crate::observe::{Discovery, Senses, convert};
use crate::patience::PROGRAM;

/// Looks at what the last look brought about, one after the other, before the host gets its rest.
const IN_A_ROW: usize = 4;
/// One that hangs is asked this often, and gets this long.
const REST: Duration = Duration::from_secs(5);
const PROBE: Duration = Duration::from_secs(1);
/// A server may stumble, for instance while it is ending.
const STUMBLES: u32 = 2;

/// No more panes of one host are taken in than this.
const MOST_PANES: usize = 5_000;

/// Watches the host until its shell ends, and says why it did. Each answer is reported. Whoever lets go of this has the host
/// forgotten; what is known of it stays as it is.
pub(crate) async fn run_bare(
    discovery: &Discovery,
    target: TargetName,
    shell: HostShell,
    answered: impl FnMut(),
) -> ShellError {
    let senses = discovery.senses().clone();
    let watched = senses.bare.watch(target.clone(), shell.clone());
    let mut host = Host::new(&senses, target, &watched);
    host.run(answered).await
}

struct Host<'a> {
    senses: &'a Arc<Senses>,
    target: TargetName,
    watched: &'a Watched<'a>,
    servers: BTreeMap<PathBuf, Server>,
    /// Sockets that are there, whether or not somebody listens, and those of them that nobody has asked yet.
    sockets: Vec<PathBuf>,
    fresh: Vec<PathBuf>,
    pace: Pace,
    census: Census,
    registry: Arc<Registry>,
    /// What was known of it before has been compared with what is there.
    compared: bool,
    /// Servers whose processes live and that are not found.
    astray: Vec<(ServerKey, Generation)>,
    /// The first of the sockets that are too many.
    cut: Option<ServerKey>,
}

impl<'a> Host<'a> {
    fn new(senses: &'a Arc<Senses>, target: TargetName, watched: &'a Watched<'a>) -> Self {
        Self {
            senses,
            target,
            watched,
            servers: BTreeMap::new(),
            sockets: Vec::new(),
            fresh: Vec::new(),
            pace: Pace::new(Instant::now()),
            census: Census::new(),
            registry: senses.roster.now(),
            compared: false,
            astray: Vec::new(),
            cut: None,
        }
    }

    async fn run(&mut self, mut answered: impl FnMut()) -> ShellError {
        loop {
            if let Err(why) = self.round().await {
                return why;
            }
            answered();
            let wake_at = self.wake_at().into();
            tokio::select! {
                why = self.watched.host.shell.ended() => return why,
                () = self.watched.host.nudge.notified() => self.pace.hurry(Instant::now()),
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
    }

    fn wake_at(&self) -> Instant {
        let looks = self.servers.values().filter_map(Server::wake_at);
        looks.chain(self.census.urgent_at()).fold(self.pace.wake_at(), Instant::min)
    }

    /// Whatever is due, and what that makes due at once.
    async fn round(&mut self) -> Result<(), ShellError> {
        self.relearn();
        self.probe().await?;
        for n in 0..IN_A_ROW {
            let now = Instant::now();
            let lists = n == 0 && self.pace.is_due(now);
            let fresh = std::mem::take(&mut self.fresh);
            let looks = self.due(now);
            let sweep = Sweep {
                sockets: lists,
                servers: if lists { self.awake() } else { fresh },
                panes: looks.iter().map(|(socket, looks)| (socket.clone(), panes_of(looks))).collect(),
                processes: self.census.is_due(now) || (lists && !self.astray.is_empty()),
            };
            if !sweep.sockets && sweep.servers.is_empty() && sweep.panes.is_empty() && !sweep.processes {
                break;
            }
            let began = self.senses.clock.now();
            let swept = self.watched.host.shell.sweep(&sweep, PROGRAM).await?;
            self.pace.heard(Instant::now());
            self.take_in(swept, looks, began).await?;
            if lists {
                self.pace.asked(now, Instant::now());
            }
        }
        if self.pace.wants_a_word(Instant::now()) {
            self.watched.host.shell.ping(PROGRAM).await?;
            self.pace.heard(Instant::now());
        }
        Ok(())
    }

    /// All but those that hang: each of them would hold up the others.
    fn awake(&self) -> Vec<PathBuf> {
        let hangs = |socket: &PathBuf| self.servers.get(socket).is_some_and(|server| server.resting_until.is_some());
        self.sockets.iter().filter(|socket| !hangs(socket)).cloned().collect()
    }

    /// Whether one that hung answers again.
    async fn probe(&mut self) -> Result<(), ShellError> {
        let now = Instant::now();
        let due = |server: &&Server| server.resting_until.is_some_and(|until| until <= now);
        let Some(socket) = self.servers.values().find(due).map(|server| server.socket.clone()) else { return Ok(()) };
        let sweep = Sweep { servers: vec![socket], ..Sweep::default() };
        let began = self.senses.clock.now();
        let swept = self.watched.host.shell.sweep(&sweep, PROBE).await?;
        self.pace.heard(Instant::now());
        self.take_in(swept, Vec::new(), began).await
    }

    fn due(&mut self, now: Instant) -> Vec<(PathBuf, Vec<Look>)> {
        let looks = self.servers.iter_mut().map(|(socket, server)| (socket.clone(), server.looks(now)));
        looks.filter(|(_, looks)| !looks.is_empty()).collect()
    }

    fn relearn(&mut self) {
        let registry = self.senses.roster.now();
        if !Arc::ptr_eq(&registry, &self.registry) {
            self.registry = registry;
            let now = Instant::now();
            self.servers.values_mut().for_each(|server| server.relearn(now));
            self.census.disturb(now);
        }
    }

    async fn take_in(
        &mut self,
        swept: Swept,
        looks: Vec<(PathBuf, Vec<Look>)>,
        began: jiff::Timestamp,
    ) -> Result<(), ShellError> {
        let all_asked = !swept.servers.is_empty() || swept.sockets.as_ref().is_some_and(Vec::is_empty);
        if let Some(mut sockets) = swept.sockets {
            self.cut_off(&mut sockets).await;
            self.leave(&sockets).await?;
            self.fresh = sockets.iter().filter(|socket| !self.sockets.contains(socket)).cloned().collect();
            self.sockets = sockets;
        }
        for (socket, listing) in swept.servers {
            match listing {
                Ok(listing) => self.listed(socket, listing).await,
                Err(error) => self.failed(&socket, error).await?,
            }
        }
        if let Some(snapshot) = swept.processes {
            self.census.taken(Instant::now());
            // Where nobody is listed, not even who listed, nobody is known to be gone.
            if !snapshot.is_empty() {
                self.counted(&snapshot, began).await;
            }
        }
        for (socket, looks) in looks {
            let captures = swept.captures.iter().find(|(of, _)| *of == socket).map(|(_, all)| all.as_slice());
            let Some(server) = self.servers.get_mut(&socket) else { continue };
            for seen in server.judge(&self.registry, looks, captures.unwrap_or_default(), began, Instant::now()) {
                self.senses.engine.seen(seen).await;
            }
        }
        if all_asked && !std::mem::replace(&mut self.compared, true) {
            self.account_for_the_rest().await?;
        }
        Ok(())
    }

    /// A host that has more sockets than anybody needs does not get more of our time, and whoever looks is told.
    async fn cut_off(&mut self, sockets: &mut Vec<PathBuf>) {
        let cut = sockets.get(MOST_SOCKETS).map(|socket| self.key(socket));
        sockets.truncate(MOST_SOCKETS);
        if cut == self.cut {
            return;
        }
        let is_met = |key: &ServerKey| self.servers.values().any(|server| server.key == *key);
        if let Some(server) = self.cut.take().filter(|key| !is_met(key)) {
            self.senses.engine.observe(Observation::ServerGone { server }).await;
        }
        let Some(server) = cut else { return };
        self.cut = Some(server.clone());
        let message = format!("there are more than {MOST_SOCKETS} sockets: this one and those after it are not asked");
        let (generation, code) = (Generation { pid: 0, start_time: 0 }, OutageCode::ListingCut);
        self.senses.engine.observe(Observation::ServerOutage { server, generation, code, message }).await;
    }

    async fn listed(&mut self, socket: PathBuf, listing: PulseListing) {
        let now = Instant::now();
        self.meet(&socket);
        let has_room = self.has_room(&socket, listing.listing.rows.len());
        let Some(server) = self.servers.get_mut(&socket) else { return };
        let (generation, version) = (convert::generation(&listing.listing.server), &listing.listing.server.version);
        if !Version::parse(version).is_supported() {
            let message = format!("its tmux is {version}; agtmux needs {MINIMUM} or newer");
            server.generation.get_or_insert(generation);
            return self.outage(&socket, OutageCode::TmuxTooOld, message).await;
        }
        if !has_room {
            let message = format!("this host has more than {MOST_PANES} panes; those of this server are not taken in");
            server.generation.get_or_insert(generation);
            return self.outage(&socket, OutageCode::ListingCut, message).await;
        }
        let news = server.follow(listing, now);
        if news.disturbed {
            self.census.disturb(now);
        }
        if news.wrote {
            self.census.wrote();
        }
        if news.wrote || news.disturbed || news.rows.is_some() {
            self.pace.stir(now);
        }
        let key = server.key.clone();
        if let Some(rows) = news.rows {
            self.report(&socket);
            self.senses.engine.observe(Observation::Listed { server: key, generation, rows }).await;
        }
    }

    fn has_room(&self, socket: &Path, panes: usize) -> bool {
        let others = self.servers.iter().filter(|(other, _)| *other != socket);
        others.map(|(_, server)| server.count()).sum::<usize>() + panes <= MOST_PANES
    }

    fn meet(&mut self, socket: &Path) {
        if self.servers.contains_key(socket) {
            return;
        }
        let key = self.key(socket);
        self.astray.retain(|(astray, _)| *astray != key);
        tracing::info!(target = %key.target, server = %key.server, "watching a tmux server through a shell");
        let (to, notices) = mpsc::unbounded_channel();
        let post = self.senses.lookout.man(key.clone(), to);
        self.servers.insert(socket.to_owned(), Server::new(key, socket.to_owned(), notices, post));
        self.pace.stir(Instant::now());
    }

    fn key(&self, socket: &Path) -> ServerKey {
        let name = socket.file_name().unwrap_or(socket.as_os_str());
        ServerKey { target: self.target.clone(), server: ServerName::new(text::from_bytes(name.as_bytes())) }
    }

    async fn counted(&mut self, snapshot: &Snapshot, began: jiff::Timestamp) {
        let now = Instant::now();
        self.forget_the_gone(snapshot).await;
        for server in self.servers.values_mut() {
            let Some(generation) = server.generation.filter(|_| !server.silent) else { continue };
            let panes = server.census(snapshot, &self.registry, now);
            if !panes.is_empty() {
                self.pace.stir(now);
                let processes = Observation::Processes { server: server.key.clone(), generation, panes };
                self.senses.engine.observe(processes).await;
            }
            for seen in server.headless(began) {
                self.senses.engine.seen(seen).await;
            }
        }
    }

    /// Servers whose sockets are gone, unless they live on without them.
    async fn leave(&mut self, sockets: &[PathBuf]) -> Result<(), ShellError> {
        let gone: Vec<PathBuf> = self.servers.keys().filter(|socket| !sockets.contains(socket)).cloned().collect();
        for socket in gone {
            self.failed(&socket, TmuxError::NoServer).await?;
        }
        Ok(())
    }

    /// A failure is no emptiness: only a server whose process is not there any more is gone.
    async fn failed(&mut self, socket: &Path, error: TmuxError) -> Result<(), ShellError> {
        if error != TmuxError::NoServer {
            // Somebody is there, though nothing was ever heard of it.
            self.meet(socket);
        }
        let Some(server) = self.servers.get_mut(socket) else { return Ok(()) };
        server.stumbles += 1;
        let (stumbles, generation) = (server.stumbles, server.generation);
        if error == TmuxError::NoServer {
            let lives = match generation {
                Some(generation) => self.lives(generation).await?,
                None => false,
            };
            if !lives {
                self.gone(socket).await;
                return Ok(());
            }
        }
        let (code, message) = match &error {
            TmuxError::Timeout(_) => (OutageCode::ServerNotResponding, error.to_string()),
            TmuxError::NoServer => {
                (OutageCode::ServerNotResponding, "its process lives, but nobody listens on its socket".into())
            }
            _ if stumbles <= STUMBLES => return Ok(()),
            _ => (OutageCode::ListingFailed, error.to_string()),
        };
        self.outage(socket, code, message).await;
        Ok(())
    }

    async fn lives(&self, generation: Generation) -> Result<bool, ShellError> {
        let snapshot = self.watched.host.shell.processes(PROGRAM).await?;
        Ok(lives(&snapshot, generation))
    }

    async fn gone(&mut self, socket: &Path) {
        let Some(server) = self.servers.remove(socket) else { return };
        self.pace.stir(Instant::now());
        self.watched.host.drop_server(&server.key.server);
        self.senses.engine.observe(Observation::ServerGone { server: server.key }).await;
    }

    async fn outage(&mut self, socket: &Path, code: OutageCode, message: String) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        server.silent = true;
        if code == OutageCode::ServerNotResponding {
            server.resting_until = Some(Instant::now() + REST);
        }
        let generation = server.generation.unwrap_or(Generation { pid: 0, start_time: 0 });
        let outage = Observation::ServerOutage { server: server.key.clone(), generation, code, message };
        self.senses.engine.observe(outage).await;
        self.report(socket);
    }

    /// What was known from before this connection, whoever told of it, and was not found. A server may listen where nobody
    /// looks for it.
    async fn account_for_the_rest(&mut self) -> Result<(), ShellError> {
        let here: BTreeSet<&ServerKey> = self.servers.values().map(|server| &server.key).collect();
        let known = self.senses.engine.servers_of(self.target.clone()).await;
        self.astray =
            known.into_iter().filter(|(key, _)| !here.contains(key) && self.cut.as_ref() != Some(key)).collect();
        if self.astray.is_empty() {
            return Ok(());
        }
        let snapshot = self.watched.host.shell.processes(PROGRAM).await?;
        self.forget_the_gone(&snapshot).await;
        let dir = text::from_bytes(self.watched.host.shell.facts().socket_dir.as_os_str().as_bytes());
        for (server, generation) in self.astray.clone() {
            let message =
                format!("its process lives, but it has no socket in {dir}, and without an agtmux nobody asks it");
            let code = OutageCode::ListingFailed;
            let outage = Observation::ServerOutage { server, generation, code, message };
            self.senses.engine.observe(outage).await;
        }
        Ok(())
    }

    /// Those of them whose process has ended.
    async fn forget_the_gone(&mut self, snapshot: &Snapshot) {
        let (astray, gone) = std::mem::take(&mut self.astray).into_iter().partition(|(_, one)| lives(snapshot, *one));
        self.astray = astray;
        let gone: Vec<(ServerKey, Generation)> = gone;
        for (server, _) in gone {
            self.senses.engine.observe(Observation::ServerGone { server }).await;
        }
    }

    fn report(&self, socket: &Path) {
        let Some(server) = self.servers.get(socket) else { return };
        let report = ServerHealth {
            target: server.key.target.to_string(),
            server: server.key.server.to_string(),
            socket: convert::path(&server.socket),
            pid: server.generation.map_or(0, |generation| generation.pid),
            tmux_version: server.version.clone(),
            panes: u32::try_from(server.count()).unwrap_or(u32::MAX),
            evidence: "polling".into(),
            hooks: false,
        };
        self.watched.host.put(server.key.server.clone(), server.socket.clone(), Some(report));
    }
}

/// Whether the process of a server is there.
fn lives(snapshot: &Snapshot, generation: Generation) -> bool {
    let process = snapshot.process(generation.pid).filter(|process| !process.zombie);
    // Where nothing is told of processes at all, nobody is declared dead.
    snapshot.is_empty() || process.is_some_and(|process| process.name.starts_with(b"tmux"))
}

fn panes_of(looks: &[Look]) -> Vec<u32> {
    looks.iter().map(|look| look.pane).collect()
}
