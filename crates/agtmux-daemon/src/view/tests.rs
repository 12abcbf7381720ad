use agtmux_api::fleet_items::ItemFilter;
use agtmux_api::wire::{ListQuery, ListScope, SessionGrouping, TaskWatchEvent};
use agtmux_core::fleet::{DetectedAgent, PaneProcess, PaneRow, RuntimeChange, TopologyUpdate};
use agtmux_core::ids::*;
use agtmux_core::resolver::ResolverInput;
use agtmux_core::state::State;
use jiff::Timestamp;

use super::*;

fn key(server: &str) -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new(server) }
}

const GENERATION: Generation = Generation { pid: 1, start_time: 1 };

fn row(session: u32, window: u32, pane: u32) -> PaneRow {
    PaneRow {
        session: SessionId(session),
        session_name: format!("s{session}"),
        window: WindowId(window),
        window_index: window,
        window_name: format!("w{window}"),
        pane: PaneId(pane),
        pane_index: 0,
        pid: 100 + pane,
        tty: String::new(),
        dead: None,
        title: String::new(),
    }
}

struct TestView {
    fleet: Fleet,
    states: StateResolver,
    view: FleetView,
}

impl TestView {
    fn new() -> Self {
        Self {
            fleet: Fleet::default(),
            states: StateResolver::new(jiff::SignedDuration::ZERO),
            view: FleetView::default(),
        }
    }

    fn apply(&mut self, observation: TopologyUpdate) -> Vec<WatchEvent> {
        let delta = self.fleet.apply(observation, Timestamp::UNIX_EPOCH);
        for life in &delta.runtime_changes {
            if let RuntimeChange::Started { pane, runtime } = life {
                let began = ResolverInput::Started {
                    runtime: runtime.id.clone(),
                    server: pane.server.clone(),
                    agent_type: runtime.agent_type.clone(),
                    suspended: false,
                };
                self.states.apply(began, Timestamp::UNIX_EPOCH);
            }
        }
        self.view.apply(&self.fleet, &self.states, &Submissions::default(), &MirrorPanes::default(), &delta)
    }

    fn list(&mut self, server: &str, rows: Vec<PaneRow>) -> Vec<WatchEvent> {
        self.apply(TopologyUpdate::Listed { server: key(server), generation: GENERATION, rows })
    }

    fn agent(&mut self, server: &str, pane: u32) -> Vec<WatchEvent> {
        let agent = DetectedAgent {
            agent_type: AgentType::new("claude"),
            process: ProcessRef { pid: 9, start: 9 },
            suspended: false,
            launch: Default::default(),
        };
        let process = PaneProcess { pane: PaneId(pane), pane_pid: 100 + pane, foreground: None, agent: Some(agent) };
        self.apply(TopologyUpdate::Processes { server: key(server), generation: GENERATION, panes: vec![process] })
    }

    fn query(&self, query: &ListQuery, scope: ListScope) -> ItemFilter {
        ItemFilter::new(query, scope).expect("a good query")
    }
}

fn kinds(changes: &[WatchEvent], scope: ListScope) -> Vec<WatchEventKind> {
    changes.iter().filter(|event| event.scope == scope).map(|event| event.kind).collect()
}

#[test]
fn a_linked_window_is_listed_in_both_sessions_and_counted_once() {
    let mut fleet_view = TestView::new();
    fleet_view.list("default", vec![row(0, 0, 0), row(1, 0, 0)]);
    fleet_view.agent("default", 0);
    let query = ListQuery::default();
    let listing = fleet_view.view.fleet.list_panes(&fleet_view.query(&query, ListScope::Panes), Timestamp::UNIX_EPOCH);
    assert_eq!(listing.items.len(), 2);
    assert_eq!(listing.summary.by_state.of(State::Unknown), 1);
    assert_eq!(listing.summary.by_agent["claude"], 1);
    let listing =
        fleet_view.view.fleet.list_windows(&fleet_view.query(&query, ListScope::Windows), Timestamp::UNIX_EPOCH);
    assert_eq!((listing.items.len(), listing.summary.by_state.of(State::Unknown)), (2, 1));
}

#[test]
fn a_renamed_session_is_removed_and_added() {
    let mut fleet_view = TestView::new();
    fleet_view.list("default", vec![row(0, 0, 0)]);
    let renamed = PaneRow { session_name: "new".into(), ..row(0, 0, 0) };
    let changes = fleet_view.list("default", vec![renamed]);
    for scope in [ListScope::Panes, ListScope::Windows, ListScope::Sessions] {
        assert_eq!(kinds(&changes, scope), [WatchEventKind::Remove, WatchEventKind::Upsert], "{scope}");
    }
}

#[test]
fn a_session_without_panes_is_removed() {
    let mut fleet_view = TestView::new();
    fleet_view.list("default", vec![row(0, 0, 0), row(1, 1, 1)]);
    let changes = fleet_view.list("default", vec![row(0, 0, 0)]);
    for scope in [ListScope::Panes, ListScope::Windows, ListScope::Sessions] {
        assert_eq!(kinds(&changes, scope), [WatchEventKind::Remove], "{scope}");
    }
}

#[test]
fn an_unchanged_summary_is_not_published() {
    let mut fleet_view = TestView::new();
    fleet_view.list("default", vec![row(0, 0, 0)]);
    let titled = PaneRow { title: "t".into(), ..row(0, 0, 0) };
    let changes = fleet_view.list("default", vec![titled]);
    assert_eq!(kinds(&changes, ListScope::Panes), [WatchEventKind::Upsert]);
    assert!(kinds(&changes, ListScope::Windows).is_empty() && kinds(&changes, ListScope::Sessions).is_empty());
}

#[test]
fn sessions_with_the_same_name_merge_only_on_request() {
    let mut fleet_view = TestView::new();
    fleet_view.list("a", vec![row(0, 0, 0)]);
    fleet_view.list("b", vec![row(0, 0, 0)]);
    let mut query = ListQuery::default();
    let separate =
        fleet_view.view.fleet.list_sessions(&fleet_view.query(&query, ListScope::Sessions), Timestamp::UNIX_EPOCH);
    assert_eq!(separate.items.len(), 2);
    query.group_by = Some(SessionGrouping::SessionName);
    let merged =
        fleet_view.view.fleet.list_sessions(&fleet_view.query(&query, ListScope::Sessions), Timestamp::UNIX_EPOCH);
    let [item] = merged.items.as_slice() else { panic!("one item") };
    assert_eq!((item.panes, item.windows, item.by_target["host"].panes), (2, 2, 2));
    assert_eq!((item.identity.target.as_deref(), item.identity.server.as_deref()), (Some("host"), None));
}

#[test]
fn filters_select_items_and_invalid_filters_are_rejected() {
    let mut fleet_view = TestView::new();
    fleet_view.list("default", vec![row(0, 0, 0), row(1, 1, 1)]);
    fleet_view.agent("default", 1);
    let count = |query: ListQuery| {
        fleet_view.view.fleet.list_panes(&fleet_view.query(&query, ListScope::Panes), Timestamp::UNIX_EPOCH).items.len()
    };
    assert_eq!(count(ListQuery::default()), 1);
    assert_eq!(count(ListQuery { all: true, ..ListQuery::default() }), 2);
    assert_eq!(count(ListQuery { target_session: Some("host/s0".into()), all: true, ..ListQuery::default() }), 1);
    assert_eq!(count(ListQuery { state: Some(State::Running.into()), ..ListQuery::default() }), 0);
    assert_eq!(count(ListQuery { agent: Some("codex".into()), ..ListQuery::default() }), 0);
    assert_eq!(count(ListQuery { needs_action: true, ..ListQuery::default() }), 0);
    let bad = ListQuery { target_session: Some("no-slash".into()), ..ListQuery::default() };
    assert!(ItemFilter::new(&bad, ListScope::Panes).is_err());
    let bad = ListQuery { agent: Some("claude".into()), ..ListQuery::default() };
    assert!(ItemFilter::new(&bad, ListScope::Windows).is_err());
}

#[test]
fn a_name_that_moves_to_another_session_stays_listed() {
    let mut fleet_view = TestView::new();
    let named = |session: u32, name: &str| PaneRow { session_name: name.into(), ..row(session, session, session) };
    fleet_view.list("default", vec![named(0, "a"), named(1, "b")]);
    let changes = fleet_view.list("default", vec![named(0, "b"), named(1, "c")]);
    let names = |items: &mut dyn Iterator<Item = WatchItem>| -> Vec<String> {
        let name =
            |item| if let WatchItem::Session(session) = item { Some(session.identity.session_name) } else { None };
        items.filter_map(name).collect()
    };
    assert_eq!(names(&mut fleet_view.view.items(ListScope::Sessions)), ["b", "c"]);
    let of_kind = |kind| changes.iter().filter(move |event| event.kind == kind).filter_map(|event| event.item.clone());
    let names_of = |kind| names(&mut of_kind(kind));
    assert_eq!(
        (names_of(WatchEventKind::Remove), names_of(WatchEventKind::Upsert)),
        (vec!["a".into()], vec!["c".into()])
    );
}

fn task_event(kind: &str, code: Option<i32>) -> TaskWatchEvent {
    let event = serde_json::json!({
        "target": "host", "server": "default", "type": kind, "task": "t", "window_id": "@1", "pane_id": "%1", "run_id": null,
        "session": "s1", "exit_code": code, "signal": null, "prompt": null, "bell_count": null, "recent_output": [],
        "level": "info", "message": "", "seq": 7, "at": "2026-11-15T10:00:00Z",
        "delivery": {"status": true, "notice": false, "message": true, "agent_turn": null},
    });
    serde_json::from_value(event).expect("an event")
}

#[test]
fn task_events_pass_the_filter_like_the_pane_of_the_task() {
    let all = [
        task_event("started", None),
        task_event("input", None),
        task_event("exited", Some(0)),
        task_event("exited", Some(2)),
    ];
    let all = [&all[..], &[task_event("disappeared", None)]].concat();
    let passing = |query: ListQuery| {
        let filter = ItemFilter::new(&query, ListScope::Panes).expect("a filter");
        all.iter().map(|task_event| filter.accepts_task(task_event)).collect::<Vec<_>>()
    };
    let query = ListQuery::default;
    let of = |state: State| ListQuery { state: Some(state.into()), ..query() };
    assert_eq!(passing(query()), [true; 5]);
    assert_eq!(passing(of(State::Running)), [true, false, false, false, false]);
    assert_eq!(passing(of(State::WaitingInput)), [false, true, false, false, false]);
    assert_eq!(passing(of(State::Completed)), [false, false, true, false, false]);
    assert_eq!(passing(of(State::Error)), [false, false, false, true, false]);
    assert_eq!(passing(ListQuery { needs_action: true, ..query() }), [false, true, false, true, false]);
    assert_eq!(passing(ListQuery { agent: Some("task".into()), session: Some("s1".into()), ..query() }), [true; 5]);
    for none in [
        ListQuery { agent: Some("claude".into()), ..query() },
        ListQuery { session: Some("s2".into()), ..query() },
        ListQuery { target: Some("mars".into()), ..query() },
    ] {
        assert_eq!(passing(none), [false; 5]);
    }
}
