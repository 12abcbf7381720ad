//! Checks that a client that applies the events of the stream has the same items that a list request returns.

use agtmux_api::fleet_items::FleetItems;
use agtmux_api::wire::{EvidenceKind, ListQuery, SessionGrouping, TargetStatus};
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{
    DetectedAgent, Fleet, FleetDelta, OutageCode, PaneKey, PaneProcess, PaneRow, RuntimeChange, TopologyUpdate,
};
use agtmux_core::ids::{
    AgentType, Generation, PaneId, ProcessRef, ServerKey, ServerName, SessionId, TargetName, WindowId,
};
use agtmux_core::ordering::OrderKey;
use agtmux_core::resolver::{ResolverInput, StateResolver};
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use agtmux_core::target::{TargetHealth, TargetKind};
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::sample::select;

use super::sse::EventSource;
use super::*;
use crate::submissions::Submissions;
use crate::view::MirrorPanes;
use crate::view::{FleetView, TargetChange};

const GENERATION: Generation = Generation { pid: 1, start_time: 1 };
/// The number of panes in a flood. The event log does not buffer a change of this size.
const FLOOD: u32 = 300;

#[derive(Debug, Clone)]
enum FleetStep {
    /// A listing of a server. Each entry of `windows` has a bit for each session that contains the window, `panes` has
    /// the window of each pane, `rotation` shifts the session names, and `title` is the title of every pane.
    List {
        server: usize,
        windows: Vec<u8>,
        panes: Vec<Option<usize>>,
        rotation: u32,
        title: &'static str,
    },
    Flood {
        server: usize,
    },
    Agent {
        server: usize,
        pane: u32,
        agent: Option<&'static str>,
    },
    Report {
        server: usize,
        pane: u32,
        assertion: Assertion,
    },
    Outage {
        server: usize,
    },
    Gone {
        server: usize,
    },
    TargetOutage {
        target: &'static str,
        outage: Option<(OutageCode, String)>,
    },
    TargetRemoved,
    TargetStatus {
        name: &'static str,
        health: TargetHealth,
    },
    /// A reader reads its stream. It may reconnect first.
    Read {
        reader: usize,
        reconnected: bool,
    },
}

fn fleet_step() -> impl Strategy<Value = FleetStep> {
    let (server, pane) = (0..3_usize, 0..6_u32);
    let agent = prop::option::of(select(vec!["claude", "codex"]));
    let windows = prop::collection::vec(1..8_u8, 4);
    let panes = prop::collection::vec(prop::option::of(0..4_usize), 6);
    let approval = Assertion::DialogOpen(DialogKind::Approval);
    let assertions = vec![Assertion::Running, Assertion::Idle, Assertion::Completed, Assertion::Failed, approval];
    let outage = prop::option::of(Just((OutageCode::TargetUnreachable, "no answer".to_owned())));
    let list = (server.clone(), windows, panes, 0..3_u32, select(vec!["", "a", "b"]));
    prop_oneof![
        6 => list.prop_map(|(server, windows, panes, rotation, title)| {
            FleetStep::List { server, windows, panes, rotation, title }
        }),
        1 => server.clone().prop_map(|server| FleetStep::Flood { server }),
        6 => (server.clone(), pane.clone(), agent)
            .prop_map(|(server, pane, agent)| FleetStep::Agent { server, pane, agent }),
        6 => (server.clone(), pane, select(assertions))
            .prop_map(|(server, pane, assertion)| FleetStep::Report { server, pane, assertion }),
        2 => server.clone().prop_map(|server| FleetStep::Outage { server }),
        1 => server.prop_map(|server| FleetStep::Gone { server }),
        2 => (select(vec![TargetName::LOCAL, "vm1"]), outage)
            .prop_map(|(target, outage)| FleetStep::TargetOutage { target, outage }),
        1 => Just(FleetStep::TargetRemoved),
        3 => (select(vec!["vm1", "vm2"]), select(TargetHealth::ALL.to_vec()))
            .prop_map(|(name, health)| FleetStep::TargetStatus { name, health }),
        8 => (0..queries().len(), any::<bool>())
            .prop_map(|(reader, reconnected)| FleetStep::Read { reader, reconnected }),
    ]
}

fn server_key(n: usize) -> ServerKey {
    let target = if n < 2 { TargetName::local() } else { TargetName::new("vm1") };
    ServerKey { target, server: ServerName::new(["default", "second", "default"][n]) }
}

fn row(session: u32, rotation: u32, window: u32, pane: u32, title: &str) -> PaneRow {
    PaneRow {
        session: SessionId(session),
        session_name: format!("s{}", (session + rotation) % 3),
        window: WindowId(window),
        window_index: window,
        window_name: format!("w{window}"),
        pane: PaneId(pane),
        pane_index: 0,
        pid: 100 + pane,
        tty: String::new(),
        dead: None,
        title: title.to_owned(),
    }
}

fn target_status(name: &str, health: TargetHealth) -> TargetStatus {
    TargetStatus {
        name: name.to_owned(),
        kind: TargetKind::Ssh,
        ssh_target: Some(name.to_owned()),
        health,
        evidence: EvidenceKind::Nothing,
        agtmux_version: None,
        since: Timestamp::UNIX_EPOCH,
        fault: None,
        message: None,
        hint: None,
        clock_ahead_ms: None,
    }
}

/// The queries of the readers. Each query selects a different part of the fleet.
fn queries() -> Vec<ListQuery> {
    let scope = |scope| ListQuery { scope: Some(scope), ..ListQuery::default() };
    let panes = || scope(ListScope::Panes);
    vec![
        scope(ListScope::All),
        ListQuery { all: true, ..scope(ListScope::All) },
        ListQuery { target: Some("vm1".into()), ..scope(ListScope::All) },
        panes(),
        ListQuery { all: true, target_session: Some("host/s1".into()), ..panes() },
        ListQuery { state: Some(State::Running.into()), ..panes() },
        ListQuery { agent: Some("codex".into()), needs_action: true, ..panes() },
        ListQuery { needs_action: true, ..scope(ListScope::Windows) },
        ListQuery { session: Some("s0".into()), ..scope(ListScope::Sessions) },
        scope(ListScope::Targets),
        ListQuery { target: Some("vm1".into()), ..scope(ListScope::Targets) },
    ]
}

/// The filters that a client may apply to its own copy of the fleet.
fn local_queries(query: &ListQuery) -> Vec<ListQuery> {
    if query.scope != Some(ListScope::All) {
        return vec![query.clone()];
    }
    vec![
        query.clone(),
        ListQuery { needs_action: true, ..query.clone() },
        ListQuery { state: Some(State::Idle.into()), ..query.clone() },
        ListQuery { session: Some("s2".into()), group_by: Some(SessionGrouping::SessionName), ..query.clone() },
    ]
}

struct TestFleet {
    fleet: Fleet,
    states: StateResolver,
    event_log: Arc<EventLog>,
    target_changes: Vec<TargetChange>,
    /// The current time in seconds. Grows with each update.
    second: i64,
}

impl TestFleet {
    fn new() -> Self {
        let states = StateResolver::new(SignedDuration::from_secs(120));
        let fleet = Fleet::default();
        let event_log = Arc::new(EventLog::new(FleetView::from_fleet(&fleet, Timestamp::UNIX_EPOCH), 0));
        Self { fleet, states, event_log, target_changes: Vec::new(), second: 0 }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).expect("in range")
    }

    fn run(&mut self, step: FleetStep) {
        self.second += 1;
        let generation = GENERATION;
        match step {
            FleetStep::List { server, windows, panes, rotation, title } => {
                let mut rows = Vec::new();
                for (pane, window) in (0..).zip(panes) {
                    let Some(window) = window else { continue };
                    let sessions = (0..3).filter(|session| windows[window] & (1 << session) != 0);
                    rows.extend(sessions.map(|session| row(session, rotation, window as u32, pane, title)));
                }
                self.observe(TopologyUpdate::Listed { server: server_key(server), generation, rows });
            }
            FleetStep::Flood { server } => {
                let rows = (0..FLOOD).map(|pane| row(0, 0, 0, pane, "")).collect();
                self.observe(TopologyUpdate::Listed { server: server_key(server), generation, rows });
            }
            FleetStep::Agent { server, pane, agent } => {
                let process = ProcessRef { pid: 9, start: 9 };
                let agent = agent.map(|name| DetectedAgent::new(AgentType::new(name), process));
                let panes = vec![PaneProcess { pane: PaneId(pane), pane_pid: 100 + pane, foreground: None, agent }];
                self.observe(TopologyUpdate::Processes { server: server_key(server), generation, panes });
            }
            FleetStep::Report { server, pane, assertion } => self.report(server_key(server), pane, assertion),
            FleetStep::Outage { server } => self.observe(TopologyUpdate::ServerOutage {
                server: server_key(server),
                generation,
                code: OutageCode::ServerNotResponding,
                message: "no answer".into(),
            }),
            FleetStep::Gone { server } => self.observe(TopologyUpdate::ServerGone { server: server_key(server) }),
            FleetStep::TargetOutage { target, outage } => {
                self.observe(TopologyUpdate::TargetOutage { target: TargetName::new(target), outage });
            }
            FleetStep::TargetRemoved => {
                self.target_changes.push(TargetChange::Remove(TargetName::new("vm1")));
                self.observe(TopologyUpdate::TargetRemoved { target: TargetName::new("vm1") });
            }
            FleetStep::TargetStatus { name, health } => {
                self.target_changes.push(TargetChange::Put(Box::new(target_status(name, health))));
                self.publish(FleetDelta::default(), Vec::new());
            }
            FleetStep::Read { .. } => {}
        }
    }

    fn observe(&mut self, update: TopologyUpdate) {
        let delta = self.fleet.apply(update, self.now());
        let inputs = delta.runtime_changes.iter().map(|change| match change.clone() {
            RuntimeChange::Started { pane, runtime } => ResolverInput::Started {
                runtime: runtime.id,
                server: pane.server,
                agent_type: runtime.agent_type,
                suspended: runtime.suspended,
            },
            RuntimeChange::Ended { runtime, .. } => ResolverInput::Ended { runtime },
            RuntimeChange::Suspended { runtime, suspended } => ResolverInput::Suspended { runtime, suspended },
            RuntimeChange::Reachable { server, reachable } => ResolverInput::Reachable { server, reachable },
        });
        let inputs = inputs.collect();
        self.publish(delta, inputs);
    }

    fn report(&mut self, server: ServerKey, pane: u32, assertion: Assertion) {
        let key = PaneKey { server, pane: PaneId(pane) };
        let Some(runtime) = self.fleet.pane(&key).and_then(|pane| pane.runtime.as_ref()) else { return };
        let at = self.now();
        let order = OrderKey { source_seq: None, event_time: at, ingested_at: at, event_id: self.second.to_string() };
        let observation = Observation {
            source: Source::Hook,
            assertion,
            conclusive: true,
            as_of: at,
            settled: true,
            ttl: None,
            order,
            rule: RuleRef { name: "test".into(), version: 1 },
            excerpt: String::new(),
            tentative: false,
            inferred_from_absence: false,
            no_turn_visible: false,
            counts_from: None,
            dialog: None,
            asked: Vec::new(),
        };
        let input = ResolverInput::Observed { runtime: runtime.id.clone(), observation: Box::new(observation) };
        self.publish(FleetDelta::default(), vec![input]);
    }

    /// Resolves the states and publishes the changes, as the engine does.
    fn publish(&mut self, mut delta: FleetDelta, inputs: Vec<ResolverInput>) {
        let now = self.now();
        let transitions: Vec<_> = inputs.into_iter().flat_map(|input| self.states.apply(input, now)).collect();
        for transition in transitions {
            if let Some(key) = self.pane_of(&transition.runtime)
                && let Some(pane) = self.fleet.pane(&key)
            {
                delta.windows.insert((key.server.clone(), pane.window));
                let sessions = pane.placements.iter().map(|placement| (key.server.clone(), placement.session));
                delta.sessions.extend(sessions);
                delta.changed.insert(key);
            }
        }
        let (fleet, states, targets) = (&self.fleet, &self.states, std::mem::take(&mut self.target_changes));
        self.event_log.publish(now, 0, Vec::new(), |view| {
            let mut events = view.apply(fleet, states, &Submissions::default(), &MirrorPanes::default(), &delta);
            events.extend(view.apply_targets(targets, now));
            events
        });
    }

    fn pane_of(&self, runtime: &RuntimeId) -> Option<PaneKey> {
        let mut panes =
            self.fleet.servers().flat_map(|(key, server)| server.panes.iter().map(move |(id, pane)| (key, *id, pane)));
        let found = panes.find(|(_, _, pane)| pane.runtime.as_ref().is_some_and(|own| own.id == *runtime));
        found.map(|(key, pane, _)| PaneKey { server: key.clone(), pane })
    }
}

/// A client with its copy of the fleet.
struct TestClient {
    query: ListQuery,
    reader: WatchReader,
    copy: FleetItems,
}

impl TestClient {
    fn new(fleet: &TestFleet, query: ListQuery) -> Self {
        let reader = Self::connect(fleet, &query, None);
        Self { query, reader, copy: FleetItems::default() }
    }

    fn connect(fleet: &TestFleet, query: &ListQuery, position: Option<u64>) -> WatchReader {
        let scope = query.scope.unwrap_or_default();
        let filter = ItemFilter::new(query, scope).expect("a valid query");
        let (event_log, resumed) = (fleet.event_log.clone(), position.is_some());
        WatchReader { event_log, scope, filter, position, resumed, shown: HashSet::new() }
    }

    fn reconnect(&mut self, fleet: &TestFleet) {
        self.reader = Self::connect(fleet, &self.query, self.reader.position);
    }

    /// Reads all events. Returns their kinds.
    fn read(&mut self) -> Vec<WatchEventKind> {
        let chunk = self.reader.catch_up();
        let text = std::str::from_utf8(&chunk).expect("UTF-8");
        assert!(text.is_empty() || text.ends_with(&format!("id: {}\n\n", self.reader.position.expect("known"))));
        let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<WatchEvent> = events.map(|data| serde_json::from_str(data).expect("an event")).collect();
        let kinds = events.iter().map(|event| event.kind).collect();
        events.into_iter().for_each(|event| self.copy.apply(event));
        kinds
    }

    #[track_caller]
    fn check(&self, fleet: &TestFleet) {
        let log = fleet.event_log.read();
        let (listed, copy, at) = (&log.view.fleet, &self.copy, Timestamp::UNIX_EPOCH);
        let scope = self.query.scope.unwrap_or_default();
        if scope.includes(ListScope::Panes) {
            for query in local_queries(&self.query) {
                let filter = ItemFilter::new(&query, ListScope::Panes).expect("a valid query");
                assert_eq!(copy.list_panes(&filter, at), listed.list_panes(&filter, at), "{query:?}");
            }
        }
        if scope.includes(ListScope::Targets) {
            let filter = ItemFilter::new(&self.query, scope).expect("a valid query");
            let statuses = |items: &FleetItems| {
                items.list_targets(&filter).items.into_iter().map(|item| item.status).collect::<Vec<_>>()
            };
            assert_eq!(statuses(copy), statuses(listed), "{:?}", self.query);
        }
        for query in local_queries(&self.query).iter().filter(|_| scope != ListScope::Panes) {
            let filter = ItemFilter::new(query, scope).expect("a valid query");
            let (mut windows, mut sessions) = (listed.list_windows(&filter, at), listed.list_sessions(&filter, at));
            let (own_windows, own_sessions) = (copy.list_windows(&filter, at), copy.list_sessions(&filter, at));
            if scope != ListScope::All {
                // The client has no panes, so it cannot count agents.
                windows.summary = own_windows.summary.clone();
                sessions.summary = own_sessions.summary.clone();
            }
            if scope.includes(ListScope::Windows) {
                assert_eq!(own_windows, windows, "{query:?}");
            }
            if scope.includes(ListScope::Sessions) {
                assert_eq!(own_sessions, sessions, "{query:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn applying_the_stream_gives_the_lists(steps in prop::collection::vec(fleet_step(), 1..60)) {
        let mut fleet = TestFleet::new();
        let mut clients: Vec<TestClient> =
            queries().into_iter().map(|query| TestClient::new(&fleet, query)).collect();
        for step in steps {
            if let FleetStep::Read { reader, reconnected } = step {
                let client = &mut clients[reader];
                if reconnected {
                    client.reconnect(&fleet);
                }
                client.read();
                client.check(&fleet);
            }
            fleet.run(step);
        }
        for client in &mut clients {
            client.read();
            client.check(&fleet);
        }
    }
}

#[test]
fn outages_are_events_of_every_stream_and_part_of_its_snapshot() {
    let mut fleet = TestFleet::new();
    fleet.run(FleetStep::List { server: 0, windows: vec![1], panes: vec![Some(0)], rotation: 0, title: "" });
    for scope in [ListScope::Panes, ListScope::Windows, ListScope::Sessions, ListScope::All] {
        // The outage also changes the health of this machine.
        let health = (scope == ListScope::All).then_some(WatchEventKind::Upsert);
        let expected: Vec<_> = std::iter::once(WatchEventKind::TargetErrors).chain(health).collect();
        let query = ListQuery { scope: Some(scope), ..ListQuery::default() };
        let mut client = TestClient::new(&fleet, query.clone());
        client.read();
        fleet.run(FleetStep::Outage { server: 0 });
        assert_eq!(client.read(), expected, "{scope}");
        assert_eq!(client.copy.target_errors.len(), 1);
        let mut late = TestClient::new(&fleet, query);
        assert_eq!(late.read().last(), Some(&WatchEventKind::TargetErrors), "{scope}");
        let list = FleetStep::List { server: 0, windows: vec![1], panes: vec![Some(0)], rotation: 0, title: "" };
        fleet.run(list);
        assert_eq!(client.read(), expected, "{scope}");
        assert_eq!(client.copy.target_errors, []);
    }
}

#[test]
fn a_flood_of_changes_resets_the_copy() {
    let mut fleet = TestFleet::new();
    let mut client = TestClient::new(&fleet, ListQuery { all: true, ..queries().remove(0) });
    client.read();
    fleet.run(FleetStep::Flood { server: 0 });
    assert_eq!(client.read().first(), Some(&WatchEventKind::Reset));
    assert_eq!(client.copy.panes.len(), FLOOD as usize);
    client.check(&fleet);
}

#[test]
fn the_health_of_targets_is_an_item_of_the_stream() {
    let mut fleet = TestFleet::new();
    let mut client = TestClient::new(&fleet, ListQuery { scope: Some(ListScope::Targets), ..ListQuery::default() });
    assert_eq!(client.read(), [WatchEventKind::Snapshot], "this machine is always watched");
    fleet.run(FleetStep::TargetStatus { name: "vm1", health: TargetHealth::Ok });
    fleet.run(FleetStep::TargetStatus { name: "vm1", health: TargetHealth::Ok });
    assert_eq!(client.read(), [WatchEventKind::Upsert], "an unchanged status is not sent again");
    fleet.run(FleetStep::TargetStatus { name: "vm1", health: TargetHealth::Down });
    assert_eq!(client.read(), [WatchEventKind::Upsert]);
    assert_eq!(client.copy.targets["vm1"].health, TargetHealth::Down);
    fleet.run(FleetStep::TargetRemoved);
    assert_eq!(client.read(), [WatchEventKind::Remove]);
    assert_eq!(client.copy.targets.keys().collect::<Vec<_>>(), [TargetName::LOCAL]);
}

#[test]
fn an_outage_of_this_machine_degrades_its_health() {
    let list = FleetStep::List { server: 0, windows: vec![1], panes: vec![Some(0)], rotation: 0, title: "" };
    let mut fleet = TestFleet::new();
    fleet.run(list.clone());
    let mut client = TestClient::new(&fleet, ListQuery { scope: Some(ListScope::Targets), ..ListQuery::default() });
    client.read();
    fleet.run(FleetStep::Outage { server: 0 });
    assert_eq!(client.read(), [WatchEventKind::TargetErrors, WatchEventKind::Upsert]);
    let local = client.copy.targets[TargetName::LOCAL].clone();
    assert_eq!((local.health, local.message.as_deref()), (TargetHealth::Degraded, Some("no answer")));
    assert_eq!(local.since, fleet.now());
    // Now only another server hangs, with the same message. The hint must name the process of that server.
    let (server, generation) = (server_key(1), Generation { pid: 77, start_time: 1 });
    fleet.observe(TopologyUpdate::Listed { server: server.clone(), generation, rows: vec![row(0, 0, 0, 0, "")] });
    let (code, message) = (OutageCode::ServerNotResponding, "no answer".to_owned());
    fleet.observe(TopologyUpdate::ServerOutage { server, generation, code, message });
    fleet.run(list);
    client.read();
    let hint = client.copy.targets[TargetName::LOCAL].hint.clone().expect("a hint");
    assert!(hint.contains("kill -CONT 77"), "{hint}");
    fleet.run(FleetStep::Gone { server: 1 });
    client.read();
    assert_eq!(client.copy.targets[TargetName::LOCAL].health, TargetHealth::Ok);
}
