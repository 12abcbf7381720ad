//! Watches one agentless host while its shell is open.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::{Generation, ServerKey, ServerName, TargetName};
use agtmux_core::text;
use agtmux_tmux::host::{HostScanRequest, HostShell, MAX_SOCKETS, ShellError};
use agtmux_tmux::platform::ProcessSnapshot;
use agtmux_tmux::{ActivityListing, TmuxError};

use super::access::AgentlessHost;
use super::host_schedule::{HostSchedule, ProcessSchedule};
use super::server::AgentlessServer;
use crate::observe::{DueCapture, ObserverContext, convert};
use crate::remote::limits::MAX_PANES;
use crate::remote::timeouts::PROGRAM_TIMEOUT;

/// The most scans in one round. A scan may make another scan due.
const MAX_SCANS: usize = 4;
/// How often a hung server is probed, and how long it may take to answer.
const HUNG_RETRY_DELAY: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Watches one agentless host. After this value is dropped, the host is no longer watched, but its panes stay in the
/// fleet.
pub(in crate::remote) struct HostWatch<'a> {
    context: &'a Arc<ObserverContext>,
    target: TargetName,
    host: Arc<AgentlessHost>,
    servers: BTreeMap<PathBuf, AgentlessServer>,
    /// The sockets on the host, whether or not a server listens on them. `unasked` contains the sockets whose servers
    /// have not been listed yet.
    sockets: Vec<PathBuf>,
    unasked: Vec<PathBuf>,
    schedule: HostSchedule,
    process_schedule: ProcessSchedule,
    registry: Arc<AgentRegistry>,
    /// Whether agtmux has compared the stored servers of this host with the running servers.
    reconciled: bool,
    /// Known servers whose process is alive, but whose socket was not found on the host.
    without_socket: Vec<(ServerKey, Generation)>,
    /// The first socket beyond `MAX_SOCKETS`. agtmux watches neither this socket nor the following ones.
    first_skipped: Option<ServerKey>,
}

impl<'a> HostWatch<'a> {
    pub(in crate::remote) fn new(context: &'a Arc<ObserverContext>, target: TargetName, shell: HostShell) -> Self {
        let host = context.agentless.watch(target.clone(), shell);
        Self {
            context,
            target,
            host,
            servers: BTreeMap::new(),
            sockets: Vec::new(),
            unasked: Vec::new(),
            schedule: HostSchedule::new(Instant::now()),
            process_schedule: ProcessSchedule::new(),
            registry: context.registry.get(),
            reconciled: false,
            without_socket: Vec::new(),
            first_skipped: None,
        }
    }

    /// Waits until work is due and does it. Returns when the host has answered, or fails with the reason why its shell
    /// ended.
    pub(in crate::remote) async fn next_answer(&mut self) -> Result<(), ShellError> {
        let wake_at = self.wake_at().into();
        tokio::select! {
            why = self.host.shell.ended() => return Err(why),
            () = self.host.wake.notified() => self.schedule.ask_soon(Instant::now()),
            () = tokio::time::sleep_until(wake_at) => {}
        }
        self.round().await
    }

    fn wake_at(&self) -> Instant {
        let due = self.servers.values().filter_map(|server| server.observer.wake_at());
        due.chain(self.process_schedule.urgent_at()).fold(self.schedule.wake_at(), Instant::min)
    }

    /// Does all due work, including work that becomes due in this round.
    async fn round(&mut self) -> Result<(), ShellError> {
        self.apply_new_manifests();
        self.probe().await?;
        for n in 0..MAX_SCANS {
            let now = Instant::now();
            let lists = n == 0 && self.schedule.is_due(now);
            let unasked = std::mem::take(&mut self.unasked);
            let due = self.take_due(now);
            let request = HostScanRequest {
                sockets: lists,
                servers: if lists { self.responsive_sockets() } else { unasked },
                panes: due.iter().map(|(socket, due)| (socket.clone(), panes_of(due))).collect(),
                processes: self.process_schedule.is_due(now) || (lists && !self.without_socket.is_empty()),
            };
            if !request.sockets && request.servers.is_empty() && request.panes.is_empty() && !request.processes {
                break;
            }
            self.scan(&request, due, PROGRAM_TIMEOUT).await?;
            if lists {
                self.schedule.asked(now, Instant::now());
            }
        }
        if self.schedule.needs_ping(Instant::now()) {
            self.host.shell.ping(PROGRAM_TIMEOUT).await?;
            self.schedule.note_answer(Instant::now());
        }
        Ok(())
    }

    /// All sockets except those of hung servers, which would delay the others.
    fn responsive_sockets(&self) -> Vec<PathBuf> {
        let hangs = |socket: &PathBuf| self.servers.get(socket).is_some_and(|server| server.retry_at.is_some());
        self.sockets.iter().filter(|socket| !hangs(socket)).cloned().collect()
    }

    /// Asks one hung server whether it answers again.
    async fn probe(&mut self) -> Result<(), ShellError> {
        let now = Instant::now();
        let due = |server: &&AgentlessServer| server.retry_at.is_some_and(|until| until <= now);
        let Some(socket) = self.servers.values().find(due).map(|server| server.observer.socket.clone()) else {
            return Ok(());
        };
        let request = HostScanRequest { servers: vec![socket], ..HostScanRequest::default() };
        self.scan(&request, Vec::new(), PROBE_TIMEOUT).await
    }

    fn take_due(&mut self, now: Instant) -> Vec<(PathBuf, Vec<DueCapture>)> {
        let due = self.servers.iter_mut().map(|(socket, server)| (socket.clone(), server.take_due(now)));
        due.filter(|(_, due)| !due.is_empty()).collect()
    }

    fn apply_new_manifests(&mut self) {
        let registry = self.context.registry.get();
        if !Arc::ptr_eq(&registry, &self.registry) {
            self.registry = registry;
            let now = Instant::now();
            self.servers.values_mut().for_each(|server| server.apply_new_manifests(now));
            self.process_schedule.request(now);
        }
    }

    /// Sends one request to the host and applies the answer. `due` lists the captures that the request asks for.
    async fn scan(
        &mut self,
        request: &HostScanRequest,
        due: Vec<(PathBuf, Vec<DueCapture>)>,
        timeout: Duration,
    ) -> Result<(), ShellError> {
        let began = self.context.clock.now();
        let scan = self.host.shell.scan(request, timeout).await?;
        self.schedule.note_answer(Instant::now());
        let all_asked = !scan.servers.is_empty() || scan.sockets.as_ref().is_some_and(Vec::is_empty);
        if let Some(mut sockets) = scan.sockets {
            self.limit_sockets(&mut sockets).await;
            self.drop_missing(&sockets).await?;
            self.unasked = sockets.iter().filter(|socket| !self.sockets.contains(socket)).cloned().collect();
            self.sockets = sockets;
        }
        for (socket, listing) in scan.servers {
            match listing {
                Ok(listing) => self.apply_listing(socket, listing).await,
                Err(error) => self.listing_failed(&socket, error).await?,
            }
        }
        if let Some(snapshot) = scan.processes {
            self.process_schedule.note_listed(Instant::now());
            // An empty list is a failure of `ps`, not proof that all processes are gone.
            if !snapshot.is_empty() {
                self.apply_processes(&snapshot).await;
            }
        }
        for (socket, due) in due {
            let captures = scan.captures.iter().find(|(of, _)| *of == socket).map(|(_, all)| all.as_slice());
            let Some(server) = self.servers.get_mut(&socket) else { continue };
            server.apply_captures(&self.registry, due, captures.unwrap_or_default(), began).await;
        }
        if all_asked && !std::mem::replace(&mut self.reconciled, true) {
            self.reconcile_known_servers().await?;
        }
        Ok(())
    }

    /// Drops the sockets beyond `MAX_SOCKETS` and reports this as an outage.
    async fn limit_sockets(&mut self, sockets: &mut Vec<PathBuf>) {
        let cut = sockets.get(MAX_SOCKETS).map(|socket| self.key(socket));
        sockets.truncate(MAX_SOCKETS);
        if cut == self.first_skipped {
            return;
        }
        let is_met = |key: &ServerKey| self.servers.values().any(|server| server.observer.key == *key);
        if let Some(server) = self.first_skipped.take().filter(|key| !is_met(key)) {
            self.context.engine.apply_topology(TopologyUpdate::ServerGone { server }).await;
        }
        let Some(server) = cut else { return };
        self.first_skipped = Some(server.clone());
        let message = format!(
            "the host has more than {MAX_SOCKETS} tmux sockets; agtmux does not watch this socket and the following \
             sockets"
        );
        let (generation, code) = (Generation { pid: 0, start_time: 0 }, OutageCode::ListingCut);
        self.context.engine.apply_topology(TopologyUpdate::ServerOutage { server, generation, code, message }).await;
    }

    async fn apply_listing(&mut self, socket: PathBuf, listing: ActivityListing) {
        let now = Instant::now();
        self.ensure_server(&socket);
        let has_room = self.has_room(&socket, listing.listing.rows.len());
        let Some(server) = self.servers.get_mut(&socket) else { return };
        if !has_room {
            let message = format!(
                "the host has more than {MAX_PANES} panes, so agtmux does not watch the panes of this tmux server"
            );
            let (generation, version) = (convert::generation(&listing.listing.server), listing.listing.server.version);
            server.observer.reject_listing(generation, version, OutageCode::ListingCut, message).await;
            return self.host.publish_health(server);
        }
        let Some(changes) = server.apply_listing(listing, now).await else {
            return self.host.publish_health(server);
        };
        if changes.processes {
            self.process_schedule.request(now);
        }
        if changes.wrote {
            self.process_schedule.note_output();
        }
        if changes.wrote || changes.processes || changes.rows.is_some() {
            self.schedule.note_change(now);
        }
        if let Some(rows) = changes.rows {
            self.host.publish_health(server);
            server.observer.report_rows(rows).await;
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
        self.without_socket.retain(|(known, _)| *known != key);
        tracing::info!(target = %key.target, server = %key.server, "watching a tmux server through a shell");
        let server = AgentlessServer::new(self.context.clone(), key, socket.to_owned());
        self.servers.insert(socket.to_owned(), server);
        self.schedule.note_change(Instant::now());
    }

    fn key(&self, socket: &Path) -> ServerKey {
        let name = socket.file_name().unwrap_or(socket.as_os_str());
        ServerKey { target: self.target.clone(), server: ServerName::new(text::from_bytes(name.as_bytes())) }
    }

    async fn apply_processes(&mut self, snapshot: &ProcessSnapshot) {
        let now = Instant::now();
        self.drop_ended(snapshot).await;
        for server in self.servers.values_mut() {
            if server.apply_processes(snapshot, &self.registry, now).await {
                self.schedule.note_change(now);
            }
        }
    }

    /// Drops the servers whose sockets are gone, unless their processes still live.
    async fn drop_missing(&mut self, sockets: &[PathBuf]) -> Result<(), ShellError> {
        let gone: Vec<PathBuf> = self.servers.keys().filter(|socket| !sockets.contains(socket)).cloned().collect();
        for socket in gone {
            self.listing_failed(&socket, TmuxError::NoServer).await?;
        }
        Ok(())
    }

    /// Handles a failed listing. A server is dropped only if its process is gone.
    async fn listing_failed(&mut self, socket: &Path, error: TmuxError) -> Result<(), ShellError> {
        if error != TmuxError::NoServer {
            // A server exists on this socket, even if it never answered.
            self.ensure_server(socket);
        }
        let Some(server) = self.servers.get_mut(socket) else { return Ok(()) };
        let outage = server.observer.listing_failed(&error);
        if error == TmuxError::NoServer && !is_server_alive(&self.host.shell, server.observer.generation).await? {
            self.drop_server(socket).await;
            return Ok(());
        }
        if let Some((code, message)) = outage {
            if code == OutageCode::ServerNotResponding {
                server.retry_at = Some(Instant::now() + HUNG_RETRY_DELAY);
            }
            server.observer.report_outage(code, message).await;
            self.host.publish_health(server);
        }
        Ok(())
    }

    async fn drop_server(&mut self, socket: &Path) {
        let Some(server) = self.servers.remove(socket) else { return };
        self.schedule.note_change(Instant::now());
        self.host.drop_server(&server.observer.key.server);
        server.observer.report_gone().await;
    }

    /// Handles the stored servers of this host that were not found. Drops those that have ended, and reports an outage
    /// for each of the others, because they may listen in another directory.
    async fn reconcile_known_servers(&mut self) -> Result<(), ShellError> {
        let here: BTreeSet<&ServerKey> = self.servers.values().map(|server| &server.observer.key).collect();
        let known = self.context.engine.servers_of(self.target.clone()).await;
        self.without_socket = known
            .into_iter()
            .filter(|(key, _)| !here.contains(key) && self.first_skipped.as_ref() != Some(key))
            .collect();
        if self.without_socket.is_empty() {
            return Ok(());
        }
        let snapshot = self.host.shell.processes(PROGRAM_TIMEOUT).await?;
        self.drop_ended(&snapshot).await;
        let dir = text::from_bytes(self.host.shell.facts().socket_dir.as_os_str().as_bytes());
        for (server, generation) in self.without_socket.clone() {
            let message = format!(
                "the server's process runs, but the server has no socket in {dir}; to watch this server, install \
                 agtmux on the host"
            );
            let code = OutageCode::ListingFailed;
            let outage = TopologyUpdate::ServerOutage { server, generation, code, message };
            self.context.engine.apply_topology(outage).await;
        }
        Ok(())
    }

    /// Of the servers without a socket, drops those whose process has ended.
    async fn drop_ended(&mut self, snapshot: &ProcessSnapshot) {
        let has_ended = |(_, generation): &mut (ServerKey, Generation)| !has_server_process(snapshot, *generation);
        let gone: Vec<(ServerKey, Generation)> = self.without_socket.extract_if(.., has_ended).collect();
        for (server, _) in gone {
            self.context.engine.apply_topology(TopologyUpdate::ServerGone { server }).await;
        }
    }
}

async fn is_server_alive(shell: &HostShell, generation: Option<Generation>) -> Result<bool, ShellError> {
    let Some(generation) = generation else { return Ok(false) };
    let snapshot = shell.processes(PROGRAM_TIMEOUT).await?;
    Ok(has_server_process(&snapshot, generation))
}

/// Whether the process list contains this server.
fn has_server_process(snapshot: &ProcessSnapshot, generation: Generation) -> bool {
    let process = snapshot.process(generation.pid).filter(|process| !process.zombie);
    // An empty list is a failure of `ps`, so assume that the server lives.
    snapshot.is_empty() || process.is_some_and(|process| process.name.starts_with(b"tmux"))
}

fn panes_of(due: &[DueCapture]) -> Vec<u32> {
    due.iter().map(|request| request.pane).collect()
}
