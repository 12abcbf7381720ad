//! One observer per tmux server: it follows hints, reads back, and tells the engine.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_api::wire::ServerHealth;
use agtmux_core::fleet::{Observation, OutageCode};
use agtmux_core::ids::{Generation, ServerKey, TargetName};
use agtmux_tmux::{Listing, MINIMUM, TmuxError, TmuxServer, Version, is_listening, listener_pid};
use tokio::sync::{mpsc, watch};

use super::agents::Agents;
use super::hooking::Hooking;
use super::lookout::Post;
use super::pace::{Pace, Work};
use super::switchboard::{Notice, Notices, Watch};
use super::watched::WatchedPanes;
use super::{Senses, convert};

/// After a question the server runs on for a moment to see its client off: that is not a change.
const SEE_OFF: Duration = Duration::from_millis(30);

/// For this long after a pane wrote, its server counts as running because of it.
const WRITES_ON: Duration = Duration::from_millis(1500);

/// How soon a server that failed to answer is asked again.
const RETRY: Duration = Duration::from_millis(500);

/// A server may stumble once, for instance while it is ending.
const STUMBLES: u32 = 2;

pub(super) struct ServerObserver {
    senses: Arc<Senses>,
    key: ServerKey,
    tmux: TmuxServer,
    notices: mpsc::UnboundedReceiver<Notice>,
    own_notices: Notices,
    pace: Pace,
    panes: WatchedPanes,
    agents: Agents,
    _post: Post,
    hooking: Option<Hooking>,
    life: Option<Life>,
    stumbles: u32,
    silent: bool,
    /// A digest of the rows that were last listed.
    listed: Option<u64>,
    /// Other agents are known since its processes were last looked at.
    relearned: bool,
    /// Its agents were looked at after a listing.
    looked: bool,
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
struct Life {
    generation: Generation,
    version: String,
    _watch: Option<Watch>,
    /// How often the server had run when it was last seen off, and when to find that out.
    runs: Option<u64>,
    count_runs_at: Option<Instant>,
    /// Its process has ended, though somebody may not have noticed yet and it still has a number.
    ended: bool,
}

/// Whether there is still something to observe.
enum Fate {
    Alive,
    Gone,
}

impl ServerObserver {
    /// `known` is the generation that the store remembers.
    pub(super) fn new(
        senses: Arc<Senses>,
        key: ServerKey,
        tmux: TmuxServer,
        known: Option<Generation>,
    ) -> (Self, Notices, watch::Receiver<Option<ServerHealth>>) {
        let (own_notices, notices) = mpsc::unbounded_channel();
        let (report, reports) = watch::channel(None);
        let observe = &senses.config.observe;
        let pace = Pace::new(observe.reconcile_active.0, observe.reconcile_idle.0, Instant::now());
        let hooking = Hooking::prepare(&senses, &key, &own_notices);
        let life = known.map(|generation| Life::new(generation, String::new(), None));
        let agents = Agents::new(observe.osc_tap);
        let handle = own_notices.clone();
        let post = senses.lookout.man(key.clone(), own_notices.clone());
        let observer = Self {
            senses,
            key,
            tmux,
            notices,
            own_notices,
            pace,
            panes: WatchedPanes::new(Instant::now()),
            agents,
            _post: post,
            hooking,
            life,
            stumbles: 0,
            silent: false,
            listed: None,
            relearned: false,
            looked: false,
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
            if let Fate::Gone = self.work().await {
                self.senses.engine.observe(Observation::ServerGone { server: self.key.clone() }).await;
                self.hooking.iter_mut().for_each(Hooking::forget);
                return;
            }
            let wake_at = self.wake_at().into();
            tokio::select! {
                notice = self.notices.recv() => match notice {
                    None | Some(Notice::Retire) => break,
                    Some(notice) => if self.absorb_all(notice) { break },
                },
                () = tokio::time::sleep_until(wake_at) => {}
            }
        }
        if let Some(hooking) = &self.hooking
            && !self.silent
        {
            hooking.remove(&self.tmux).await;
        }
    }

    fn wake_at(&self) -> Instant {
        let count = self.life.as_ref().and_then(|life| life.count_runs_at);
        let look = self.panes.urgent_at();
        // While it cannot be asked its screens are no reason to wake up.
        let screens = self.agents.wake_at().filter(|_| !self.silent && self.life.is_some());
        [count, look, screens, self.terminal_check_at].into_iter().flatten().fold(self.pace.wake_at(), Instant::min)
    }

    /// Takes in a notice and all that wait behind it. Says whether one of them was the last.
    fn absorb_all(&mut self, first: Notice) -> bool {
        let now = Instant::now();
        let mut notice = Some(first);
        // A burst of output is one look at the pane, however many notices it made.
        let mut stirred = BTreeSet::new();
        while let Some(next) = notice {
            match next {
                Notice::Retire => return true,
                Notice::Output(pane) => {
                    stirred.insert(pane);
                }
                other => self.absorb(other, now),
            }
            notice = self.notices.try_recv().ok();
        }
        if !stirred.is_empty() {
            self.written_at = Some(now);
        }
        for pane in stirred {
            self.pace.want_read(pane, now);
            self.panes.stir(pane);
            self.agents.wrote(pane, now);
        }
        false
    }

    fn absorb(&mut self, notice: Notice, now: Instant) {
        match notice {
            Notice::AgentEnded(pane) => self.panes.disturb(pane, now),
            Notice::AgentSpoke(pane) => self.agents.said(pane, now),
            Notice::AgentFile(pane) => self.agents.filed(pane),
            Notice::PaneEnded(pane) => {
                self.panes.disturb(pane, now);
                self.pace.want_list();
            }
            Notice::ServerEnded => {
                self.life.iter_mut().for_each(|life| life.ended = true);
                self.pace.want_list();
            }
            Notice::LookAgain => {
                self.pace.want_list();
                self.agents.look_at_all(now);
            }
            Notice::Relearned => {
                self.panes.disturb_all(now);
                self.agents.relearn(&self.panes, &self.senses, now);
                self.relearned = true;
            }
            Notice::Hooked => self.pace.want_list(),
            // Most terminals are none of this server's business, and hooks tell of those that are.
            Notice::Terminals | Notice::Sockets => {
                self.may_have_run |= self.is_being_seen_off();
                if !self.hooked() && self.has_run() {
                    self.pace.want_list();
                }
                // No hook tells of a dead pane in which something is started again; its new terminal does.
                if self.has_dead_panes {
                    self.terminal_check_at.get_or_insert(now + SEE_OFF);
                }
            }
            Notice::Output(_) | Notice::Manifests | Notice::Retire => {}
        }
    }

    fn hooked(&self) -> bool {
        self.hooking.as_ref().is_some_and(Hooking::installed)
    }

    fn panes_write(&self, now: Instant) -> bool {
        self.written_at.is_some_and(|at| now < at + WRITES_ON)
    }

    async fn work(&mut self) -> Fate {
        let now = Instant::now();
        self.check_terminals(now);
        self.count_runs(now);
        let ticked = self.pace.tick(now);
        if ticked && self.tick(now).await {
            return Fate::Alive;
        }
        // Before the server is asked, which may take a while.
        self.look_at_processes(ticked).await;
        let home = (&self.key, self.life.as_ref().map(|life| life.generation));
        self.agents.read_files(&self.senses, home, &self.own_notices).await;
        self.look_at_screens(now).await;
        if self.listed.is_some() && !std::mem::replace(&mut self.looked, true) {
            // Whoever waits for the first answer wants to know what agents do now, not what they did before.
            self.make_report();
        }
        match self.pace.take(now) {
            Some(Work::List) => self.list().await,
            Some(Work::Read(panes)) => self.read(&panes).await,
            None => Fate::Alive,
        }
    }

    /// Once a second, at no cost to the server: is it stopped, has it run? Says whether it cannot be asked now.
    async fn tick(&mut self, now: Instant) -> bool {
        let Some(life) = &self.life else { return false };
        let pid = life.generation.pid;
        if self.senses.processes.is_stopped(pid) {
            self.outage(OutageCode::ServerNotResponding, format!("the tmux server (pid {pid}) is stopped")).await;
            self.pace.retry_in(super::pace::TICK, now);
            return true;
        }
        if !self.senses.switchboard.reports_output() {
            self.pace.want_list();
            self.agents.look_at_all(now);
        } else if self.has_run() | std::mem::take(&mut self.may_have_run) {
            self.pace.server_ran(self.panes_write(now), now);
        }
        false
    }

    fn has_run(&self) -> bool {
        let Some(life) = &self.life else { return true };
        // While it is being seen off nothing can be said: then the net is there for it.
        !self.is_being_seen_off() && self.senses.processes.wakeups(life.generation.pid) != life.runs
    }

    fn is_being_seen_off(&self) -> bool {
        self.life.as_ref().is_some_and(|life| life.count_runs_at.is_some())
    }

    fn count_runs(&mut self, now: Instant) {
        if let Some(life) = &mut self.life
            && life.count_runs_at.is_some_and(|at| at <= now)
        {
            life.count_runs_at = None;
            life.runs = self.senses.processes.wakeups(life.generation.pid);
        }
    }

    /// A server that has not run has no new terminal. One that made it is asleep again by now.
    fn check_terminals(&mut self, now: Instant) {
        if self.terminal_check_at.is_some_and(|at| at <= now) {
            self.terminal_check_at = None;
            if self.may_have_run || self.is_being_seen_off() || self.has_run() {
                self.pace.want_list();
            }
        }
    }

    fn asked(&mut self) {
        if let Some(life) = &mut self.life {
            life.count_runs_at = Some(Instant::now() + SEE_OFF);
        }
    }

    async fn list(&mut self) -> Fate {
        let began = Instant::now();
        match self.tmux.list().await {
            Ok(listing) => {
                self.pace.listed(listing.rows.len(), began.elapsed(), Instant::now());
                // Where something changed, more may have while the server was being seen off.
                self.may_have_run = self.is_news(&listing);
                self.listed(listing).await;
                Fate::Alive
            }
            Err(error) => self.failed(error).await,
        }
    }

    fn is_news(&mut self, listing: &Listing) -> bool {
        let mut hasher = DefaultHasher::new();
        listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        self.listed.replace(digest) != Some(digest)
    }

    async fn listed(&mut self, listing: Listing) {
        if !Version::parse(&listing.server.version).is_supported() {
            let (generation, version) = (convert::generation(&listing.server), listing.server.version);
            self.life.get_or_insert_with(|| Life::new(generation, version.clone(), None));
            let message = format!("its tmux is {version}; agtmux needs {MINIMUM} or newer");
            return self.outage(OutageCode::TmuxTooOld, message).await;
        }
        self.stumbles = 0;
        if std::mem::take(&mut self.silent) {
            // Nobody looked in the meantime.
            self.agents.look_at_all(Instant::now());
        }
        let new_server = self.begin_life(&listing);
        let generation = convert::generation(&listing.server);
        let mut sessions: Vec<u32> = listing.rows.iter().map(|row| row.session).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let rows: Vec<_> = listing.rows.into_iter().map(convert::row).collect();
        self.has_dead_panes = rows.iter().any(|row| row.dead.is_some());
        let senses = self.senses.clone();
        self.panes.follow(&rows, &senses.switchboard, senses.processes.as_ref(), &self.own_notices, Instant::now());
        self.agents.follow(&self.panes, &senses, Instant::now());
        senses.engine.observe(Observation::Listed { server: self.key.clone(), generation, rows }).await;
        senses.engine.observe(Observation::TargetOutage { target: TargetName::local(), outage: None }).await;
        if let Some(hooking) = &mut self.hooking
            && hooking.check(&self.tmux, sessions, new_server).await
        {
            self.pace.want_list();
        }
        self.asked();
        if self.looked {
            self.make_report();
        }
    }

    /// Says whether this is another server than the one before.
    fn begin_life(&mut self, listing: &Listing) -> bool {
        let generation = convert::generation(&listing.server);
        if self.life.as_ref().is_some_and(|life| life.generation == generation && life._watch.is_some()) {
            return false;
        }
        let start = self.senses.processes.start_time(generation.pid);
        let watch = self.senses.switchboard.process(generation.pid, start, &self.own_notices, Notice::ServerEnded);
        let watch = watch.inspect_err(|error| tracing::warn!(%error, "the end of a tmux server will be seen late"));
        self.panes.clear();
        self.life = Some(Life::new(generation, listing.server.version.clone(), watch.ok()));
        true
    }

    async fn read(&mut self, panes: &[u32]) -> Fate {
        // What is read is less than what may have changed.
        self.may_have_run |= self.has_run();
        match self.tmux.read(panes).await {
            Ok(listing) => {
                let generation = convert::generation(&listing.server);
                let rows: Vec<_> = listing.rows.into_iter().map(convert::row).collect();
                // A pane that is missing, or is another one now, is a matter for a listing.
                if rows.len() < panes.len() {
                    self.pace.want_list();
                }
                let reread = Observation::Reread { server: self.key.clone(), generation, rows };
                self.senses.engine.observe(reread).await;
                self.asked();
                Fate::Alive
            }
            Err(_) => {
                self.pace.want_list();
                Fate::Alive
            }
        }
    }

    /// Settled panes are looked at when the second is over, all others when they are due.
    async fn look_at_processes(&mut self, all: bool) {
        let now = Instant::now();
        if !all && self.panes.urgent_at().is_none_or(|at| now < at) {
            return;
        }
        let senses = self.senses.clone();
        let Some(life) = &self.life else { return };
        let panes = self.panes.look(senses.processes.as_ref(), &senses.roster.now(), now);
        if !std::mem::take(&mut self.relearned) && panes.is_empty() {
            return;
        }
        self.panes.follow_agents(&senses.switchboard, &self.own_notices);
        let (server, generation) = (self.key.clone(), life.generation);
        senses.engine.observe(Observation::Processes { server, generation, panes }).await;
        self.agents.follow(&self.panes, &senses, now);
        self.agents.tell_headless(&senses, &self.key, generation).await;
    }

    /// What agents show.
    async fn look_at_screens(&mut self, now: Instant) {
        let Some(life) = self.life.as_ref().filter(|_| !self.silent) else { return };
        let generation = life.generation;
        let ran = self.has_run();
        self.agents.tap(&self.tmux, now).await;
        if self.agents.look(&self.senses, &self.tmux, &self.key, generation, now).await {
            // What is shown is less than what may have changed.
            self.may_have_run |= ran;
            self.asked();
        }
    }

    async fn failed(&mut self, error: TmuxError) -> Fate {
        let now = Instant::now();
        self.stumbles += 1;
        let alive = self.life.as_ref().filter(|life| is_alive(self.senses.processes.as_ref(), life));
        if error == TmuxError::NoServer && alive.is_none() && !is_listening(self.tmux.socket()) {
            return Fate::Gone;
        }
        if let TmuxError::NotInstalled(_) = error {
            let outage = Some((OutageCode::TmuxNotInstalled, error.to_string()));
            self.senses.engine.observe(Observation::TargetOutage { target: TargetName::local(), outage }).await;
        } else if self.stumbles > STUMBLES || matches!(error, TmuxError::Timeout(_)) {
            let (code, message) = match &error {
                TmuxError::Timeout(_) => (OutageCode::ServerNotResponding, error.to_string()),
                TmuxError::NoServer => {
                    (OutageCode::ServerNotResponding, "its process lives, but nobody listens on its socket".into())
                }
                _ => (OutageCode::ListingFailed, error.to_string()),
            };
            self.outage(code, message).await;
        }
        let wait = if self.stumbles > STUMBLES { RETRY } else { RETRY / 10 };
        self.pace.retry_in(wait, now);
        Fate::Alive
    }

    async fn outage(&mut self, code: OutageCode, message: String) {
        self.silent = true;
        // A server that has never answered still has a process at the other end of its socket.
        let unheard = || Generation { pid: listener_pid(self.tmux.socket()).unwrap_or(0), start_time: 0 };
        let generation = self.life.as_ref().map_or_else(unheard, |life| life.generation);
        let outage = Observation::ServerOutage { server: self.key.clone(), generation, code, message };
        self.senses.engine.observe(outage).await;
        self.make_report();
    }

    fn make_report(&self) {
        let life = self.life.as_ref();
        let evidence = if self.senses.switchboard.reports_output() { "events" } else { "polling" };
        self.report.send_replace(Some(ServerHealth {
            target: self.key.target.to_string(),
            server: self.key.server.to_string(),
            socket: convert::path(self.tmux.socket()),
            pid: life.map_or(0, |life| life.generation.pid),
            tmux_version: life.map(|life| life.version.clone()).unwrap_or_default(),
            panes: u32::try_from(self.panes.count()).unwrap_or(u32::MAX),
            evidence: evidence.into(),
            hooks: self.hooked(),
        }));
    }
}

impl Life {
    fn new(generation: Generation, version: String, watch: Option<Watch>) -> Self {
        Self { generation, version, _watch: watch, runs: None, count_runs_at: None, ended: false }
    }
}

fn is_alive(table: &dyn agtmux_tmux::platform::ProcessTable, life: &Life) -> bool {
    !life.ended && table.start_time(life.generation.pid).is_some()
}
