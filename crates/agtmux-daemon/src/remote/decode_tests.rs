//! Evidence survives the way from one host to another, and hostile evidence is cut.

use agtmux_api::host_protocol::{EvidenceBatch, HostEvidence, HostOutage};
use agtmux_core::dialog::{Dialog, DialogOption};
use agtmux_core::evidence::{Assertion, DialogKind, Observation, RuleRef, Source};
use agtmux_core::fleet::{OutageCode, PaneExitStatus, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{
    AgentType, Generation, PaneId, ProcessRef, ServerKey, ServerName, SessionId, TargetName, WindowId,
};
use agtmux_core::ledger::Ledger;
use agtmux_core::ordering::OrderKey;
use agtmux_core::runtime::{Runtime, RuntimeId};
use jiff::{SignedDuration, Timestamp};

use super::decode::{EvidenceDecoder, RemoteUpdate};
use super::encode;

const GENERATION: Generation = Generation { pid: 7, start_time: 8 };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

/// Sends evidence as JSON to a hub whose clock is right.
fn receive(evidence: Vec<HostEvidence>) -> Vec<RemoteUpdate> {
    let sent = serde_json::to_string(&EvidenceBatch { full: false, evidence }).expect("writes");
    let received = serde_json::from_str(&sent).expect("reads");
    EvidenceDecoder::new(TargetName::new("vm1"), SignedDuration::ZERO, at(1000)).batch(received).updates
}

fn server() -> agtmux_api::host_protocol::HostServer {
    encode::server(&ServerName::new("default"), GENERATION)
}

fn observation(source: Source, assertion: Assertion, second: i64) -> Observation {
    Observation {
        source,
        assertion,
        conclusive: true,
        as_of: at(second),
        settled: true,
        ttl: Some(SignedDuration::from_secs(5)),
        order: OrderKey {
            source_seq: Some(1),
            event_time: at(second),
            ingested_at: at(second),
            event_id: format!("e{second}"),
        },
        rule: RuleRef { name: "stop".into(), version: 2 },
        excerpt: "a line".into(),
        tentative: false,
        inferred_from_absence: source == Source::Screen,
        no_turn_visible: false,
        dialog: None,
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
    };
    HostEvidence::Agent(Box::new(encode::agent(server(), PaneId(3), &runtime, Some("session"), ledger)))
}

fn received_ledger(evidence: HostEvidence) -> Ledger {
    match receive(vec![evidence]).pop() {
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
    let updates = receive(vec![HostEvidence::ServerOutage { server: server(), outage }]);
    let [RemoteUpdate::Topology(TopologyUpdate::ServerOutage { code, message, .. })] = &updates[..] else {
        panic!("{updates:?}")
    };
    assert_eq!((*code, message.len()), (OutageCode::ServerNotResponding, 4096));
}

#[test]
fn panes_and_processes_arrive_with_the_target_of_the_connection() {
    let row = PaneRow {
        session: SessionId(1),
        session_name: "s".into(),
        window: WindowId(2),
        window_index: 3,
        window_name: "w".into(),
        pane: PaneId(4),
        pane_index: 5,
        pid: 6,
        tty: "/dev/pts/1".into(),
        dead: Some(PaneExitStatus { status: Some(1), signal: None }),
        title: "t".into(),
    };
    let process = PaneProcess { pane: PaneId(4), pane_pid: 6, foreground: None, agent: None };
    let key = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("default") };
    let updates = receive(vec![
        HostEvidence::Panes { server: server(), rows: vec![encode::pane_row(row.clone())] },
        HostEvidence::Processes { server: server(), panes: vec![encode::pane_process(process.clone())] },
        HostEvidence::ServerGone { server: "x".repeat(2000) },
    ]);
    let [RemoteUpdate::Topology(listed), RemoteUpdate::Topology(processes)] = &updates[..] else {
        panic!("{updates:?}")
    };
    assert_eq!(*listed, TopologyUpdate::Listed { server: key.clone(), generation: GENERATION, rows: vec![row] });
    assert_eq!(*processes, TopologyUpdate::Processes { server: key, generation: GENERATION, panes: vec![process] });
}
