//! Watches one such host for as long as its shell lives.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::{Generation, ServerKey, ServerName, TargetName};
use agtmux_core::text;
use agtmux_tmux::host::{HostScan, HostScanRequest, HostShell, MAX_SOCKETS, ShellError};
use agtmux_tmux::platform::ProcessSnapshot;
use agtmux_tmux::{ActivityListing, MIN_VERSION, TmuxError, TmuxVersion};
use tokio::sync::mpsc;

use super::access::WatchedHost;
use super::host_schedule::{HostSchedule, ProcessSchedule};
use super::server::AgentlessServer;
use crate::observe::screen_schedule::DueCapture;
use crate::observe::{Discovery, ObserverContext, convert};
use crate::remote_timeouts::PROGRAM_TIMEOUT;

/// Looks at what the last look brought about, one after the other, before the host gets its rest.
const MAX_SCANS: usize = 4;
/// One that hangs is asked this often, and gets this long.
const HUNG_RETRY_DELAY: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// A server may stumble, for instance while it is ending.
const MAX_FAILURES: u32 = 2;

/// No more panes of one host are taken in than this.
const MAX_PANES: usize = 5_000;

/// Watches the host until its shell ends, and says why it did. Each answer is reported. Whoever lets go of this has the host
/// forgotten; what is known of it stays as it is.
pub(crate) async fn watch_agentless_host(
    discovery: &Discovery,
    target: TargetName,
    shell: HostShell,
    answered: impl FnMut(),
) -> ShellError {
    let senses = discovery.context().clone();
    let watched = senses.agentless.watch(target.clone(), shell.clone());
    let mut host = HostWatch::new(&senses, target, &watched);
    host.run(answered).await
}

struct HostWatch<'a> {
    senses: &'a Arc<ObserverContext>,
    target: TargetName,
    watched: &'a WatchedHost<'a>,
    servers: BTreeMap<PathBuf, AgentlessServer>,
    /// Sockets that are there, whether or not somebody listens, and those of them that nobody has asked yet.
    sockets: Vec<PathBuf>,
    unasked: Vec<PathBuf>,
    schedule: HostSchedule,
    process_schedule: ProcessSchedule,
    registry: Arc<AgentRegistry>,
    /// What was known of it before has been compared with what is there.
    reconciled: bool,
    /// Servers whose processes live and that are not found.
    without_socket: Vec<(ServerKey, Generation)>,
    /// The first of the sockets that are too many.
    first_skipped: Option<ServerKey>,
}

impl<'a> HostWatch<'a> {
    fn new(senses: &'a Arc<ObserverContext>, target: TargetName, watched: &'a WatchedHost<'a>) -> Self {
        Self {
            senses,
            target,
            watched,
            servers: BTreeMap::new(),
            sockets: Vec::new(),
            unasked: Vec::new(),
            schedule: HostSchedule::new(Instant::now()),
            process_schedule: ProcessSchedule::new(),
            registry: senses.registry.get(),
            reconciled: false,
            without_socket: Vec::new(),
            first_skipped: None,
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
                () = self.watched.host.wake.notified() => self.schedule.ask_soon(Instant::now()),
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
    }

    fn wake_at(&self) -> Instant {
        let looks = self.servers.values().filter_map(AgentlessServer::wake_at);
        looks.chain(self.process_schedule.urgent_at()).fold(self.schedule.wake_at(), Instant::min)
    }

    /// Whatever is due, and what that makes due at once.
    async fn round(&mut self) -> Result<(), ShellError> {
        self.apply_new_manifests();
        self.probe().await?;
        for n in 0..MAX_SCANS {
            let now = Instant::now();
            let lists = n == 0 && self.schedule.is_due(now);
            let fresh = std::mem::take(&mut self.unasked);
            let looks = self.take_due(now);
            let sweep = HostScanRequest {
                sockets: lists,
                servers: if lists { self.responsive_sockets() } else { fresh },
                panes: looks.iter().map(|(socket, looks)| (socket.clone(), panes_of(looks))).collect(),
                processes: self.process_schedule.is_due(now) || (lists && !self.without_socket.is_empty()),
            };
            if !sweep.sockets && sweep.servers.is_empty() && sweep.panes.is_empty() && !sweep.processes {
                break;
            }
            let began = self.senses.clock.now();
            let swept = self.watched.host.shell.scan(&sweep, PROGRAM_TIMEOUT).await?;
            self.schedule.note_answer(Instant::now());
            self.apply_scan(swept, looks, began).await?;
            if lists {
                self.schedule.asked(now, Instant::now());
            }
        }
        if self.schedule.needs_ping(Instant::now()) {
            self.watched.host.shell.ping(PROGRAM_TIMEOUT).await?;
            self.schedule.note_answer(Instant::now());
        }
        Ok(())
    }

    /// All but those that hang: each of them would hold up the others.
    fn responsive_sockets(&self) -> Vec<PathBuf> {
        let hangs = |socket: &PathBuf| self.servers.get(socket).is_some_and(|server| server.retry_at.is_some());
        self.sockets.iter().filter(|socket| !hangs(socket)).cloned().collect()
    }

    /// Whether one that hung answers again.
    async fn probe(&mut self) -> Result<(), ShellError> {
        let now = Instant::now();
        let due = |server: &&AgentlessServer| server.retry_at.is_some_and(|until| until <= now);
        let Some(socket) = self.servers.values().find(due).map(|server| server.socket.clone()) else { return Ok(()) };
        let sweep = HostScanRequest { servers: vec![socket], ..HostScanRequest::default() };
        let began = self.senses.clock.now();
        let swept = self.watched.host.shell.scan(&sweep, PROBE_TIMEOUT).await?;
        self.schedule.note_answer(Instant::now());
        self.apply_scan(swept, Vec::new(), began).await
    }

    fn take_due(&mut self, now: Instant) -> Vec<(PathBuf, Vec<DueCapture>)> {
        let looks = self.servers.iter_mut().map(|(socket, server)| (socket.clone(), server.take_due(now)));
        looks.filter(|(_, looks)| !looks.is_empty()).collect()
    }

    fn apply_new_manifests(&mut self) {
        let registry = self.senses.registry.get();
        if !Arc::ptr_eq(&registry, &self.registry) {
            self.registry = registry;
            let now = Instant::now();
            self.servers.values_mut().for_each(|server| server.apply_new_manifests(now));
            self.process_schedule.request(now);
        }
    }

    async fn apply_scan(
        &mut self,
        swept: HostScan,
        looks: Vec<(PathBuf, Vec<DueCapture>)>,
        began: jiff::Timestamp,
    ) -> Result<(), ShellError> {
        let all_asked = !swept.servers.is_empty() || swept.sockets.as_ref().is_some_and(Vec::is_empty);
        if let Some(mut sockets) = swept.sockets {
            self.limit_sockets(&mut sockets).await;
            self.drop_missing(&sockets).await?;
            self.unasked = sockets.iter().filter(|socket| !self.sockets.contains(socket)).cloned().collect();
            self.sockets = sockets;
        }
        for (socket, listing) in swept.servers {
            match listing {
                Ok(listing) => self.apply_listing(socket, listing).await,
                Err(error) => self.listing_failed(&socket, error).await?,
            }
        }
        if let Some(snapshot) = swept.processes {
            self.process_schedule.note_listed(Instant::now());
            // Where nobody is listed, not even who listed, nobody is known to be gone.
            if !snapshot.is_empty() {
                self.apply_processes(&snapshot, began).await;
            }
        }
        for (socket, looks) in looks {
            let captures = swept.captures.iter().find(|(of, _)| *of == socket).map(|(_, all)| all.as_slice());
            let Some(server) = self.servers.get_mut(&socket) else { continue };
            for seen in server.judge(&self.registry, looks, captures.unwrap_or_default(), began, Instant::now()) {
                self.senses.engine.apply_screen(seen).await;
            }
        }
        if all_asked && !std::mem::replace(&mut self.reconciled, true) {
            self.reconcile_known_servers().await?;
        }
        Ok(())
    }

    /// A host that has more sockets than anybody needs does not get more of our time, and whoever looks is told.
    async fn limit_sockets(&mut self, sockets: &mut Vec<PathBuf>) {
        let cut = sockets.get(MAX_SOCKETS).map(|socket| self.key(socket));
        sockets.truncate(MAX_SOCKETS);
        if cut == self.first_skipped {
            return;
        }
        let is_met = |key: &ServerKey| self.servers.values().any(|server| server.key == *key);
        if let Some(server) = self.first_skipped.take().filter(|key| !is_met(key)) {
            self.senses.engine.apply_topology(TopologyUpdate::ServerGone { server }).await;
        }
        let Some(server) = cut else { return };
        self.first_skipped = Some(server.clone());
        let message = format!("there are more than {MAX_SOCKETS} sockets: this one and those after it are not asked");
        let (generation, code) = (Generation { pid: 0, start_time: 0 }, OutageCode::ListingCut);
        self.senses.engine.apply_topology(TopologyUpdate::ServerOutage { server, generation, code, message }).await;
    }

    async fn apply_listing(&mut self, socket: PathBuf, listing: ActivityListing) {
        let now = Instant::now();
        self.ensure_server(&socket);
        let has_room = self.has_room(&socket, listing.listing.rows.len());
        let Some(server) = self.servers.get_mut(&socket) else { return };
        let (generation, version) = (convert::generation(&listing.listing.server), &listing.listing.server.version);
        if !TmuxVersion::parse(version).is_supported() {
            let message = format!("its tmux is {version}; agtmux needs {MIN_VERSION} or newer");
            server.generation.get_or_insert(generation);
            return self.report_outage(&socket, OutageCode::TmuxTooOld, message).await;
        }
        if !has_room {
            let message = format!("this host has more than {MAX_PANES} panes; those of this server are not taken in");
            server.generation.get_or_insert(generation);
            return self.report_outage(&socket, OutageCode::ListingCut, message).await;
        }
        let news = server.apply_listing(listing, now);
        if news.processes_changed {
            self.process_schedule.request(now);
        }
        if news.wrote {
            self.process_schedule.note_output();
        }
        if news.wrote || news.processes_changed || news.rows.is_some() {
            self.schedule.note_change(now);
        }
        let key = server.key.clone();
        if let Some(rows) = news.rows {
            self.publish_health(&socket);
            self.senses.engine.apply_topology(TopologyUpdate::Listed { server: key, generation, rows }).await;
        }
    }

    fn has_room(&self, socket: &Path, panes: usize) -> bool {
        let others = self.servers.iter().filter(|(other, _)| *other != socket);
        others.map(|(_, server)| server.count()).sum::<usize>() + panes <= MAX_PANES
    }

    fn ensure_server(&mut self, socket: &Path) {
        if self.servers.contains_key(socket) {
            return;
        }
        let key = self.key(socket);
        self.without_socket.retain(|(astray, _)| *astray != key);
        tracing::info!(target = %key.target, server = %key.server, "watching a tmux server through a shell");
        let (to, notices) = mpsc::unbounded_channel();
        let post = self.senses.recheck_hints.subscribe(key.clone(), to);
        self.servers.insert(socket.to_owned(), AgentlessServer::new(key, socket.to_owned(), notices, post));
        self.schedule.note_change(Instant::now());
    }

    fn key(&self, socket: &Path) -> ServerKey {
        let name = socket.file_name().unwrap_or(socket.as_os_str());
        ServerKey { target: self.target.clone(), server: ServerName::new(text::from_bytes(name.as_bytes())) }
    }

    async fn apply_processes(&mut self, snapshot: &ProcessSnapshot, began: jiff::Timestamp) {
        let now = Instant::now();
        self.drop_ended(snapshot).await;
        for server in self.servers.values_mut() {
            let Some(generation) = server.generation.filter(|_| !server.silent) else { continue };
            let panes = server.apply_processes(snapshot, &self.registry, now);
            if !panes.is_empty() {
                self.schedule.note_change(now);
                let processes = TopologyUpdate::Processes { server: server.key.clone(), generation, panes };
                self.senses.engine.apply_topology(processes).await;
            }
            for seen in server.take_new_headless(began) {
                self.senses.engine.apply_screen(seen).await;
            }
        }
    }

    /// Servers whose sockets are gone, unless they live on without them.
    async fn drop_missing(&mut self, sockets: &[PathBuf]) -> Result<(), ShellError> {
        let gone: Vec<PathBuf> = self.servers.keys().filter(|socket| !sockets.contains(socket)).cloned().collect();
        for socket in gone {
            self.listing_failed(&socket, TmuxError::NoServer).await?;
        }
        Ok(())
    }

    /// A failure is no emptiness: only a server whose process is not there any more is gone.
    async fn listing_failed(&mut self, socket: &Path, error: TmuxError) -> Result<(), ShellError> {
        if error != TmuxError::NoServer {
            // Somebody is there, though nothing was ever heard of it.
            self.ensure_server(socket);
        }
        let Some(server) = self.servers.get_mut(socket) else { return Ok(()) };
        server.failures += 1;
        let (stumbles, generation) = (server.failures, server.generation);
        if error == TmuxError::NoServer {
            let lives = match generation {
                Some(generation) => self.is_server_alive(generation).await?,
                None => false,
            };
            if !lives {
                self.drop_server(socket).await;
                return Ok(());
            }
        }
        let (code, message) = match &error {
            TmuxError::Timeout(_) => (OutageCode::ServerNotResponding, error.to_string()),
            TmuxError::NoServer => {
                (OutageCode::ServerNotResponding, "its process lives, but nobody listens on its socket".into())
            }
            _ if stumbles <= MAX_FAILURES => return Ok(()),
            _ => (OutageCode::ListingFailed, error.to_string()),
        };
        self.report_outage(socket, code, message).await;
        Ok(())
    }

    async fn is_server_alive(&self, generation: Generation) -> Result<bool, ShellError> {
        let snapshot = self.watched.host.shell.processes(PROGRAM_TIMEOUT).await?;
        Ok(has_server_process(&snapshot, generation))
    }

    async fn drop_server(&mut self, socket: &Path) {
        let Some(server) = self.servers.remove(socket) else { return };
        self.schedule.note_change(Instant::now());
        self.watched.host.drop_server(&server.key.server);
        self.senses.engine.apply_topology(TopologyUpdate::ServerGone { server: server.key }).await;
    }

    async fn report_outage(&mut self, socket: &Path, code: OutageCode, message: String) {
        let Some(server) = self.servers.get_mut(socket) else { return };
        server.silent = true;
        if code == OutageCode::ServerNotResponding {
            server.retry_at = Some(Instant::now() + HUNG_RETRY_DELAY);
        }
        let generation = server.generation.unwrap_or(Generation { pid: 0, start_time: 0 });
        let outage = TopologyUpdate::ServerOutage { server: server.key.clone(), generation, code, message };
        self.senses.engine.apply_topology(outage).await;
        self.publish_health(socket);
    }

    /// What was known from before this connection, whoever told of it, and was not found. A server may listen where nobody
    /// looks for it.
    async fn reconcile_known_servers(&mut self) -> Result<(), ShellError> {
        let here: BTreeSet<&ServerKey> = self.servers.values().map(|server| &server.key).collect();
        let known = self.senses.engine.servers_of(self.target.clone()).await;
        self.without_socket = known
            .into_iter()
            .filter(|(key, _)| !here.contains(key) && self.first_skipped.as_ref() != Some(key))
            .collect();
        if self.without_socket.is_empty() {
            return Ok(());
        }
        let snapshot = self.watched.host.shell.processes(PROGRAM_TIMEOUT).await?;
        self.drop_ended(&snapshot).await;
        let dir = text::from_bytes(self.watched.host.shell.facts().socket_dir.as_os_str().as_bytes());
        for (server, generation) in self.without_socket.clone() {
            let message =
                format!("its process lives, but it has no socket in {dir}, and without an agtmux nobody asks it");
            let code = OutageCode::ListingFailed;
            let outage = TopologyUpdate::ServerOutage { server, generation, code, message };
            self.senses.engine.apply_topology(outage).await;
        }
        Ok(())
    }

    /// Those of them whose process has ended.
    async fn drop_ended(&mut self, snapshot: &ProcessSnapshot) {
        let (astray, gone) = std::mem::take(&mut self.without_socket)
            .into_iter()
            .partition(|(_, one)| has_server_process(snapshot, *one));
        self.without_socket = astray;
        let gone: Vec<(ServerKey, Generation)> = gone;
        for (server, _) in gone {
            self.senses.engine.apply_topology(TopologyUpdate::ServerGone { server }).await;
        }
    }

    fn publish_health(&self, socket: &Path) {
        let Some(server) = self.servers.get(socket) else { return };
        let report = ServerHealth {
            target: server.key.target.to_string(),
            server: server.key.server.to_string(),
            socket: convert::path_text(&server.socket),
            pid: server.generation.map_or(0, |generation| generation.pid),
            tmux_version: server.version.clone(),
            panes: u32::try_from(server.count()).unwrap_or(u32::MAX),
            evidence: "polling".into(),
            hooks: false,
        };
        self.watched.host.put_server(server.key.server.clone(), server.socket.clone(), Some(report));
    }
}

/// Whether the process of a server is there.
fn has_server_process(snapshot: &ProcessSnapshot, generation: Generation) -> bool {
    let process = snapshot.process(generation.pid).filter(|process| !process.zombie);
    // Where nothing is told of processes at all, nobody is declared dead.
    snapshot.is_empty() || process.is_some_and(|process| process.name.starts_with(b"tmux"))
}

fn panes_of(looks: &[DueCapture]) -> Vec<u32> {
    looks.iter().map(|look| look.pane).collect()
}
