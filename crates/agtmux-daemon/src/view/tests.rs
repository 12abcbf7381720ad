use agtmux_api::wire::{GroupBy, ListQuery, Scope, TaskNews};
use agtmux_core::engine::Input;
use agtmux_core::fleet::{AgentSighting, Life, Observation, PaneRow, ProcessSighting};
use agtmux_core::ids::*;
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

struct World {
    fleet: Fleet,
    states: StateEngine,
    view: View,
}

impl World {
    fn new() -> Self {
        Self { fleet: Fleet::default(), states: StateEngine::new(jiff::SignedDuration::ZERO), view: View::default() }
    }

    fn apply(&mut self, observation: Observation) -> Vec<Shift> {
        let delta = self.fleet.apply(observation, Timestamp::UNIX_EPOCH);
        for life in &delta.lives {
            if let Life::Began { pane, runtime } = life {
                let began = Input::Began {
                    runtime: runtime.id.clone(),
                    server: pane.server.clone(),
                    agent_type: runtime.agent_type.clone(),
                    suspended: false,
                };
                self.states.apply(began, Timestamp::UNIX_EPOCH);
            }
        }
        self.view.follow(&self.fleet, &self.states, &delta)
    }

    fn list(&mut self, server: &str, rows: Vec<PaneRow>) -> Vec<Shift> {
        self.apply(Observation::Listed { server: key(server), generation: GENERATION, rows })
    }

    fn agent(&mut self, server: &str, pane: u32) -> Vec<Shift> {
        let agent = AgentSighting {
            agent_type: AgentType::new("claude"),
            process: ProcessRef { pid: 9, start: 9 },
            suspended: false,
        };
        let sighting =
            ProcessSighting { pane: PaneId(pane), pane_pid: 100 + pane, foreground: None, agent: Some(agent) };
        self.apply(Observation::Processes { server: key(server), generation: GENERATION, panes: vec![sighting] })
    }

    fn query(&self, query: &ListQuery, scope: Scope) -> Filter {
        Filter::new(query, scope).expect("a good query")
    }
}

fn kinds(shifts: &[Shift], scope: Scope) -> Vec<EventKind> {
    shifts.iter().filter(|(_, item)| crate::shared::scope_of(item) == scope).map(|(kind, _)| *kind).collect()
}

#[test]
fn a_linked_window_is_listed_in_both_sessions_and_counted_once() {
    let mut world = World::new();
    world.list("default", vec![row(0, 0, 0), row(1, 0, 0)]);
    world.agent("default", 0);
    let query = ListQuery::default();
    let listing = panes(&world.view, &query, &world.query(&query, Scope::Panes), Timestamp::UNIX_EPOCH);
    assert_eq!(listing.items.len(), 2);
    assert_eq!(listing.summary.by_state.of(State::Unknown), 1);
    assert_eq!(listing.summary.by_agent["claude"], 1);
    let listing = windows(&world.view, &query, &world.query(&query, Scope::Windows), Timestamp::UNIX_EPOCH);
    assert_eq!((listing.items.len(), listing.summary.by_state.of(State::Unknown)), (2, 1));
}

#[test]
fn a_renamed_session_goes_and_comes() {
    let mut world = World::new();
    world.list("default", vec![row(0, 0, 0)]);
    let renamed = PaneRow { session_name: "new".into(), ..row(0, 0, 0) };
    let shifts = world.list("default", vec![renamed]);
    for scope in [Scope::Panes, Scope::Windows, Scope::Sessions] {
        assert_eq!(kinds(&shifts, scope), [EventKind::Remove, EventKind::Upsert], "{scope}");
    }
}

#[test]
fn a_session_that_lost_its_last_pane_is_gone() {
    let mut world = World::new();
    world.list("default", vec![row(0, 0, 0), row(1, 1, 1)]);
    let shifts = world.list("default", vec![row(0, 0, 0)]);
    for scope in [Scope::Panes, Scope::Windows, Scope::Sessions] {
        assert_eq!(kinds(&shifts, scope), [EventKind::Remove], "{scope}");
    }
}

#[test]
fn an_unchanged_summary_is_not_news() {
    let mut world = World::new();
    world.list("default", vec![row(0, 0, 0)]);
    let titled = PaneRow { title: "t".into(), ..row(0, 0, 0) };
    let shifts = world.list("default", vec![titled]);
    assert_eq!(kinds(&shifts, Scope::Panes), [EventKind::Upsert]);
    assert!(kinds(&shifts, Scope::Windows).is_empty() && kinds(&shifts, Scope::Sessions).is_empty());
}

#[test]
fn sessions_of_one_name_merge_only_when_asked() {
    let mut world = World::new();
    world.list("a", vec![row(0, 0, 0)]);
    world.list("b", vec![row(0, 0, 0)]);
    let mut query = ListQuery::default();
    let apart = sessions(&world.view, &query, &world.query(&query, Scope::Sessions), Timestamp::UNIX_EPOCH);
    assert_eq!(apart.items.len(), 2);
    query.group_by = Some(GroupBy::SessionName);
    let merged = sessions(&world.view, &query, &world.query(&query, Scope::Sessions), Timestamp::UNIX_EPOCH);
    let [item] = merged.items.as_slice() else { panic!("one item") };
    assert_eq!((item.panes, item.windows, item.by_target["host"].panes), (2, 2, 2));
    assert_eq!((item.identity.target.as_deref(), item.identity.server.as_deref()), (Some("host"), None));
}

#[test]
fn filters_narrow_and_bad_ones_are_refused() {
    let mut world = World::new();
    world.list("default", vec![row(0, 0, 0), row(1, 1, 1)]);
    world.agent("default", 1);
    let count = |query: ListQuery| {
        panes(&world.view, &query, &world.query(&query, Scope::Panes), Timestamp::UNIX_EPOCH).items.len()
    };
    assert_eq!(count(ListQuery::default()), 1);
    assert_eq!(count(ListQuery { all: true, ..ListQuery::default() }), 2);
    assert_eq!(count(ListQuery { target_session: Some("host/s0".into()), all: true, ..ListQuery::default() }), 1);
    assert_eq!(count(ListQuery { state: Some(State::Running), ..ListQuery::default() }), 0);
    assert_eq!(count(ListQuery { agent: Some("codex".into()), ..ListQuery::default() }), 0);
    assert_eq!(count(ListQuery { needs_action: true, ..ListQuery::default() }), 0);
    let bad = ListQuery { target_session: Some("no-slash".into()), ..ListQuery::default() };
    assert!(Filter::new(&bad, Scope::Panes).is_err());
    let bad = ListQuery { agent: Some("claude".into()), ..ListQuery::default() };
    assert!(Filter::new(&bad, Scope::Windows).is_err());
}

#[test]
fn a_name_that_passes_to_another_session_stays_shown() {
    let mut world = World::new();
    let named = |session: u32, name: &str| PaneRow { session_name: name.into(), ..row(session, session, session) };
    world.list("default", vec![named(0, "a"), named(1, "b")]);
    let shifts = world.list("default", vec![named(0, "b"), named(1, "c")]);
    let names = |items: &mut dyn Iterator<Item = Item>| -> Vec<String> {
        let name = |item| if let Item::Session(session) = item { Some(session.identity.session_name) } else { None };
        items.filter_map(name).collect()
    };
    assert_eq!(names(&mut world.view.items(Scope::Sessions)), ["b", "c"]);
    let told = |kind| names(&mut shifts.clone().into_iter().filter(|(k, _)| *k == kind).map(|(_, item)| item));
    assert_eq!((told(EventKind::Remove), told(EventKind::Upsert)), (vec!["a".into()], vec!["c".into()]));
}

fn news(kind: &str, code: Option<i32>) -> TaskNews {
    let event = serde_json::json!({
        "target": "host", "server": "default", "type": kind, "task": "t", "window_id": "@1", "pane_id": "%1", "run_id": null,
        "session": "s1", "exit_code": code, "signal": null, "prompt": null, "bell_count": null, "recent_output": [],
        "level": "info", "message": "", "seq": 7, "at": "2026-11-15T10:00:00Z",
        "delivery": {"status": true, "notice": false, "message": true, "agent_turn": null},
    });
    serde_json::from_value(event).expect("an event")
}

#[test]
fn what_happens_to_a_task_passes_as_its_pane_would() {
    let all = [news("started", None), news("input", None), news("exited", Some(0)), news("exited", Some(2))];
    let all = [&all[..], &[news("disappeared", None)]].concat();
    let passing = |query: ListQuery| {
        let filter = Filter::new(&query, Scope::Panes).expect("a filter");
        all.iter().map(|news| filter.accepts_task(news)).collect::<Vec<_>>()
    };
    let query = ListQuery::default;
    let of = |state| ListQuery { state: Some(state), ..query() };
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
