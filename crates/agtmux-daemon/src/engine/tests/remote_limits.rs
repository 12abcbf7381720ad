//! A host that tells of more than anybody has.

use agtmux_api::collect::HostEvidence;
use jiff::SignedDuration;

use super::*;

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
        title: "x".repeat(2000),
    }
}

async fn tell(world: &TestEngine, full: bool, evidence: Vec<HostEvidence>) {
    let batch = EvidenceBatch { full, evidence };
    let received = RemoteBatch { target: TargetName::new("vm1"), batch, clock_offset: SignedDuration::ZERO };
    world.handle().receive_remote(received).await;
}

fn listed(server: String, panes: u32) -> HostEvidence {
    HostEvidence::Listed {
        server: ServerName::new(server),
        generation: GENERATION,
        rows: (1..=panes).map(row).collect(),
    }
}

fn panes_and_errors(world: &TestEngine) -> (u32, Vec<String>) {
    let shared = world.shared.read();
    (shared.view.count_panes("vm1").0, shared.view.errors().iter().map(|error| error.message.clone()).collect())
}

#[tokio::test]
async fn what_one_host_tells_is_bounded_and_that_is_told() {
    let world = TestEngine::new();
    tell(&world, true, vec![listed("one".into(), 3)]).await;
    assert_eq!(panes_and_errors(&world), (3, Vec::new()));
    let many = (0..100).map(|n| listed(format!("s{n}"), 1)).collect();
    tell(&world, false, many).await;
    let (panes, errors) = panes_and_errors(&world);
    assert_eq!(panes, 3 + 63);
    assert!(errors.iter().any(|error| error.contains("left out")), "{errors:?}");
    let codes: Vec<OutageCode> = world.shared.read().view.errors().iter().map(|error| error.code).collect();
    assert_eq!(codes, [OutageCode::ListingCut], "nothing has failed");
    tell(&world, true, vec![HostEvidence::TargetOutage { outage: None }, listed("one".into(), 2)]).await;
    assert_eq!(panes_and_errors(&world), (2, Vec::new()), "it is well again");
    tell(&world, false, vec![listed("one".into(), 5_100)]).await;
    let (panes, errors) = panes_and_errors(&world);
    assert_eq!((panes, errors.len()), (5_000, 1), "{errors:?}");
}
