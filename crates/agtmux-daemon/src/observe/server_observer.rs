//! One observer per tmux server: it follows hints, reads back, and tells the engine.

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

/// After a question the server runs on for a moment to see its client off: that is not a change.
const CLIENT_EXIT_TIME: Duration = Duration::from_millis(30);

/// For this long after a pane wrote, its server counts as running because of it.
const WRITE_GRACE: Duration = Duration::from_millis(1500);

/// How soon a server that failed to answer is asked again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// A server may stumble once, for instance while it is ending.
const MAX_FAILURES: u32 = 2;

pub(super) struct ServerObserver {
    context: Arc<ObserverContext>,
    key: ServerKey,
    tmux: TmuxServer,
    notices: mpsc::UnboundedReceiver<ObserverHint>,
    own_notices: HintSender,
    schedule: ServerSchedule,
    panes: WatchedPanes,
    agents: ServerAgents,
    _subscription: RecheckSubscription,
    hooks: Option<ServerHooks>,
    watched: Option<WatchedGeneration>,
    failures: u32,
    unreachable: bool,
    /// A digest of the rows that were last listed.
    listed_digest: Option<u64>,
    /// Other agents are known since its processes were last looked at.
    registry_changed: bool,
    /// Its agents were looked at after a listing.
    captured: bool,
    /// It has run since the last listing, or may have, though the count of its runs no longer shows it.
    may_have_run: bool,
    /// When a pane was last seen writing.
    written_at: Option<Instant>,
    /// Some of its panes are kept though nobody lives in them.
    has_dead_panes: bool,
    /// When to find out whether a terminal that came somewhere is one of this server's.
    terminal_check_at: Option<Instant>,
    report: watch::Sender<Option<ServerHealth>>,
}

/// The generation that is being watched.
struct WatchedGeneration {
    generation: Generation,
    version: String,
    _watch: Option<WatchGuard>,
    /// How often the server had run when it was last seen off, and when to find that out.
    wakeups: Option<u64>,
    count_wakeups_at: Option<Instant>,
    /// Its process has ended, though somebody may not have noticed yet and it still has a number.
    ended: bool,
}

/// Whether there is still something to observe.
enum ServerPresence {
    Alive,
    Gone,
}

impl ServerObserver {
    /// `known` is the generation that the store remembers.
    pub(super) fn new(
        senses: Arc<ObserverContext>,
        key: ServerKey,
        tmux: TmuxServer,
        known: Option<Generation>,
    ) -> (Self, HintSender, watch::Receiver<Option<ServerHealth>>) {
        let (own_notices, notices) = mpsc::unbounded_channel();
        let (report, reports) = watch::channel(None);
        let observe = &senses.config.observe;
        let pace = ServerSchedule::new(observe.reconcile_active.0, observe.reconcile_idle.0, Instant::now());
        let hooking = ServerHooks::prepare(&senses, &key, &own_notices);
        let life = known.map(|generation| WatchedGeneration::new(generation, String::new(), None));
        let agents = ServerAgents::new(observe.osc_tap);
        let handle = own_notices.clone();
        let post = senses.recheck_hints.subscribe(key.clone(), own_notices.clone());
        let observer = Self {
            context: senses,
            key,
            tmux,
            notices,
            own_notices,
            schedule: pace,
            panes: WatchedPanes::new(Instant::now()),
            agents,
            _subscription: post,
            hooks: hooking,
            watched: life,
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

    /// Runs until the server is gone or the daemon ends.
    pub(super) async fn run(mut self) {
        loop {
            if let ServerPresence::Gone = self.work().await {
                self.context.engine.apply_topology(TopologyUpdate::ServerGone { server: self.key.clone() }).await;
                self.hooks.iter_mut().for_each(ServerHooks::server_ended);
                return;
            }
            let wake_at = self.wake_at().into();
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    None | Some(ObserverHint::Stop) => break,
                    Some(notice) => if self.handle_all(notice) { break },
                },
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
        if let Some(hooking) = &self.hooks
            && !self.unreachable
        {
            hooking.remove(&self.tmux).await;
        }
    }

    fn wake_at(&self) -> Instant {
        let count = self.watched.as_ref().and_then(|life| life.count_wakeups_at);
        let look = self.panes.urgent_at();
        // While it cannot be asked its screens are no reason to wake up.
        let screens = self.agents.wake_at().filter(|_| !self.unreachable && self.watched.is_some());
        [count, look, screens, self.terminal_check_at].into_iter().flatten().fold(self.schedule.wake_at(), Instant::min)
    }

    /// Takes in a notice and all that wait behind it. Says whether one of them was the last.
    fn handle_all(&mut self, first: ObserverHint) -> bool {
        let now = Instant::now();
        let mut notice = Some(first);
        // A burst of output is one look at the pane, however many notices it made.
        let mut stirred = BTreeSet::new();
        while let Some(next) = notice {
            match next {
                ObserverHint::Stop => return true,
                ObserverHint::Output(pane) => {
                    stirred.insert(pane);
                }
                other => self.handle(other, now),
            }
            notice = self.notices.try_recv().ok();
        }
        if !stirred.is_empty() {
            self.written_at = Some(now);
        }
        for pane in stirred {
            self.schedule.want_read(pane, now);
            self.panes.note_activity(pane);
            self.agents.pane_wrote(pane, now);
        }
        false
    }

    fn handle(&mut self, notice: ObserverHint, now: Instant) {
        match notice {
            ObserverHint::AgentEnded(pane) => self.panes.recheck(pane, now),
            ObserverHint::AgentSpoke(pane) => self.agents.agent_spoke(pane, now),
            ObserverHint::AgentFileChanged(pane) => self.agents.file_changed(pane),
            ObserverHint::PaneEnded(pane) => {
                self.panes.recheck(pane, now);
                self.schedule.want_list();
            }
            ObserverHint::ServerEnded => {
                self.watched.iter_mut().for_each(|life| life.ended = true);
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
            // Most terminals are none of this server's business, and hooks tell of those that are.
            ObserverHint::TerminalsChanged | ObserverHint::SocketsChanged => {
                self.may_have_run |= self.is_client_exiting();
                if !self.hooks_installed() && self.has_run() {
                    self.schedule.want_list();
                }
                // No hook tells of a dead pane in which something is started again; its new terminal does.
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
        // Before the server is asked, which may take a while.
        self.check_processes(ticked).await;
        let home = (&self.key, self.watched.as_ref().map(|life| life.generation));
        self.agents.read_files(&self.context, home, &self.own_notices).await;
        self.capture_screens(now).await;
        if self.listed_digest.is_some() && !std::mem::replace(&mut self.captured, true) {
            // Whoever waits for the first answer wants to know what agents do now, not what they did before.
            self.publish_health();
        }
        match self.schedule.take_due(now) {
            Some(ServerWork::List) => self.list().await,
            Some(ServerWork::Read(panes)) => self.reread_panes(&panes).await,
            None => ServerPresence::Alive,
        }
    }

    /// Once a second, at no cost to the server: is it stopped, has it run? Says whether it cannot be asked now.
    async fn tick(&mut self, now: Instant) -> bool {
        let Some(life) = &self.watched else { return false };
        let pid = life.generation.pid;
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
        let Some(life) = &self.watched else { return true };
        // While it is being seen off nothing can be said: then the net is there for it.
        !self.is_client_exiting() && self.context.processes.wakeups(life.generation.pid) != life.wakeups
    }

    fn is_client_exiting(&self) -> bool {
        self.watched.as_ref().is_some_and(|life| life.count_wakeups_at.is_some())
    }

    fn count_wakeups(&mut self, now: Instant) {
        if let Some(life) = &mut self.watched
            && life.count_wakeups_at.is_some_and(|at| at <= now)
        {
            life.count_wakeups_at = None;
            life.wakeups = self.context.processes.wakeups(life.generation.pid);
        }
    }

    /// A server that has not run has no new terminal. One that made it is asleep again by now.
    fn check_terminals(&mut self, now: Instant) {
        if self.terminal_check_at.is_some_and(|at| at <= now) {
            self.terminal_check_at = None;
            if self.may_have_run || self.is_client_exiting() || self.has_run() {
                self.schedule.want_list();
            }
        }
    }

    fn note_query(&mut self) {
        if let Some(life) = &mut self.watched {
            life.count_wakeups_at = Some(Instant::now() + CLIENT_EXIT_TIME);
        }
    }

    async fn list(&mut self) -> ServerPresence {
        let began = Instant::now();
        match self.tmux.list().await {
            Ok(listing) => {
                self.schedule.listed(listing.rows.len(), began.elapsed(), Instant::now());
                // Where something changed, more may have while the server was being seen off.
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
            let message = format!("its tmux is {version}; agtmux needs {MIN_VERSION} or newer");
            return self.report_outage(OutageCode::TmuxTooOld, message).await;
        }
        self.failures = 0;
        if std::mem::take(&mut self.unreachable) {
            // Nobody looked in the meantime.
            self.agents.capture_all_soon(Instant::now());
        }
        let new_server = self.watch_generation(&listing);
        let generation = convert::generation(&listing.server);
        let mut sessions: Vec<u32> = listing.rows.iter().map(|row| row.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let rows: Vec<_> = listing.rows.into_iter().map(convert::pane_row).collect();
        self.has_dead_panes = rows.iter().any(|row| row.dead.is_some());
        let senses = self.context.clone();
        self.panes.apply_listing(&rows, &senses.router, senses.processes.as_ref(), &self.own_notices, Instant::now());
        self.agents.follow(&self.panes, &senses, Instant::now());
        senses.engine.apply_topology(TopologyUpdate::Listed { server: self.key.clone(), generation, rows }).await;
        senses.engine.apply_topology(TopologyUpdate::TargetOutage { target: TargetName::local(), outage: None }).await;
        if let Some(hooking) = &mut self.hooks
            && hooking.check(&self.tmux, sessions, new_server).await
        {
            self.schedule.want_list();
        }
        self.note_query();
        if self.captured {
            self.publish_health();
        }
    }

    /// Says whether this is another server than the one before.
    fn watch_generation(&mut self, listing: &ServerListing) -> bool {
        let generation = convert::generation(&listing.server);
        if self.watched.as_ref().is_some_and(|life| life.generation == generation && life._watch.is_some()) {
            return false;
        }
        let start = self.context.processes.start_time(generation.pid);
        let watch =
            self.context.router.watch_process(generation.pid, start, &self.own_notices, ObserverHint::ServerEnded);
        let watch = watch.inspect_err(|error| tracing::warn!(%error, "the end of a tmux server will be seen late"));
        self.panes.clear();
        self.watched = Some(WatchedGeneration::new(generation, listing.server.version.clone(), watch.ok()));
        true
    }

    async fn reread_panes(&mut self, panes: &[u32]) -> ServerPresence {
        // What is read is less than what may have changed.
        self.may_have_run |= self.has_run();
        match self.tmux.read(panes).await {
            Ok(listing) => {
                let generation = convert::generation(&listing.server);
                let rows: Vec<_> = listing.rows.into_iter().map(convert::pane_row).collect();
                // A pane that is missing, or is another one now, is a matter for a listing.
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

    /// Settled panes are looked at when the second is over, all others when they are due.
    async fn check_processes(&mut self, all: bool) {
        let now = Instant::now();
        if !all && self.panes.urgent_at().is_none_or(|at| now < at) {
            return;
        }
        let senses = self.context.clone();
        let Some(life) = &self.watched else { return };
        let panes = self.panes.check_due(senses.processes.as_ref(), &senses.registry.get(), now);
        if !std::mem::take(&mut self.registry_changed) && panes.is_empty() {
            return;
        }
        self.panes.follow_agents(&senses.router, &self.own_notices);
        let (server, generation) = (self.key.clone(), life.generation);
        senses.engine.apply_topology(TopologyUpdate::Processes { server, generation, panes }).await;
        self.agents.follow(&self.panes, &senses, now);
        self.agents.report_headless(&senses, &self.key, generation).await;
    }

    /// What agents show.
    async fn capture_screens(&mut self, now: Instant) {
        let Some(life) = self.watched.as_ref().filter(|_| !self.unreachable) else { return };
        let generation = life.generation;
        let ran = self.has_run();
        self.agents.open_taps(&self.tmux, now).await;
        if self.agents.capture_due(&self.context, &self.tmux, &self.key, generation, now).await {
            // What is shown is less than what may have changed.
            self.may_have_run |= ran;
            self.note_query();
        }
    }

    async fn listing_failed(&mut self, error: TmuxError) -> ServerPresence {
        let now = Instant::now();
        self.failures += 1;
        let alive = self.watched.as_ref().filter(|life| is_alive(self.context.processes.as_ref(), life));
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
                TmuxError::NoServer => {
                    (OutageCode::ServerNotResponding, "its process lives, but nobody listens on its socket".into())
                }
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
        // A server that has never answered still has a process at the other end of its socket.
        let unheard = || Generation { pid: listener_pid(self.tmux.socket()).unwrap_or(0), start_time: 0 };
        let generation = self.watched.as_ref().map_or_else(unheard, |life| life.generation);
        let outage = TopologyUpdate::ServerOutage { server: self.key.clone(), generation, code, message };
        self.context.engine.apply_topology(outage).await;
        self.publish_health();
    }

    fn publish_health(&self) {
        let life = self.watched.as_ref();
        let evidence = if self.context.router.reports_output() { "events" } else { "polling" };
        self.report.send_replace(Some(ServerHealth {
            target: self.key.target.to_string(),
            server: self.key.server.to_string(),
            socket: convert::path_text(self.tmux.socket()),
            pid: life.map_or(0, |life| life.generation.pid),
            tmux_version: life.map(|life| life.version.clone()).unwrap_or_default(),
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

fn is_alive(table: &dyn agtmux_tmux::platform::ProcessTable, life: &WatchedGeneration) -> bool {
    !life.ended && table.start_time(life.generation.pid).is_some()
}
