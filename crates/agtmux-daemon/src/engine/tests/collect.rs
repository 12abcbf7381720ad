//! What hubs elsewhere are told.

use agtmux_api::collect::HostEvidence;
use tokio::time::timeout;

use super::*;

const MOMENT: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(20);

async fn next(collecting: &mut EvidenceSubscription) -> EvidenceBatch {
    timeout(SOON, collecting.next()).await.expect("in time").expect("a batch")
}

fn listed(batch: &EvidenceBatch) -> bool {
    batch.evidence.iter().any(|evidence| matches!(evidence, HostEvidence::Listed { .. }))
}

#[tokio::test]
async fn whoever_looks_away_while_waiting_misses_nothing() {
    let world = TestEngine::new();
    let mut collecting = world.handle().subscribe_evidence().await.expect("an engine");
    assert!(next(&mut collecting).await.full);
    for pane_pid in 10..20 {
        // A beat is due, and nothing is new yet.
        assert!(timeout(MOMENT, collecting.next()).await.is_err());
        world.pane("default", pane_pid, None).await;
        assert!(!next(&mut collecting).await.evidence.is_empty());
        while timeout(MOMENT, collecting.next()).await.is_ok() {}
    }
    drop(collecting);
    world.stop().await;
}

#[tokio::test]
async fn a_server_that_answers_again_is_listed_again() {
    let world = TestEngine::new();
    world.pane("default", 10, None).await;
    let mut collecting = world.handle().subscribe_evidence().await.expect("an engine");
    assert!(listed(&next(&mut collecting).await));
    let outage = TopologyUpdate::ServerOutage {
        server: server("default"),
        generation: GENERATION,
        code: OutageCode::ServerNotResponding,
        message: "it hangs".into(),
    };
    world.handle().apply_topology(outage).await;
    let told = next(&mut collecting).await.evidence;
    assert!(told.iter().any(|evidence| matches!(evidence, HostEvidence::ServerOutage { .. })), "{told:?}");
    world.pane("default", 10, None).await;
    assert!(listed(&next(&mut collecting).await));
}
