use jiff::Timestamp;

use super::*;
use crate::ids::*;

fn server() -> ServerKey {
    ServerKey { target: TargetName::local(), server: ServerName::new("default") }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second in range")
}

const FIRST: Generation = Generation { pid: 100, start_time: 1 };
const SECOND: Generation = Generation { pid: 200, start_time: 2 };

fn row(session: u32, pane: u32, pid: u32) -> PaneRow {
    PaneRow {
        session: SessionId(session),
        session_name: format!("s{session}"),
        window: WindowId(0),
        window_index: 0,
        window_name: "w".into(),
        pane: PaneId(pane),
        pane_index: 0,
        pid,
        tty: "/dev/pts/9".into(),
        dead: None,
        title: String::new(),
    }
}

fn listed(generation: Generation, rows: Vec<PaneRow>) -> TopologyUpdate {
    TopologyUpdate::Listed { server: server(), generation, rows }
}

fn agent(pane: u32, pane_pid: u32, pid: u32, suspended: bool) -> TopologyUpdate {
    let agent =
        DetectedAgent { suspended, ..DetectedAgent::new(AgentType::new("claude"), ProcessRef { pid, start: 7 }) };
    processes(pane, pane_pid, Some(agent))
}

fn processes(pane: u32, pane_pid: u32, agent: Option<DetectedAgent>) -> TopologyUpdate {
    let foreground = Some(ForegroundProcess { command: "x".into(), cwd: None });
    let process = PaneProcess { pane: PaneId(pane), pane_pid, foreground, agent };
    TopologyUpdate::Processes { server: server(), generation: FIRST, panes: vec![process] }
}

fn key(pane: u32) -> PaneKey {
    PaneKey { server: server(), pane: PaneId(pane) }
}

fn ended(delta: &FleetDelta) -> Vec<crate::runtime::RuntimeId> {
    let ended = delta.runtime_changes.iter().filter_map(|change| match change {
        RuntimeChange::Ended { runtime, .. } => Some(runtime.clone()),
        _ => None,
    });
    ended.collect()
}

fn fleet_with_agent() -> Fleet {
    let mut fleet = Fleet::default();
    fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1));
    fleet.apply(agent(0, 10, 50, false), at(2));
    fleet
}

fn runtime_of(fleet: &Fleet) -> crate::runtime::Runtime {
    fleet.pane(&key(0)).and_then(|p| p.runtime.clone()).expect("an agent in %0")
}

#[test]
fn the_same_listing_twice_changes_nothing() {
    let mut fleet = Fleet::default();
    assert!(!fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1)).is_empty());
    assert!(fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(2)).is_empty());
}

#[test]
fn a_pane_in_two_sessions_is_one_pane_with_two_placements() {
    let mut fleet = Fleet::default();
    let delta = fleet.apply(listed(FIRST, vec![row(0, 0, 10), row(1, 0, 10)]), at(1));
    assert_eq!(delta.changed.len(), 1);
    assert_eq!(fleet.pane(&key(0)).map(|p| p.placements.len()), Some(2));
    assert_eq!(delta.sessions.len(), 2);
}

#[test]
fn a_respawn_is_a_new_epoch_and_ends_the_runtime() {
    let mut fleet = fleet_with_agent();
    let delta = fleet.apply(listed(FIRST, vec![row(0, 0, 11)]), at(3));
    assert_eq!(ended(&delta).len(), 1);
    let pane = fleet.pane(&key(0)).expect("the pane stays");
    assert_eq!((pane.epoch, &pane.runtime), (2, &None));
    fleet.apply(agent(0, 10, 50, false), at(4));
    assert_eq!(fleet.pane(&key(0)).and_then(|p| p.runtime.clone()), None, "data about the old process is dropped");
}

#[test]
fn the_next_agent_in_a_pane_has_another_id_even_with_the_same_pid() {
    let mut fleet = fleet_with_agent();
    let before = runtime_of(&fleet).id;
    fleet.apply(processes(0, 10, None), at(3));
    fleet.apply(agent(0, 10, 50, false), at(4));
    assert_ne!(runtime_of(&fleet).id, before);
}

#[test]
fn a_restarted_server_loses_its_old_panes() {
    let mut fleet = fleet_with_agent();
    let old = runtime_of(&fleet);
    let delta = fleet.apply(listed(SECOND, vec![row(0, 0, 10)]), at(3));
    assert_eq!(ended(&delta), [old.id]);
    assert_eq!(fleet.pane(&key(0)).and_then(|p| p.runtime.clone()), None);
    assert!(fleet.apply(agent(0, 10, 50, false), at(4)).is_empty(), "the process data names the old generation");
}

#[test]
fn an_outage_keeps_the_panes_and_is_reported() {
    let mut fleet = fleet_with_agent();
    let outage = |message: &str| TopologyUpdate::ServerOutage {
        server: server(),
        generation: FIRST,
        code: OutageCode::ServerNotResponding,
        message: message.into(),
    };
    let expected = |reachable| vec![RuntimeChange::Reachable { server: server(), reachable }];
    let delta = fleet.apply(outage("stopped"), at(3));
    assert!(delta.removed.is_empty() && fleet.pane(&key(0)).is_some());
    assert_eq!(delta.runtime_changes, expected(false));
    assert!(fleet.apply(outage("stopped"), at(4)).is_empty());
    let delta = fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(5));
    assert_eq!(delta.runtime_changes, expected(true));
}

#[test]
fn a_suspended_agent_keeps_its_id_when_it_continues() {
    let mut fleet = fleet_with_agent();
    let id = runtime_of(&fleet).id;
    let delta = fleet.apply(agent(0, 10, 50, true), at(3));
    assert_eq!(delta.runtime_changes, [RuntimeChange::Suspended { runtime: id.clone(), suspended: true }]);
    fleet.apply(agent(0, 10, 50, false), at(4));
    assert_eq!(runtime_of(&fleet).id, id);
}

#[test]
fn a_dead_pane_has_no_agent() {
    let mut fleet = fleet_with_agent();
    let dead = PaneRow { dead: Some(PaneExitStatus { status: Some(1), signal: None }), ..row(0, 0, 10) };
    let delta = fleet.apply(listed(FIRST, vec![dead]), at(3));
    assert_eq!(ended(&delta).len(), 1);
    fleet.apply(agent(0, 10, 50, false), at(4));
    assert_eq!(fleet.pane(&key(0)).and_then(|p| p.runtime.clone()), None);
}

#[test]
fn moving_a_pane_updates_the_window_it_left() {
    let mut fleet = fleet_with_agent();
    let moved = PaneRow { window: WindowId(5), ..row(0, 0, 10) };
    let delta = fleet.apply(listed(FIRST, vec![moved]), at(3));
    let windows: Vec<_> = delta.windows.iter().map(|(_, w)| *w).collect();
    assert_eq!(windows, [WindowId(0), WindowId(5)]);
}

#[test]
fn rereading_a_pane_keeps_its_placements_and_ignores_unknown_panes() {
    let mut fleet = Fleet::default();
    fleet.apply(listed(FIRST, vec![row(0, 0, 10), row(1, 0, 10)]), at(1));
    let titled = PaneRow { title: "new".into(), ..row(0, 0, 10) };
    let rows = vec![titled, row(0, 9, 99)];
    let delta = fleet.apply(TopologyUpdate::Reread { server: server(), generation: FIRST, rows }, at(2));
    assert_eq!(delta.changed.into_iter().collect::<Vec<_>>(), [key(0)]);
    assert_eq!(fleet.pane(&key(0)).map(|p| (p.placements.len(), p.title.as_str())), Some((2, "new")));
}

fn task(pane: u32, pid: u32, status: PaneTaskStatus) -> TopologyUpdate {
    let task = PaneTask { name: "build".into(), process: ProcessRef { pid, start: 7 }, status };
    TopologyUpdate::Task { server: server(), generation: FIRST, pane: PaneId(pane), task: Some(task) }
}

#[test]
fn a_task_is_assigned_to_its_pane_in_either_order() {
    let orders = [
        [listed(FIRST, vec![row(0, 0, 10)]), task(0, 10, PaneTaskStatus::Running)],
        [task(0, 10, PaneTaskStatus::Running), listed(FIRST, vec![row(0, 0, 10)])],
    ];
    for order in orders {
        let mut fleet = Fleet::default();
        let deltas: Vec<FleetDelta> = order.into_iter().map(|update| fleet.apply(update, at(1))).collect();
        let started = deltas
            .iter()
            .flat_map(|delta| &delta.runtime_changes)
            .filter(|change| matches!(change, RuntimeChange::Started { .. }));
        assert_eq!(started.count(), 1);
        assert_eq!(
            (runtime_of(&fleet).name.as_deref(), runtime_of(&fleet).agent_type.is_task()),
            (Some("build"), true)
        );
    }
}

#[test]
fn a_task_stays_in_a_dead_pane_until_the_next_run() {
    let mut fleet = Fleet::default();
    fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1));
    fleet.apply(task(0, 10, PaneTaskStatus::Running), at(2));
    let first = runtime_of(&fleet).id;
    fleet.apply(processes(0, 10, None), at(3));
    let dead = PaneRow { dead: Some(PaneExitStatus { status: Some(1), signal: None }), ..row(0, 0, 10) };
    fleet.apply(listed(FIRST, vec![dead]), at(3));
    assert_eq!(runtime_of(&fleet).id, first);
    fleet.apply(task(0, 11, PaneTaskStatus::Running), at(4));
    let delta = fleet.apply(listed(FIRST, vec![row(0, 0, 11)]), at(5));
    assert!(delta.runtime_changes.iter().any(|change| matches!(change, RuntimeChange::Started { .. })), "{delta:?}");
    assert_ne!(runtime_of(&fleet).id, first);
}

#[test]
fn a_task_of_an_earlier_server_is_recognized_before_the_later_server_is_listed() {
    let mut fleet = Fleet::default();
    fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1));
    fleet.apply(task(0, 10, PaneTaskStatus::Running), at(2));
    let process = |start| ProcessRef { pid: 20, start };
    let same_second = Generation { pid: 300, ..FIRST };
    assert!(!fleet.has_later_task(&key(0), FIRST, process(1)), "the same server");
    assert!(!fleet.has_later_task(&key(0), SECOND, process(1)), "a later server, perhaps after a reboot");
    assert!(!fleet.has_later_task(&key(0), same_second, process(8)));
    assert!(fleet.has_later_task(&key(0), same_second, process(6)));
    assert!(fleet.has_later_task(&key(0), Generation { pid: 1, start_time: 0 }, process(8)));
    assert!(!fleet.has_later_task(&key(1), Generation { pid: 1, start_time: 0 }, process(8)), "no task in this pane");
}

#[test]
fn an_agent_inside_a_task_is_the_current_runtime() {
    let mut fleet = Fleet::default();
    fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1));
    fleet.apply(task(0, 10, PaneTaskStatus::Running), at(2));
    fleet.apply(agent(0, 10, 50, false), at(3));
    assert_eq!(runtime_of(&fleet).agent_type.as_str(), "claude");
    fleet.apply(processes(0, 10, None), at(4));
    assert!(runtime_of(&fleet).agent_type.is_task());
}

#[test]
fn an_unreachable_target_keeps_its_panes_and_a_removed_one_does_not() {
    let mut fleet = Fleet::default();
    let remote_server = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("default") };
    fleet.apply(listed(FIRST, vec![row(0, 0, 10)]), at(1));
    let remote = TopologyUpdate::Listed { server: remote_server.clone(), generation: FIRST, rows: vec![row(0, 0, 10)] };
    fleet.apply(remote.clone(), at(1));

    let lost = TopologyUpdate::TargetUnreachable { target: TargetName::new("vm1"), message: "gone".into() };
    let delta = fleet.apply(lost.clone(), at(2));
    assert_eq!(delta.runtime_changes, [RuntimeChange::Reachable { server: remote_server.clone(), reachable: false }]);
    assert!(delta.targets_changed && delta.removed.is_empty());
    assert!(fleet.server(&server()).is_some_and(|server| server.outage.is_none()), "the local server is healthy");
    assert!(fleet.apply(lost, at(3)).is_empty(), "reported once");

    let delta = fleet.apply(remote, at(4));
    assert_eq!(delta.runtime_changes, [RuntimeChange::Reachable { server: remote_server.clone(), reachable: true }]);
    let delta = fleet.apply(TopologyUpdate::TargetRemoved { target: TargetName::new("vm1") }, at(5));
    assert_eq!(delta.removed.len(), 1);
    assert!(fleet.server(&remote_server).is_none() && fleet.target_outages().next().is_none());
    assert!(fleet.server(&server()).is_some());
}

#[test]
fn a_pane_id_without_a_host_means_this_machine() {
    use crate::refs::{PaneRef, RefError};
    let remote_server = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("default") };
    let mut fleet = Fleet::default();
    let rows = vec![row(0, 5, 10)];
    fleet.apply(TopologyUpdate::Listed { server: remote_server.clone(), generation: FIRST, rows: rows.clone() }, at(1));
    let bare = PaneRef::Pane(PaneId(5));
    let Err(RefError::OnOtherHost { candidates, .. }) = bare.locate(&fleet) else { panic!("expected OnOtherHost") };
    assert_eq!(candidates, ["pane:vm1@default/s0/@0/%5 (no agent)"]);
    assert!(matches!(bare.resolve(&fleet), Err(RefError::OnOtherHost { .. })));
    assert!(matches!(PaneRef::Pane(PaneId(6)).locate(&fleet), Err(RefError::NotFound(_))));
    let remote = PaneKey { server: remote_server, pane: PaneId(5) };
    let named = PaneRef::shortest(&fleet, &remote, fleet.pane(&remote).expect("the pane exists"));
    assert_eq!((named.to_string().as_str(), named.locate(&fleet)), ("s0:0.0", Ok(remote.clone())));
    fleet.apply(listed(FIRST, rows), at(2));
    assert_eq!(bare.locate(&fleet), Ok(key(5)), "the pane of the other host is not used");
    let shortest = |key: &PaneKey| PaneRef::shortest(&fleet, key, fleet.pane(key).expect("the pane exists"));
    assert_eq!(shortest(&key(5)), bare);
    // Now both hosts have a pane at `s0:0.0`, so this reference is ambiguous.
    assert_eq!(shortest(&remote).to_string(), "pane:vm1@default/s0/@0/%5");
}

#[test]
fn a_place_in_tmux_names_a_pane_or_the_agent_in_a_window() {
    use crate::refs::{PaneRef, RefError};
    let mut fleet = fleet_with_agent();
    let at_place = |pane: u32, pid: u32, window: u32, index: u32, name: &str| PaneRow {
        window: WindowId(window),
        window_index: window,
        window_name: name.into(),
        pane_index: index,
        ..row(0, pane, pid)
    };
    let rows =
        vec![row(0, 0, 10), at_place(1, 11, 0, 1, "w"), at_place(2, 12, 3, 0, "v1.2"), at_place(3, 13, 4, 0, "w")];
    fleet.apply(listed(FIRST, rows), at(3));
    let locate = |text: &str| text.parse::<PaneRef>().expect("a reference").locate(&fleet);
    for (text, pane) in [("s0:0.0", 0), ("s0:0.1", 1), ("s0:w.1", 1), ("s0:3.0", 2), ("s0:v1.2.0", 2)] {
        assert_eq!(locate(text), Ok(key(pane)), "{text}");
    }
    for window in ["s0:0", "s0:w", "@0"] {
        assert_eq!(locate(window), Ok(key(0)), "{window}: the only agent in the window");
    }
    for missing in ["s0:9.0", "s0:0.7", "s:0.0", "s0:3", "s0:v1.2", "@3", "@9"] {
        assert!(matches!(locate(missing), Err(RefError::NotFound(_))), "{missing}");
    }
    assert!(matches!(locate("s0:w.0"), Err(RefError::Ambiguous { .. })), "two windows have this name");
}
