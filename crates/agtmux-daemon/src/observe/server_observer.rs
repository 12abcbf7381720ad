//! The observer of one tmux server: follows hints, reads the server, and reports to the engine.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::{Generation, ServerKey, TargetName};
use agtmux_tmux::{MIN_VERSION, ServerListing, TmuxError, TmuxServer, TmuxVersion, is_listening, listener_pid};
use tokio::sync::{mpsc, watch};

use super::agents::ServerAgents;
use super::recheck_hints::RecheckSubscription;
use super::server_hooks::ServerHooks;
use super::server_schedule::{ServerSchedule, ServerWork};
use super::signal_router::{HintSender, ObserverHint, WatchGuard};
use super::watched_panes::WatchedPanes;
use super::{ObserverContext, convert};

/// After a query the server runs on for a moment until our client has exited. That is not a change.
const CLIENT_EXIT_TIME: Duration = Duration::from_millis(30);

/// How long after a pane's output the server counts as running because of it.
const WRITE_GRACE: Duration = Duration::from_millis(1500);

/// The delay before a server that failed to answer is queried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// How many failures in a row are tolerated. A server may fail while it exits.
const MAX_FAILURES: u32 = 2;

pub(super) struct ServerObserver {
    context: Arc<ObserverContext>,
    key: ServerKey,
    tmux: TmuxServer,
    hints: mpsc::UnboundedReceiver<ObserverHint>,
    own_hints: HintSender,
    schedule: ServerSchedule,
    panes: WatchedPanes,
    agents: ServerAgents,
    _subscription: RecheckSubscription,
    hooks: Option<ServerHooks>,
    watched: Option<WatchedGeneration>,
    failures: u32,
    unreachable: bool,
    /// A digest of the last listed rows.
    listed_digest: Option<u64>,
    /// The registry changed since the processes were last checked.
    registry_changed: bool,
    /// Screens were captured after the first listing.
    captured: bool,
    /// The server may have run since the last listing, although its wake-up count no longer shows it.
    may_have_run: bool,
    /// When a pane last wrote.
    written_at: Option<Instant>,
    /// Some panes are dead but still exist.
    has_dead_panes: bool,
    /// When to check whether a new terminal belongs to this server.
    terminal_check_at: Option<Instant>,
    report: watch::Sender<Option<ServerHealth>>,
}

/// The server generation that is being watched.
struct WatchedGeneration {
    generation: Generation,
    version: String,
    _watch: Option<WatchGuard>,
    /// The server's wake-up count after our last client exited, and when to read it.
    wakeups: Option<u64>,
    count_wakeups_at: Option<Instant>,
    /// The process has ended. It may still be a zombie with a pid.
    ended: bool,
}

/// Whether the server still exists.
enum ServerPresence {
    Alive,
    Gone,
}

impl ServerObserver {
    /// Makes an observer. `known` is the generation in the store.
    pub(super) fn new(
        context: Arc<ObserverContext>,
        key: ServerKey,
        tmux: TmuxServer,
        known: Option<Generation>,
    ) -> (Self, HintSender, watch::Receiver<Option<ServerHealth>>) {
        let (own_hints, hints) = mpsc::unbounded_channel();
        let (report, reports) = watch::channel(None);
        let observe = &context.config.observe;
        let schedule = ServerSchedule::new(observe.reconcile_active.0, observe.reconcile_idle.0, Instant::now());
        let hooks = ServerHooks::prepare(&context, &key, &own_hints);
        let watched = known.map(|generation| WatchedGeneration::new(generation, String::new(), None));
        let agents = ServerAgents::new(observe.osc_tap);
        let handle = own_hints.clone();
        let subscription = context.recheck_hints.subscribe(key.clone(), own_hints.clone());
        let observer = Self {
            context,
            key,
            tmux,
            hints,
            own_hints,
            schedule,
            panes: WatchedPanes::new(Instant::now()),
            agents,
            _subscription: subscription,
            hooks,
            watched,
            failures: 0,
            unreachable: false,
            listed_digest: None,
            registry_changed: false,
            captured: false,
            may_have_run: false,
            written_at: None,
            has_dead_panes: false,
            terminal_check_at: None,
            report,
        };
        (observer, handle, reports)
    }

    /// Runs until the server is gone or the daemon stops.
    pub(super) async fn run(mut self) {
        loop {
            if let ServerPresence::Gone = self.work().await {
                self.context.engine.apply_topology(TopologyUpdate::ServerGone { server: self.key.clone() }).await;
                self.hooks.iter_mut().for_each(ServerHooks::server_ended);
                return;
            }
            let wake_at = self.wake_at().into();
            tokio::select! {
                hint = self.hints.recv() => match hint {
                    None | Some(ObserverHint::Stop) => break,
                    Some(hint) => if self.handle_all(hint) { break },
                },
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
        if let Some(hooks) = &self.hooks
            && !self.unreachable
        {
            hooks.remove(&self.tmux).await;
        }
    }

    fn wake_at(&self) -> Instant {
        let count = self.watched.as_ref().and_then(|watched| watched.count_wakeups_at);
        let look = self.panes.urgent_at();
        // Do not wake up for screens while the server cannot be queried.
        let screens = self.agents.wake_at().filter(|_| !self.unreachable && self.watched.is_some());
        [count, look, screens, self.terminal_check_at].into_iter().flatten().fold(self.schedule.wake_at(), Instant::min)
    }

    /// Handles a hint and all hints queued behind it. Returns whether the observer must stop.
    fn handle_all(&mut self, first: ObserverHint) -> bool {
        let now = Instant::now();
        let mut hint = Some(first);
        // A burst of output counts once per pane, however many hints it caused.
        let mut active = BTreeSet::new();
        while let Some(next) = hint {
            match next {
                ObserverHint::Stop => return true,
                ObserverHint::Output(pane) => {
                    active.insert(pane);
                }
                other => self.handle(other, now),
            }
            hint = self.hints.try_recv().ok();
        }
        if !active.is_empty() {
            self.written_at = Some(now);
        }
        for pane in active {
            self.schedule.want_read(pane, now);
            self.panes.note_activity(pane);
            self.agents.pane_wrote(pane, now);
        }
        false
    }

    fn handle(&mut self, hint: ObserverHint, now: Instant) {
        match hint {
            ObserverHint::AgentEnded(pane) => self.panes.recheck(pane, now),
            ObserverHint::AgentSentEvent(pane) => self.agents.agent_sent_event(pane, now),
            ObserverHint::AgentFileChanged(pane) => self.agents.file_changed(pane),
            ObserverHint::PaneEnded(pane) => {
                self.panes.recheck(pane, now);
                self.schedule.want_list();
            }
            ObserverHint::ServerEnded => {
                self.watched.iter_mut().for_each(|watched| watched.ended = true);
                self.schedule.want_list();
            }
            ObserverHint::RecheckAll => {
                self.schedule.want_list();
                self.agents.capture_all_soon(now);
            }
            ObserverHint::RegistryChanged => {
                self.panes.recheck_all(now);
                self.agents.apply_new_manifests(&self.panes, &self.context, now);
                self.registry_changed = true;
            }
            ObserverHint::HookFired => self.schedule.want_list(),
            // Most new terminals belong to other programs, and hooks announce those of this server.
            ObserverHint::TerminalsChanged | ObserverHint::SocketsChanged => {
                self.may_have_run |= self.is_client_exiting();
                if !self.hooks_installed() && self.has_run() {
                    self.schedule.want_list();
                }
                // No hook announces the respawn of a dead pane, but its new terminal does.
                if self.has_dead_panes {
                    self.terminal_check_at.get_or_insert(now + CLIENT_EXIT_TIME);
                }
            }
            ObserverHint::Output(_) | ObserverHint::ManifestsChanged | ObserverHint::Stop => {}
        }
    }

    fn hooks_installed(&self) -> bool {
        self.hooks.as_ref().is_some_and(ServerHooks::installed)
    }

    fn panes_wrote_recently(&self, now: Instant) -> bool {
        self.written_at.is_some_and(|at| now < at + WRITE_GRACE)
    }

    async fn work(&mut self) -> ServerPresence {
        let now = Instant::now();
        self.check_terminals(now);
        self.count_wakeups(now);
        let ticked = self.schedule.tick(now);
        if ticked && self.tick(now).await {
            return ServerPresence::Alive;
        }
        // Check processes before the server is queried, because a query may take long.
        self.check_processes(ticked).await;
        let home = (&self.key, self.watched.as_ref().map(|watched| watched.generation));
        self.agents.read_files(&self.context, home, &self.own_hints).await;
        self.capture_screens(now).await;
        if self.listed_digest.is_some() && !std::mem::replace(&mut self.captured, true) {
            // Publish the first report only after the screens were captured, so that it has current states.
            self.publish_health();
        }
        match self.schedule.take_due(now) {
            Some(ServerWork::List) => self.list().await,
            Some(ServerWork::Read(panes)) => self.reread_panes(&panes).await,
            None => ServerPresence::Alive,
        }
    }

    /// Checks once a second whether the server is stopped or has run. Returns true if it cannot be queried now.
    async fn tick(&mut self, now: Instant) -> bool {
        let Some(watched) = &self.watched else { return false };
        let pid = watched.generation.pid;
        if self.context.processes.is_stopped(pid) {
            self.report_outage(OutageCode::ServerNotResponding, format!("the tmux server (pid {pid}) is stopped"))
                .await;
            self.schedule.retry_in(super::server_schedule::TICK, now);
            return true;
        }
        if !self.context.router.reports_output() {
            self.schedule.want_list();
            self.agents.capture_all_soon(now);
        } else if self.has_run() | std::mem::take(&mut self.may_have_run) {
            self.schedule.server_ran(self.panes_wrote_recently(now), now);
        }
        false
    }

    fn has_run(&self) -> bool {
        let Some(watched) = &self.watched else { return true };
        // While our client exits, the count says nothing. A reconcile covers that time.
        !self.is_client_exiting() && self.context.processes.wakeups(watched.generation.pid) != watched.wakeups
    }

    fn is_client_exiting(&self) -> bool {
        self.watched.as_ref().is_some_and(|watched| watched.count_wakeups_at.is_some())
    }

    fn count_wakeups(&mut self, now: Instant) {
        if let Some(watched) = &mut self.watched
            && watched.count_wakeups_at.is_some_and(|at| at <= now)
        {
            watched.count_wakeups_at = None;
            watched.wakeups = self.context.processes.wakeups(watched.generation.pid);
        }
    }

    /// Requests a listing if the new terminal may belong to this server, because the server has run.
    fn check_terminals(&mut self, now: Instant) {
        if self.terminal_check_at.is_some_and(|at| at <= now) {
            self.terminal_check_at = None;
            if self.may_have_run || self.is_client_exiting() || self.has_run() {
                self.schedule.want_list();
            }
        }
    }

    fn note_query(&mut self) {
        if let Some(watched) = &mut self.watched {
            watched.count_wakeups_at = Some(Instant::now() + CLIENT_EXIT_TIME);
        }
    }

    async fn list(&mut self) -> ServerPresence {
        let began = Instant::now();
        match self.tmux.list().await {
            Ok(listing) => {
                self.schedule.listed(listing.rows.len(), began.elapsed(), Instant::now());
                // After a change, more may have changed while our client was exiting.
                self.may_have_run = self.listing_changed(&listing);
                self.apply_listing(listing).await;
                ServerPresence::Alive
            }
            Err(error) => self.listing_failed(error).await,
        }
    }

    fn listing_changed(&mut self, listing: &ServerListing) -> bool {
        let mut hasher = DefaultHasher::new();
        listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        self.listed_digest.replace(digest) != Some(digest)
    }

    async fn apply_listing(&mut self, listing: ServerListing) {
        if !TmuxVersion::parse(&listing.server.version).is_supported() {
            let (generation, version) = (convert::generation(&listing.server), listing.server.version);
            self.watched.get_or_insert_with(|| WatchedGeneration::new(generation, version.clone(), None));
            let message = format!("the server runs tmux {version}; agtmux requires {MIN_VERSION} or newer");
            return self.report_outage(OutageCode::TmuxTooOld, message).await;
        }
        self.failures = 0;
        if std::mem::take(&mut self.unreachable) {
            // No screen was captured while the server did not answer.
            self.agents.capture_all_soon(Instant::now());
        }
        let new_server = self.watch_generation(&listing);
        let generation = convert::generation(&listing.server);
        let mut sessions: Vec<u32> = listing.rows.iter().map(|row| row.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let rows: Vec<_> = listing.rows.into_iter().map(convert::pane_row).collect();
        self.has_dead_panes = rows.iter().any(|row| row.dead.is_some());
        let context = self.context.clone();
        self.panes.apply_listing(&rows, &context.router, context.processes.as_ref(), &self.own_hints, Instant::now());
        self.agents.follow(&self.panes, &context, Instant::now());
        context.engine.apply_topology(TopologyUpdate::Listed { server: self.key.clone(), generation, rows }).await;
        context.engine.apply_topology(TopologyUpdate::TargetOutage { target: TargetName::local(), outage: None }).await;
        if let Some(hooks) = &mut self.hooks
            && hooks.check(&self.tmux, sessions, new_server).await
        {
            self.schedule.want_list();
        }
        self.note_query();
        if self.captured {
            self.publish_health();
        }
    }

    /// Starts watching this server generation. Returns whether it is new.
    fn watch_generation(&mut self, listing: &ServerListing) -> bool {
        let generation = convert::generation(&listing.server);
        if self.watched.as_ref().is_some_and(|watched| watched.generation == generation && watched._watch.is_some()) {
            return false;
        }
        let start = self.context.processes.start_time(generation.pid);
        let watch =
            self.context.router.watch_process(generation.pid, start, &self.own_hints, ObserverHint::ServerEnded);
        let watch = watch.inspect_err(
            |error| tracing::warn!(%error, "cannot watch the process of a tmux server; its end will be noticed late"),
        );
        self.panes.clear();
        self.watched = Some(WatchedGeneration::new(generation, listing.server.version.clone(), watch.ok()));
        true
    }

    async fn reread_panes(&mut self, panes: &[u32]) -> ServerPresence {
        // The read covers only some panes, so other changes may remain.
        self.may_have_run |= self.has_run();
        match self.tmux.read(panes).await {
            Ok(listing) => {
                let generation = convert::generation(&listing.server);
                let rows: Vec<_> = listing.rows.into_iter().map(convert::pane_row).collect();
                // A missing pane needs a listing.
                if rows.len() < panes.len() {
                    self.schedule.want_list();
                }
                let reread = TopologyUpdate::Reread { server: self.key.clone(), generation, rows };
                self.context.engine.apply_topology(reread).await;
                self.note_query();
                ServerPresence::Alive
            }
            Err(_) => {
                self.schedule.want_list();
                ServerPresence::Alive
            }
        }
    }

    /// Checks the processes of due panes. Settled panes are checked only once a second (`all`).
    async fn check_processes(&mut self, all: bool) {
        let now = Instant::now();
        if !all && self.panes.urgent_at().is_none_or(|at| now < at) {
            return;
        }
        let context = self.context.clone();
        let Some(watched) = &self.watched else { return };
        let panes = self.panes.check_due(context.processes.as_ref(), &context.registry.get(), now);
        if !std::mem::take(&mut self.registry_changed) && panes.is_empty() {
            return;
        }
        self.panes.follow_agents(&context.router, &self.own_hints);
        let (server, generation) = (self.key.clone(), watched.generation);
        context.engine.apply_topology(TopologyUpdate::Processes { server, generation, panes }).await;
        self.agents.follow(&self.panes, &context, now);
        self.agents.report_headless(&context, &self.key, generation).await;
    }

    /// Captures the screens that are due.
    async fn capture_screens(&mut self, now: Instant) {
        let Some(watched) = self.watched.as_ref().filter(|_| !self.unreachable) else { return };
        let generation = watched.generation;
        let ran = self.has_run();
        self.agents.open_taps(&self.tmux, now).await;
        if self.agents.capture_due(&self.context, &self.tmux, &self.key, generation, now).await {
            // A capture does not show all changes, so others may remain.
            self.may_have_run |= ran;
            self.note_query();
        }
    }

    async fn listing_failed(&mut self, error: TmuxError) -> ServerPresence {
        let now = Instant::now();
        self.failures += 1;
        let alive = self.watched.as_ref().filter(|watched| is_alive(self.context.processes.as_ref(), watched));
        if error == TmuxError::NoServer && alive.is_none() && !is_listening(self.tmux.socket()) {
            return ServerPresence::Gone;
        }
        if let TmuxError::NotInstalled(_) = error {
            let outage = Some((OutageCode::TmuxNotInstalled, error.to_string()));
            self.context
                .engine
                .apply_topology(TopologyUpdate::TargetOutage { target: TargetName::local(), outage })
                .await;
        } else if self.failures > MAX_FAILURES || matches!(error, TmuxError::Timeout(_)) {
            let (code, message) = match &error {
                TmuxError::Timeout(_) => (OutageCode::ServerNotResponding, error.to_string()),
                TmuxError::NoServer => (
                    OutageCode::ServerNotResponding,
                    "the server's process runs, but its socket does not accept connections".into(),
                ),
                _ => (OutageCode::ListingFailed, error.to_string()),
            };
            self.report_outage(code, message).await;
        }
        let wait = if self.failures > MAX_FAILURES { RETRY_DELAY } else { RETRY_DELAY / 10 };
        self.schedule.retry_in(wait, now);
        ServerPresence::Alive
    }

    async fn report_outage(&mut self, code: OutageCode, message: String) {
        self.unreachable = true;
        // For a server that never answered, the pid comes from its socket.
        let unheard = || Generation { pid: listener_pid(self.tmux.socket()).unwrap_or(0), start_time: 0 };
        let generation = self.watched.as_ref().map_or_else(unheard, |watched| watched.generation);
        let outage = TopologyUpdate::ServerOutage { server: self.key.clone(), generation, code, message };
        self.context.engine.apply_topology(outage).await;
        self.publish_health();
    }

    fn publish_health(&self) {
        let watched = self.watched.as_ref();
        let evidence = if self.context.router.reports_output() { "events" } else { "polling" };
        self.report.send_replace(Some(ServerHealth {
            target: self.key.target.to_string(),
            server: self.key.server.to_string(),
            socket: convert::path_text(self.tmux.socket()),
            pid: watched.map_or(0, |watched| watched.generation.pid),
            tmux_version: watched.map(|watched| watched.version.clone()).unwrap_or_default(),
            panes: u32::try_from(self.panes.count()).unwrap_or(u32::MAX),
            evidence: evidence.into(),
            hooks: self.hooks_installed(),
        }));
    }
}

impl WatchedGeneration {
    fn new(generation: Generation, version: String, watch: Option<WatchGuard>) -> Self {
        Self { generation, version, _watch: watch, wakeups: None, count_wakeups_at: None, ended: false }
    }
}

fn is_alive(table: &dyn agtmux_tmux::platform::ProcessTable, watched: &WatchedGeneration) -> bool {
    !watched.ended && table.start_time(watched.generation.pid).is_some()
}
