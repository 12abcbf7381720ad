//! Runs the observer of one local tmux server. The observer reads the server when this machine signals a change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{OutageCode, TopologyUpdate};
use agtmux_core::ids::{Generation, ServerKey, TargetName};
use agtmux_tmux::{Capture, ServerListing, TmuxError, TmuxServer, is_listening};
use tokio::sync::{mpsc, watch};

use super::agent_files::AgentFiles;
use super::reported_agents::RememberedServer;
use super::server_hooks::ServerHooks;
use super::server_observer::ServerObserver;
use super::server_process::{CLIENT_EXIT_TIME, ServerProcess};
use super::server_schedule::{ServerSchedule, ServerWork};
use super::signal_router::{HintSender, HintWatcher, ObserverHint, WatchSubject};
use super::wake::WakeWatch;
use super::watched_panes::WatchedPanes;
use super::{ObserverContext, convert};
use crate::clock::BEAT;

/// After output from any pane, all panes of the server count as writing for this long.
const WRITE_GRACE: Duration = Duration::from_millis(1500);

/// The delay before a server that failed to answer is queried again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

pub(super) struct LocalServer {
    context: Arc<ObserverContext>,
    observer: ServerObserver,
    tmux: TmuxServer,
    hints: mpsc::UnboundedReceiver<ObserverHint>,
    watcher: HintWatcher,
    schedule: ServerSchedule,
    panes: WatchedPanes,
    files: AgentFiles,
    hooks: Option<ServerHooks>,
    process: ServerProcess,
    /// Whether the agent registry has changed since the processes were last checked.
    registry_changed: bool,
    /// Whether the processes and screens of all panes in the first listing have been read.
    looked: bool,
    /// Whether the server may have been active since the last listing even if its wake-up count does not show any
    /// activity.
    may_have_run: bool,
    /// When a pane of the server last wrote output.
    written_at: Option<Instant>,
    /// Whether some panes are dead but still exist.
    has_dead_panes: bool,
    /// When to check whether a terminal that has appeared belongs to this server.
    terminal_check_at: Option<Instant>,
    wake: WakeWatch,
    report: watch::Sender<Option<ServerHealth>>,
}

/// Whether the server still exists.
enum ServerPresence {
    Alive,
    Gone,
}

impl LocalServer {
    /// Makes an observer. `known` is what the store contains about this server.
    pub(super) fn new(
        context: Arc<ObserverContext>,
        key: ServerKey,
        tmux: TmuxServer,
        known: Option<RememberedServer>,
    ) -> (Self, HintSender, watch::Receiver<Option<ServerHealth>>) {
        let (own_hints, hints) = mpsc::unbounded_channel();
        let watcher = context.router.watcher(own_hints.clone());
        let (report, reports) = watch::channel(None);
        let (observe, now) = (&context.config.observe, Instant::now());
        let schedule = ServerSchedule::new(
            observe.reconcile_active.0,
            observe.reconcile_idle.0,
            now,
            context.clock.next_beat(now),
        );
        let generation = known.as_ref().map(|known| known.generation);
        let remembered = known.map(|known| known.agents).unwrap_or_default();
        let panes = WatchedPanes::new(context.clone(), watcher.clone(), remembered, now);
        let files = AgentFiles::new(context.clone(), watcher.clone());
        let hooks = ServerHooks::prepare(&context, &key, &watcher);
        let socket = tmux.socket().to_owned();
        let server = Self {
            observer: ServerObserver::new(context.clone(), key, socket, generation, own_hints.clone()),
            wake: WakeWatch::new(context.clock.clone()),
            context,
            tmux,
            hints,
            watcher,
            schedule,
            panes,
            files,
            hooks,
            process: ServerProcess::default(),
            registry_changed: false,
            looked: false,
            may_have_run: false,
            written_at: None,
            has_dead_panes: false,
            terminal_check_at: None,
            report,
        };
        (server, own_hints, reports)
    }

    /// Runs until the server is gone or the daemon stops.
    pub(super) async fn run(mut self) {
        loop {
            if let ServerPresence::Gone = self.work().await {
                self.observer.report_gone().await;
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
            && !self.observer.unreachable
        {
            hooks.remove(&self.tmux).await;
        }
    }

    fn wake_at(&self) -> Instant {
        let taps = self.files.taps.wake_at().filter(|_| self.observer.reachable_generation().is_some());
        let (count, look) = (self.process.wake_at(), self.panes.urgent_at());
        let all = [count, look, taps, self.observer.wake_at(), self.terminal_check_at];
        all.into_iter().flatten().fold(self.schedule.wake_at(), Instant::min)
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
            self.observer.screens.pane_wrote_just_now(pane, now);
        }
        false
    }

    fn handle(&mut self, hint: ObserverHint, now: Instant) {
        match hint {
            ObserverHint::AgentEnded(pane) => self.panes.recheck(pane, now),
            ObserverHint::AgentSentEvent(pane) => self.observer.screens.agent_sent_event(pane, now),
            ObserverHint::AgentAsked(pane) => self.observer.screens.look_for_dialog(pane, now),
            ObserverHint::AgentReported(pane, report) => self.panes.report_agent(pane, report, now),
            ObserverHint::AgentFileChanged(pane) => self.files.file_changed(pane),
            ObserverHint::PaneEnded(pane) => {
                self.panes.recheck(pane, now);
                self.schedule.want_list();
            }
            ObserverHint::ServerEnded => {
                self.process.note_end();
                self.schedule.want_list();
            }
            ObserverHint::RecheckAll => {
                self.schedule.want_list();
                self.observer.screens.request_all(now);
            }
            ObserverHint::RegistryChanged => {
                self.panes.recheck_all(now);
                self.files.apply_new_manifests(&self.panes, now);
                self.observer.apply_new_manifests(now);
                self.registry_changed = true;
            }
            ObserverHint::HookFired => self.schedule.want_list(),
            // The hooks of a server announce its new terminals, and most other new terminals belong to other programs.
            // So list the server only if it has no hooks and was active.
            ObserverHint::TerminalsChanged | ObserverHint::SocketsChanged => {
                self.may_have_run |= self.process.is_client_exiting();
                if !self.hooks_installed() && self.has_run() {
                    self.schedule.want_list();
                }
                // No hook announces the respawn of a dead pane, but its new terminal does.
                if self.has_dead_panes {
                    self.terminal_check_at.get_or_insert(now + CLIENT_EXIT_TIME);
                }
            }
            ObserverHint::Output(_)
            | ObserverHint::ManifestsChanged
            | ObserverHint::FilesChanged
            | ObserverHint::Stop => {}
        }
    }

    fn hooks_installed(&self) -> bool {
        self.hooks.as_ref().is_some_and(ServerHooks::installed)
    }

    fn panes_wrote_recently(&self, now: Instant) -> bool {
        self.written_at.is_some_and(|at| now < at + WRITE_GRACE)
    }

    /// If the machine has just woken up, makes sure that a pane or agent counts as gone or changed only after a second
    /// check confirms it.
    fn check_sleep(&mut self) {
        let now = Instant::now();
        if self.wake.has_woken(now) {
            self.panes.woke(now);
            self.observer.woke(now);
        }
    }

    async fn work(&mut self) -> ServerPresence {
        let now = Instant::now();
        self.check_sleep();
        self.check_terminals(now);
        if let Some(generation) = self.observer.generation {
            self.process.count_wakeups(generation, &*self.context.processes, now);
        }
        let ticked = self.schedule.tick(now);
        if ticked && self.tick(now).await {
            return ServerPresence::Alive;
        }
        // Check processes before the server is queried, because a query may take long.
        self.check_processes(ticked).await;
        self.files.read(&mut self.observer).await;
        // Agents that were just found are captured now, too.
        self.capture_screens(Instant::now()).await;
        if !self.looked && self.observer.was_listed() && self.panes.all_checked() && self.observer.screens.all_taken() {
            // Publish the first report only after the screens were captured, so that it has current states.
            self.looked = true;
            self.publish_health();
        }
        match self.schedule.take_due(now) {
            Some(ServerWork::List) => self.list().await,
            Some(ServerWork::Read(panes)) => {
                self.reread_panes(&panes).await;
                ServerPresence::Alive
            }
            None => ServerPresence::Alive,
        }
    }

    /// Runs once a second. Checks whether the server's process is stopped, and whether the server was active. Returns
    /// true if the server cannot answer now.
    async fn tick(&mut self, now: Instant) -> bool {
        let Some(Generation { pid, .. }) = self.observer.generation else { return false };
        if self.context.processes.is_stopped(pid) {
            if self.wake.is_waking(now) {
                return true;
            }
            self.report_outage(OutageCode::ServerNotResponding, format!("the tmux server (pid {pid}) is stopped"))
                .await;
            self.schedule.retry_in(BEAT, now);
            return true;
        }
        if !self.context.router.reports_output() {
            self.schedule.want_list();
            self.observer.screens.request_all(now);
        } else if self.has_run() | std::mem::take(&mut self.may_have_run) {
            self.schedule.server_ran(self.panes_wrote_recently(now), now);
        }
        false
    }

    fn has_run(&self) -> bool {
        self.observer.generation.is_none_or(|generation| self.process.has_run(generation, &*self.context.processes))
    }

    /// If the server was active when a new terminal appeared, requests a listing, because the terminal may belong to
    /// this server.
    fn check_terminals(&mut self, now: Instant) {
        if self.terminal_check_at.is_some_and(|at| at <= now) {
            self.terminal_check_at = None;
            if self.may_have_run || self.process.is_client_exiting() || self.has_run() {
                self.schedule.want_list();
            }
        }
    }

    async fn list(&mut self) -> ServerPresence {
        let began = Instant::now();
        match self.tmux.list().await {
            Ok(listing) => {
                self.schedule.listed(listing.rows.len(), began.elapsed(), Instant::now());
                self.apply_listing(listing).await;
                ServerPresence::Alive
            }
            Err(error) => self.listing_failed(error).await,
        }
    }

    async fn apply_listing(&mut self, listing: ServerListing) {
        let generation = convert::generation(&listing.server);
        let Some(listed) = self.observer.accept_listing(listing, Instant::now()).await else {
            return self.publish_health();
        };
        // If the listing shows a change, more may have changed while our client was exiting.
        self.may_have_run = listed.has_changed;
        let new_server = self.watch_generation(generation);
        let mut sessions: Vec<u32> = listed.rows.iter().map(|row| row.session.0).collect();
        sessions.sort_unstable();
        sessions.dedup();
        self.has_dead_panes = listed.rows.iter().any(|row| row.dead.is_some());
        let now = Instant::now();
        self.panes.apply_listing(&listed.rows, now);
        self.follow_agents(now);
        self.observer.report_rows(listed.rows).await;
        self.observer.apply(TopologyUpdate::TargetOutage { target: TargetName::local(), outage: None }).await;
        if let Some(hooks) = &mut self.hooks
            && hooks.check(&self.tmux, sessions, new_server).await
        {
            self.schedule.want_list();
        }
        self.observer.report_visits(&self.tmux).await;
        self.process.note_query(Instant::now());
        if self.looked {
            self.publish_health();
        }
    }

    /// Starts watching the process of this server generation. Returns false if it was already watched.
    fn watch_generation(&mut self, generation: Generation) -> bool {
        if self.process.is_watched(generation) {
            return false;
        }
        let start = self.context.processes.start_time(generation.pid);
        let watch = self.watcher.watch(WatchSubject::Process(generation.pid, start), ObserverHint::ServerEnded);
        let watch = watch.inspect_err(
            |error| tracing::warn!(%error, "cannot watch the process of a tmux server; its end will be noticed late"),
        );
        self.panes.clear();
        self.process = ServerProcess::new(generation, watch.ok());
        true
    }

    fn follow_agents(&mut self, now: Instant) {
        self.observer.follow_agents(self.panes.agents(), now);
        self.files.follow(&self.panes, now);
    }

    async fn reread_panes(&mut self, panes: &[u32]) {
        // The read covers only some panes. Remember earlier activity of the server, because other panes may have
        // changed.
        self.may_have_run |= self.has_run();
        let Ok(listing) = self.tmux.read(panes).await else { return self.schedule.want_list() };
        let generation = convert::generation(&listing.server);
        let rows: Vec<_> = listing.rows.into_iter().map(convert::pane_row).collect();
        // A pane that is missing from the result may have closed. A listing shows that.
        if rows.len() < panes.len() {
            self.schedule.want_list();
        }
        self.observer.report_reread(generation, rows).await;
        self.process.note_query(Instant::now());
    }

    /// Checks the processes of the panes whose check is due. If `all` is false, checks only when an urgent check is
    /// due. The caller sets `all` once a second, for the checks that are not urgent.
    async fn check_processes(&mut self, all: bool) {
        let now = Instant::now();
        let is_due = all || self.panes.urgent_at().is_some_and(|at| at <= now);
        if !is_due || self.observer.generation.is_none() {
            return;
        }
        let panes = self.panes.check_due(now);
        if !std::mem::take(&mut self.registry_changed) && panes.is_empty() {
            return;
        }
        self.panes.follow_agents();
        self.observer.report_processes(panes).await;
        self.follow_agents(now);
        self.observer.report_headless(self.panes.headless().collect()).await;
    }

    /// Captures the panes whose capture is due.
    async fn capture_screens(&mut self, now: Instant) {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.observer.reachable_generation().is_none()
            || !(is_due(self.observer.wake_at()) || is_due(self.files.taps.wake_at()))
        {
            return;
        }
        let ran = self.has_run();
        self.files.taps.open(&self.tmux, now).await;
        let due = self.observer.take_due(now);
        if due.is_empty() {
            return;
        }
        let began = self.context.clock.now();
        let panes: Vec<u32> = due.iter().map(|request| request.pane).collect();
        let captures = capture_all(&self.tmux, &panes).await;
        let registry = self.context.registry.get();
        for request in due {
            let Some(capture) = self.observer.find_capture(&request, &captures) else { continue };
            self.observer.report_screen(&registry, &request, capture, began).await;
            // Read the agent's files, too: one that did not exist or could not be watched may be readable now.
            self.files.file_changed(request.pane);
        }
        // A capture does not show all changes. Remember earlier activity of the server, so that a listing finds the
        // others.
        self.may_have_run |= ran;
        self.process.note_query(Instant::now());
    }

    async fn listing_failed(&mut self, error: TmuxError) -> ServerPresence {
        self.check_sleep();
        let now = Instant::now();
        if self.wake.is_waking(now) && matches!(error, TmuxError::Timeout(_)) {
            // The machine slept while the server was queried.
            self.schedule.retry_in(RETRY_DELAY / 10, now);
            return ServerPresence::Alive;
        }
        let outage = self.observer.listing_failed(&error);
        if error == TmuxError::NoServer && !self.is_server_alive() && !is_listening(self.tmux.socket()) {
            return ServerPresence::Gone;
        }
        if let TmuxError::NotInstalled(_) = error {
            let outage = Some((OutageCode::TmuxNotInstalled, error.to_string()));
            self.observer.apply(TopologyUpdate::TargetOutage { target: TargetName::local(), outage }).await;
        } else if let Some((code, message)) = outage {
            self.report_outage(code, message).await;
        }
        let wait = if self.observer.has_failed_often() { RETRY_DELAY } else { RETRY_DELAY / 10 };
        self.schedule.retry_in(wait, now);
        ServerPresence::Alive
    }

    fn is_server_alive(&self) -> bool {
        self.observer.generation.is_some_and(|generation| self.process.is_alive(generation, &*self.context.processes))
    }

    async fn report_outage(&mut self, code: OutageCode, message: String) {
        self.observer.report_outage(code, message).await;
        self.publish_health();
    }

    fn publish_health(&self) {
        let evidence = if self.context.router.reports_output() { "events" } else { "polling" };
        let health = self.observer.health(self.panes.count(), evidence, self.hooks_installed());
        self.report.send_replace(Some(health));
    }
}

/// Captures panes. tmux stops at the first pane that is missing, so this function captures the panes after it with
/// another command.
async fn capture_all(tmux: &TmuxServer, panes: &[u32]) -> Vec<Capture> {
    let mut captures = tmux.capture(panes).await.unwrap_or_default();
    let missing = panes.iter().position(|pane| !captures.iter().any(|capture| capture.pane == *pane));
    let behind = missing.map(|at| &panes[at + 1..]).unwrap_or_default();
    if !behind.is_empty() {
        captures.extend(tmux.capture(behind).await.unwrap_or_default());
    }
    captures
}
