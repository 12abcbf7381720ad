//! Tests of the limits on the evidence of one remote host.

use super::*;
use crate::remote::RemoteUpdate;

fn row(pane: u32) -> PaneRow {
    PaneRow {
        session: SessionId(0),
        session_name: "s".into(),
        window: WindowId(0),
        window_index: 0,
        window_name: "w".into(),
        pane: PaneId(pane),
        pane_index: 0,
        pid: pane,
        tty: String::new(),
        dead: None,
        title: String::new(),
    }
}

async fn send_updates(engine: &TestEngine, full: bool, updates: Vec<TopologyUpdate>) {
    send_at_rate(engine, full, false, updates).await;
}

async fn send_at_rate(engine: &TestEngine, full: bool, rate_limited: bool, updates: Vec<TopologyUpdate>) {
    let (target, updates) = (TargetName::new("vm1"), updates.into_iter().map(RemoteUpdate::Topology).collect());
    engine.handle().receive_remote(RemoteBatch { target, full, truncated: false, rate_limited, updates }).await;
}

fn listed(server: String, panes: u32) -> TopologyUpdate {
    let server = ServerKey { target: TargetName::new("vm1"), server: ServerName::new(server) };
    TopologyUpdate::Listed { server, generation: GENERATION, rows: (1..=panes).map(row).collect() }
}

fn panes_and_errors(engine: &TestEngine) -> (u32, Vec<String>) {
    let event_log = engine.event_log.read();
    (
        event_log.view.fleet.count_panes()["vm1"].0,
        event_log.view.errors().iter().map(|error| error.message.clone()).collect(),
    )
}

#[tokio::test]
async fn evidence_of_one_host_is_limited_and_the_truncation_is_reported() {
    let engine = TestEngine::new();
    send_updates(&engine, true, vec![listed("one".into(), 3)]).await;
    assert_eq!(panes_and_errors(&engine), (3, Vec::new()));
    let many = (0..100).map(|n| listed(format!("s{n}"), 1)).collect();
    send_updates(&engine, false, many).await;
    let (panes, errors) = panes_and_errors(&engine);
    assert_eq!(panes, 3 + 63);
    assert!(errors.iter().any(|error| error.contains("left out")), "{errors:?}");
    let codes: Vec<OutageCode> = engine.event_log.read().view.errors().iter().map(|error| error.code).collect();
    assert_eq!(codes, [OutageCode::ListingCut], "a truncated listing is not a failure");
    let no_outage = TopologyUpdate::TargetOutage { target: TargetName::new("vm1"), outage: None };
    send_updates(&engine, true, vec![no_outage, listed("one".into(), 2)]).await;
    assert_eq!(panes_and_errors(&engine), (2, Vec::new()), "the outage is over");
    send_updates(&engine, false, vec![listed("one".into(), 5_100)]).await;
    let (panes, errors) = panes_and_errors(&engine);
    assert_eq!((panes, errors.len()), (5_000, 1), "{errors:?}");
}

fn process(pane: u32) -> PaneProcess {
    let process = ProcessRef { pid: pane, start: 1 };
    let agent = DetectedAgent::new(AgentType::new("claude"), process);
    PaneProcess { pane: PaneId(pane), pane_pid: pane, foreground: None, agent: Some(agent) }
}

fn processes(panes: impl IntoIterator<Item = PaneProcess>) -> TopologyUpdate {
    let server = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("one") };
    TopologyUpdate::Processes { server, generation: GENERATION, panes: panes.into_iter().collect() }
}

#[tokio::test]
async fn the_agents_of_one_host_are_limited() {
    let engine = TestEngine::new();
    send_updates(&engine, true, vec![listed("one".into(), 600), processes((1..=500).map(process))]).await;
    assert_eq!(panes_and_errors(&engine).1, Vec::<String>::new());
    // The 500 known agents are not counted twice.
    send_updates(&engine, false, vec![processes((1..=600).map(process))]).await;
    assert_eq!(engine.event_log.read().view.fleet.count_panes()["vm1"], (600, 512));
    assert_eq!(panes_and_errors(&engine).1.len(), 1);
}

/// Each pair of updates ends one agent and starts another. The count of agents must stay right, although the engine
/// does not count all agents again after each update.
#[tokio::test]
async fn swapped_agents_count_once_within_a_batch() {
    let engine = TestEngine::new();
    // A local agent does not count towards the limit of a host.
    engine.set_pane("local", 1, Some(9)).await;
    send_updates(&engine, true, vec![listed("one".into(), 1_100), processes((1..=512).map(process))]).await;
    let no_agent = |pane| PaneProcess { agent: None, ..process(pane) };
    let swap = |pane| [processes([no_agent(pane)]), processes([process(pane + 512)])];
    send_updates(&engine, false, (1..=512).flat_map(swap).collect()).await;
    assert_eq!(engine.event_log.read().view.fleet.count_panes()["vm1"], (1_100, 512));
    assert_eq!(panes_and_errors(&engine).1, Vec::<String>::new(), "no agent is left out");
    send_updates(&engine, false, vec![processes([no_agent(1_024)]), processes([process(1), process(2)])]).await;
    assert_eq!(engine.event_log.read().view.fleet.count_panes()["vm1"], (1_100, 512));
    assert_eq!(panes_and_errors(&engine).1.len(), 1, "one agent is left out");
}

fn codes(engine: &TestEngine) -> Vec<OutageCode> {
    engine.event_log.read().view.errors().iter().map(|error| error.code).collect()
}

#[tokio::test]
async fn a_host_that_is_read_more_slowly_is_reported_until_it_is_calm() {
    let engine = TestEngine::new();
    send_updates(&engine, true, vec![listed("one".into(), 3)]).await;
    assert_eq!(codes(&engine), []);
    send_at_rate(&engine, false, true, vec![listed("one".into(), 4)]).await;
    assert_eq!(codes(&engine), [OutageCode::RateLimited]);
    assert_eq!(panes_and_errors(&engine).0, 4, "its panes are listed");
    send_at_rate(&engine, false, true, vec![listed("one".into(), 5_100)]).await;
    assert_eq!(codes(&engine), [OutageCode::ListingCut], "what is left out is worse than what is late");
    let no_outage = TopologyUpdate::TargetOutage { target: TargetName::new("vm1"), outage: None };
    send_at_rate(&engine, true, true, vec![no_outage, listed("one".into(), 3)]).await;
    assert_eq!(codes(&engine), [OutageCode::RateLimited]);
    let own = Some((OutageCode::ListingFailed, "broken".into()));
    let own = TopologyUpdate::TargetOutage { target: TargetName::new("vm1"), outage: own };
    send_at_rate(&engine, false, true, vec![own.clone()]).await;
    assert_eq!(codes(&engine), [OutageCode::ListingFailed], "an outage of the host takes precedence");
    send_at_rate(&engine, false, false, Vec::new()).await;
    assert_eq!(codes(&engine), [OutageCode::ListingFailed], "and stays");
    let over = TopologyUpdate::TargetOutage { target: TargetName::new("vm1"), outage: None };
    send_at_rate(&engine, false, true, vec![over]).await;
    assert_eq!(codes(&engine), [OutageCode::RateLimited]);
    send_at_rate(&engine, false, false, Vec::new()).await;
    assert_eq!(codes(&engine), []);
}

#[tokio::test]
async fn a_large_batch_is_divided_without_losing_a_pane() {
    let engine = TestEngine::new();
    send_updates(&engine, true, vec![listed("one".into(), 1_000)]).await;
    let server = ServerKey { target: TargetName::new("vm1"), server: ServerName::new("one") };
    let titled = |pane| PaneRow { title: "new".into(), ..row(pane) };
    let rows = (1..=1_000).map(titled).collect();
    let updates =
        vec![TopologyUpdate::Reread { server, generation: GENERATION, rows }, processes((1..=300).map(process))];
    let updates = updates.into_iter().map(RemoteUpdate::Topology).collect();
    let (target, full) = (TargetName::new("vm1"), false);
    let batches = RemoteBatch { target, full, truncated: false, rate_limited: false, updates }.split();
    assert_eq!(batches.len(), 5);
    for batch in batches {
        engine.handle().receive_remote(batch).await;
    }
    let log = engine.event_log.read();
    assert_eq!(log.view.fleet.count_panes()["vm1"], (1_000, 300));
    assert!(log.view.fleet.panes.values().all(|pane| pane.title.as_deref() == Some("new")));
}
