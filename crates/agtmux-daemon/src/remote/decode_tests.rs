//! Evidence survives the transfer from one host to another, and hostile evidence is truncated.

use agtmux_api::host_protocol::{EvidenceBatch, HostEvidence, HostOutage, HostPane, HostPlacement};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{
    DetectedAgent, Fleet, ForegroundProcess, OutageCode, PaneKey, PaneProcess, PaneRow, TopologyUpdate,
};
use agtmux_core::ids::{
    AgentType, Generation, PaneId, ProcessRef, ServerKey, ServerName, SessionId, TargetName, WindowId,
};
use agtmux_core::ledger::Ledger;
use agtmux_core::ordering::OrderKey;
use agtmux_core::runtime::{Runtime, RuntimeId};
use jiff::{SignedDuration, Timestamp};

use super::decode::{EvidenceDecoder, RemoteBatch, RemoteUpdate};
use super::encode;

const GENERATION: Generation = Generation { pid: 7, start_time: 8 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

/// Sends evidence as JSON to a hub whose clock agrees with the clock of the host.
fn receive(evidence: Vec<HostEvidence>) -> RemoteBatch {
    let sent = serde_json::to_string(&EvidenceBatch { full: false, evidence }).expect("writes");
    let received = serde_json::from_str(&sent).expect("reads");
    EvidenceDecoder::new(TargetName::new("vm1"), SignedDuration::ZERO, at(1000)).batch(received)
}

fn server() -> agtmux_api::host_protocol::HostServer {
    encode::server(&ServerName::new("default"), GENERATION)
}

fn observation(source: Source, assertion: Assertion, second: i64) -> Observation {
    let order = OrderKey {
        source_seq: Some(1),
        event_time: at(second),
        ingested_at: at(second),
        event_id: format!("e{second}"),
    };
    Observation {
        ttl: Some(SignedDuration::from_secs(5)),
        order,
        excerpt: "a line".into(),
        inferred_from_absence: source == Source::Screen,
        ..Observation::new(source, assertion, at(second), RuleRef::new("stop", 2))
    }
}

fn agent(ledger: &Ledger) -> HostEvidence {
    let runtime = Runtime {
        id: RuntimeId::from_stored("0000".into()),
        agent_type: AgentType::new("claude"),
        name: Some("worker".into()),
        process: ProcessRef { pid: 9, start: 10 },
        suspended: false,
        started_at: at(1),
        launch: Default::default(),
    };
    HostEvidence::Agent(Box::new(encode::agent(server(), PaneId(3), &runtime, Some("session"), ledger, false)))
}

fn received_ledger(evidence: HostEvidence) -> Ledger {
    match receive(vec![evidence]).updates.pop() {
        Some(RemoteUpdate::Agent(agent)) => agent.ledger,
        other => panic!("not an agent: {other:?}"),
    }
}

#[test]
fn a_ledger_arrives_unchanged() {
    let mut ledger = Ledger::default();
    ledger.record(observation(Source::Hook, Assertion::Running, 10), at(10));
    ledger.record(observation(Source::Hook, Assertion::Completed, 20), at(20));
    ledger.record(Observation { conclusive: false, ..observation(Source::Screen, Assertion::Idle, 30) }, at(30));
    ledger.record(observation(Source::Title, Assertion::DialogOpen(DialogKind::Approval), 40), at(41));
    ledger.mark_unrecognized(Source::Bell, at(50));
    ledger.demote_completed();
    assert_eq!(received_ledger(agent(&ledger)), ledger);
}

#[test]
fn texts_are_cut_and_redacted() {
    let options = (1..100).map(|n| DialogOption { n, label: "x".repeat(9000) }).collect();
    let dialog = Dialog::new(DialogKind::Input, "q".repeat(9000), None, options);
    let mut ledger = Ledger::default();
    let secret = "token ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let asks = observation(Source::Screen, Assertion::DialogOpen(DialogKind::Input), 10);
    let asks = Observation { excerpt: secret.into(), dialog: Some(Box::new(dialog)), ..asks };
    ledger.record(asks, at(10));
    let received = received_ledger(agent(&ledger));
    let observation = &received.records().next().expect("a record").observation;
    assert!(!observation.excerpt.contains("ghp_"), "{}", observation.excerpt);
    let dialog = observation.dialog.as_ref().expect("a dialog");
    assert_eq!((dialog.question.len(), dialog.options.len(), dialog.options[0].label.len()), (4096, 32, 256));
}

#[test]
fn unknown_sources_and_kinds_are_skipped() {
    let mut ledger = Ledger::default();
    ledger.record(observation(Source::Hook, Assertion::Running, 10), at(10));
    let HostEvidence::Agent(mut newer) = agent(&ledger) else { panic!("an agent") };
    let mut unknown = newer.observations[0].clone();
    unknown.source = "telepathy".into();
    newer.observations.push(unknown);
    newer.last_running.insert("telepathy".into(), at(1));
    assert_eq!(received_ledger(HostEvidence::Agent(newer)), ledger);
    let outage = HostOutage { code: "meteor".into(), message: "x".repeat(9000) };
    let updates = receive(vec![HostEvidence::ServerOutage { server: server(), outage }]).updates;
    let [RemoteUpdate::Topology(TopologyUpdate::ServerOutage { code, message, .. })] = &updates[..] else {
        panic!("{updates:?}")
    };
    assert_eq!((*code, message.len()), (OutageCode::ServerNotResponding, 4096));
}

#[test]
fn a_pane_arrives_unchanged_with_the_target_of_the_connection() {
    let key = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("default") };
    let row = |session: u32| PaneRow {
        session: SessionId(session),
        session_name: format!("s{session}"),
        window: WindowId(2),
        window_index: 3,
        window_name: "w".into(),
        pane: PaneId(4),
        pane_index: 5,
        pid: 6,
        tty: "/dev/pts/1".into(),
        dead: None,
        title: "t".into(),
    };
    let agent = DetectedAgent {
        agent_type: AgentType::new("claude"),
        process: ProcessRef { pid: 9, start: 10 },
        suspended: true,
        launch: Default::default(),
    };
    let foreground = Some(ForegroundProcess { command: "claude".into(), cwd: Some("/".into()) });
    let process = PaneProcess { pane: PaneId(4), pane_pid: 6, foreground, agent: Some(agent) };
    let (generation, server_key) = (GENERATION, key.clone());
    let listed = TopologyUpdate::Listed { server: key.clone(), generation, rows: vec![row(0), row(1)] };
    let processes = TopologyUpdate::Processes { server: key, generation, panes: vec![process] };
    let mut fleet = Fleet::default();
    for update in [listed, processes] {
        fleet.apply(update, at(1));
    }
    let pane = fleet.pane(&PaneKey { server: server_key, pane: PaneId(4) }).expect("the pane exists");
    let panes = vec![encode::pane(PaneId(4), pane)];
    let mut received = Fleet::default();
    for update in receive(vec![HostEvidence::Panes { server: server(), complete: true, panes }]).updates {
        let RemoteUpdate::Topology(update) = update else { panic!("{update:?}") };
        received.apply(update, at(1));
    }
    assert_eq!(received, fleet);
    let too_long = HostEvidence::ServerGone { server: "x".repeat(2000) };
    assert!(receive(vec![too_long]).updates.is_empty());
}

#[test]
fn a_pane_with_many_placements_becomes_a_limited_number_of_rows() {
    let pane = |id: u32, placements: u32| pane_with_placements(PaneId(id), placements);
    let panes = HostEvidence::Panes { server: server(), complete: true, panes: vec![pane(0, 100_000), pane(1, 2)] };
    let batch = receive(vec![panes.clone(), panes]);
    let [RemoteUpdate::Topology(TopologyUpdate::Listed { rows, .. }), ..] = &batch.updates[..] else {
        panic!("a listing")
    };
    assert_eq!((rows.len(), rows[0].title.len(), batch.truncated), (1 + 10_000 + 1, 1024, true));
    assert_eq!(rows.last().map(|row| row.pane), Some(PaneId(1)), "each pane keeps a row");
}

#[test]
fn all_panes_of_several_servers_with_grouped_sessions_arrive() {
    let panes: Vec<HostPane> = (0..1500).map(|id| pane_with_placements(PaneId(id), 3)).collect();
    let listing = HostEvidence::Panes { server: server(), complete: true, panes };
    let batch = receive(vec![listing; 3]);
    let rows = batch.updates.iter().map(|update| match update {
        RemoteUpdate::Topology(TopologyUpdate::Listed { rows, .. }) => rows.len(),
        _ => 0,
    });
    assert_eq!((rows.sum::<usize>(), batch.truncated), (3 * 1500 * 3, false));
}

#[test]
fn an_update_without_panes_is_left_out() {
    let empty = |complete| HostEvidence::Panes { server: server(), complete, panes: Vec::new() };
    assert_eq!(receive(vec![empty(false)]).updates.len(), 0);
    assert_eq!(receive(vec![empty(true)]).updates.len(), 2);
}

fn pane_with_placements(pane: PaneId, placements: u32) -> HostPane {
    let placements =
        (0..placements).map(|n| HostPlacement { session: SessionId(n), session_name: "s".into(), window_index: 0 });
    HostPane {
        pane,
        pane_index: 0,
        window: WindowId(0),
        window_name: "w".into(),
        placements: placements.collect(),
        pid: 1,
        tty: String::new(),
        title: "x".repeat(9000),
        dead: false,
        exit_status: None,
        exit_signal: None,
        command: None,
        cwd: None,
        agent: None,
    }
}
