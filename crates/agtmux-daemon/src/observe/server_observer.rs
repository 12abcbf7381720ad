//! The observer of one tmux server: turns the data of the server into updates for the engine.
//!
//! The observer does not read the server itself. Two drivers do that, each with its own source of hints: `LocalServer`
//! follows the signals of this machine and calls tmux; the watcher of an agentless host polls all its servers through
//! one shell.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_agents::AgentRegistry;
use agtmux_api::wire::ServerHealth;
use agtmux_core::evidence::{Assertion, Observation, RuleRef, Source};
use agtmux_core::fleet::{OutageCode, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey};
use agtmux_tmux::{Capture, MIN_VERSION, ServerListing, TmuxClient, TmuxError, TmuxServer, TmuxVersion, listener_pid};
use jiff::Timestamp;

use super::agent_map::FoundAgent;
use super::screen_judge::{ScreenEvidence, ScreenJudge};
use super::screen_schedule::{DueCapture, ScreenSchedule};
use super::signal_router::HintSender;
use super::{ObserverContext, convert};
use crate::engine::PaneVisits;

/// How many failed listings in a row are tolerated before an outage is reported. A listing may fail while the server
/// exits.
const MAX_FAILURES: u32 = 2;

/// How soon a screen is captured again if it must be confirmed because the machine has just woken up.
const CONFIRM_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) struct ServerObserver {
    context: Arc<ObserverContext>,
    pub(crate) key: ServerKey,
    pub(crate) socket: PathBuf,
    pub(crate) generation: Option<Generation>,
    version: String,
    /// The server did not answer the last request.
    pub(crate) unreachable: bool,
    failures: u32,
    /// A digest of the rows of the last listing.
    listed_digest: Option<u64>,
    /// When to capture the screens of agents.
    pub(crate) screens: ScreenSchedule,
    judge: ScreenJudge,
    reported_headless: BTreeSet<(u32, ProcessRef)>,
}

/// A listing of a tmux server whose version agtmux supports.
pub(crate) struct AcceptedListing {
    pub(crate) rows: Vec<PaneRow>,
    /// The rows differ from the previous listing, or the server was unreachable after the previous listing.
    pub(crate) has_changed: bool,
    /// The server was restarted. The same pane ids now mean other panes.
    pub(crate) is_new_generation: bool,
    pub(crate) was_unreachable: bool,
}

impl ServerObserver {
    /// Makes an observer. `known` is the server's generation according to the store.
    pub(crate) fn new(
        context: Arc<ObserverContext>,
        key: ServerKey,
        socket: PathBuf,
        known: Option<Generation>,
        hints: HintSender,
    ) -> Self {
        context.recheck_hints.subscribe(key.clone(), hints);
        Self {
            context,
            key,
            socket,
            generation: known,
            version: String::new(),
            unreachable: false,
            failures: 0,
            listed_digest: None,
            screens: ScreenSchedule::default(),
            judge: ScreenJudge::default(),
            reported_headless: BTreeSet::new(),
        }
    }

    /// The generation of the server. `None` if the server is unreachable, or if its generation is not known yet.
    pub(crate) fn reachable_generation(&self) -> Option<Generation> {
        self.generation.filter(|_| !self.unreachable)
    }

    /// Whether the server has been listed.
    pub(crate) fn was_listed(&self) -> bool {
        self.listed_digest.is_some()
    }

    /// Accepts a listing. If the version of the server is not supported, reports an outage and returns `None`.
    pub(crate) async fn accept_listing(&mut self, listing: ServerListing, now: Instant) -> Option<AcceptedListing> {
        let generation = convert::generation(&listing.server);
        if !TmuxVersion::parse(&listing.server.version).is_supported() {
            let version = listing.server.version;
            let message = format!("the server runs tmux {version}; agtmux requires {MIN_VERSION} or newer");
            self.reject_listing(generation, version, OutageCode::TmuxTooOld, message).await;
            return None;
        }
        self.version = listing.server.version;
        self.failures = 0;
        let was_unreachable = std::mem::take(&mut self.unreachable);
        let is_new_generation = self.generation.replace(generation) != Some(generation);
        if is_new_generation {
            (self.screens, self.judge) = (ScreenSchedule::default(), ScreenJudge::default());
        }
        if was_unreachable {
            // No screen was captured while the server did not answer.
            self.screens.request_all(now);
        }
        let mut hasher = DefaultHasher::new();
        listing.rows.hash(&mut hasher);
        let digest = hasher.finish();
        let has_changed = self.listed_digest.replace(digest) != Some(digest) || is_new_generation || was_unreachable;
        let rows = listing.rows.into_iter().map(convert::pane_row).collect();
        Some(AcceptedListing { rows, has_changed, is_new_generation, was_unreachable })
    }

    /// Rejects a listing: reports this outage, and none of the listed panes.
    pub(crate) async fn reject_listing(
        &mut self,
        generation: Generation,
        version: String,
        code: OutageCode,
        message: String,
    ) {
        self.generation.get_or_insert(generation);
        self.version = version;
        self.report_outage(code, message).await;
    }

    pub(crate) async fn report_rows(&self, rows: Vec<PaneRow>) {
        let Some(generation) = self.generation else { return };
        self.apply(TopologyUpdate::Listed { server: self.key.clone(), generation, rows }).await;
    }

    pub(crate) async fn report_reread(&self, generation: Generation, rows: Vec<PaneRow>) {
        self.apply(TopologyUpdate::Reread { server: self.key.clone(), generation, rows }).await;
    }

    pub(crate) async fn report_processes(&self, panes: Vec<PaneProcess>) {
        let Some(generation) = self.generation else { return };
        self.apply(TopologyUpdate::Processes { server: self.key.clone(), generation, panes }).await;
    }

    /// If an agent on this server has completed a turn that no person has seen, reports for each attached client which
    /// pane it shows and when its user last pressed a key. Clients in control mode are left out, because tmux receives
    /// no key presses from them.
    pub(crate) async fn report_visits(&self, tmux: &TmuxServer) {
        let Some(generation) = self.generation.filter(|_| self.context.recheck_hints.has_unseen(&self.key)) else {
            return;
        };
        let clients = tmux.clients().await.unwrap_or_default();
        let visit = |client: &TmuxClient| {
            let at = Timestamp::from_second(i64::try_from(client.last_key).ok()?).ok()?;
            Some((PaneId(client.pane), at)).filter(|_| !client.control_mode)
        };
        let visits: Vec<_> = clients.iter().filter_map(visit).collect();
        if !visits.is_empty() {
            self.context.engine.apply_visits(PaneVisits { server: self.key.clone(), generation, visits }).await;
        }
    }

    pub(crate) async fn report_gone(&self) {
        self.apply(TopologyUpdate::ServerGone { server: self.key.clone() }).await;
    }

    /// Counts a failed listing. Returns the outage to report, or `None` while the failure is tolerated.
    pub(crate) fn listing_failed(&mut self, error: &TmuxError) -> Option<(OutageCode, String)> {
        self.failures += 1;
        // `NoServer` from a local server is tolerated at first, because the server is asked again within 50 ms. A
        // server of an agentless host is asked again only with the next poll.
        let is_certain = match error {
            TmuxError::Timeout(_) => true,
            TmuxError::NoServer => !self.key.target.is_local(),
            _ => false,
        };
        (is_certain || self.failures > MAX_FAILURES).then(|| match error {
            TmuxError::Timeout(_) => (OutageCode::ServerNotResponding, error.to_string()),
            TmuxError::NoServer => (
                OutageCode::ServerNotResponding,
                "the server's process runs, but its socket does not accept connections".into(),
            ),
            _ => (OutageCode::ListingFailed, error.to_string()),
        })
    }

    /// Notes that the machine slept until now. Requests captures of all screens. A changed screen counts only after a
    /// second capture has confirmed it.
    pub(crate) fn woke(&mut self, now: Instant) {
        self.judge.woke(self.context.clock.now());
        self.screens.request_all(now);
    }

    pub(crate) fn has_failed_often(&self) -> bool {
        self.failures > MAX_FAILURES
    }

    pub(crate) async fn report_outage(&mut self, code: OutageCode, message: String) {
        self.unreachable = true;
        // For a local server that never answered, the pid comes from its socket.
        let pid = || listener_pid(&self.socket).filter(|_| self.key.target.is_local()).unwrap_or(0);
        let generation = self.generation.unwrap_or_else(|| Generation { pid: pid(), start_time: 0 });
        self.apply(TopologyUpdate::ServerOutage { server: self.key.clone(), generation, code, message }).await;
    }

    pub(crate) async fn apply(&self, update: TopologyUpdate) {
        self.context.engine.apply_topology(update).await;
    }

    /// Updates the set of agents whose screens are captured.
    pub(crate) fn follow_agents<'a>(&mut self, found: impl Iterator<Item = FoundAgent<'a>>, now: Instant) {
        self.screens.follow(found, now);
        self.judge.retain(|pane| self.screens.contains(pane));
    }

    /// Reports headless agents as running. Such an agent does one turn without a user, so it is running until its
    /// process ends.
    pub(crate) async fn report_headless(&mut self, headless: BTreeSet<(u32, ProcessRef)>) {
        let Some(generation) = self.generation else { return };
        let began = self.context.clock.now();
        for (pane, process) in headless.difference(&self.reported_headless) {
            let observations = [Assertion::Running, Assertion::NoDialog].map(|assertion| Observation {
                excerpt: "headless: started for one turn".into(),
                ..Observation::new(Source::Process, assertion, began, RuleRef::new("headless", 1))
            });
            let no_evidence = ScreenEvidence::new((self.key.clone(), generation), PaneId(*pane), *process, began);
            let evidence = ScreenEvidence { observations: observations.into(), ..no_evidence };
            self.context.engine.apply_screen(evidence).await;
        }
        self.reported_headless = headless;
    }

    /// Discards all results from the old manifests, and requests new captures of all screens.
    pub(crate) fn apply_new_manifests(&mut self, now: Instant) {
        self.judge = ScreenJudge::default();
        self.reported_headless.clear();
        self.screens.request_all(now);
    }

    /// Returns the captures that are due. While the server does not answer, no capture is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<DueCapture> {
        if self.reachable_generation().is_some() { self.screens.take_due(now) } else { Vec::new() }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.screens.wake_at().filter(|_| self.reachable_generation().is_some())
    }

    /// Finds the capture that `due` asked for. If it is missing, plans a retry.
    pub(crate) fn find_capture<'a>(&mut self, due: &DueCapture, captures: &'a [Capture]) -> Option<&'a Capture> {
        let pid = self.generation.map(|generation| generation.pid);
        let found = captures.iter().find(|capture| capture.pane == due.pane && Some(capture.server_pid) == pid);
        if found.is_none() {
            self.screens.capture_failed(due.pane, Instant::now());
        }
        found
    }

    /// Judges a capture and reports the result. `began` is when the capture began. Returns false if the screen may
    /// still be changing, so that another capture is needed.
    pub(crate) async fn report_screen(
        &mut self,
        registry: &AgentRegistry,
        due: &DueCapture,
        capture: &Capture,
        began: Timestamp,
    ) -> bool {
        let Some(generation) = self.generation else { return true };
        let judged = self.judge.judge(registry, (self.key.clone(), generation), due, capture, began);
        let Some(evidence) = judged else {
            if due.early {
                return false;
            }
            self.screens.request_at(due.pane, Instant::now() + CONFIRM_INTERVAL);
            return false;
        };
        let observations = &evidence.observations;
        if observations.iter().any(|seen| seen.dialog.is_some()) {
            self.screens.dialog_seen(due.pane);
        }
        let is_certain = due.settled || (!observations.is_empty() && observations.iter().all(|seen| seen.settled));
        self.context.engine.apply_screen(evidence).await;
        is_certain
    }

    pub(crate) fn health(&self, panes: usize, evidence: &str, hooks: bool) -> ServerHealth {
        ServerHealth {
            target: self.key.target.to_string(),
            server: self.key.server.to_string(),
            socket: convert::path_text(&self.socket),
            pid: self.generation.map_or(0, |generation| generation.pid),
            tmux_version: self.version.clone(),
            panes: u32::try_from(panes).unwrap_or(u32::MAX),
            evidence: evidence.into(),
            hooks,
        }
    }
}
