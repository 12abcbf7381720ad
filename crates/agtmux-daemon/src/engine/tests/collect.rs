//! Tests of the batches that hubs get.

use agtmux_api::host_protocol::HostEvidence;
use tokio::time::timeout;

use super::*;

const MOMENT: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_secs(20);

async fn next(subscription: &mut EvidenceSubscription) -> EvidenceBatch {
    timeout(SOON, subscription.next()).await.expect("in time").expect("a batch")
}

fn is_listed(batch: &EvidenceBatch) -> bool {
    batch.evidence.iter().any(|evidence| matches!(evidence, HostEvidence::Panes { complete: true, .. }))
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_batch() {
    let engine = TestEngine::new();
    let mut subscription = engine.handle().subscribe_evidence().await.expect("an engine");
    assert!(next(&mut subscription).await.full);
    for pane_pid in 10..20 {
        // Cancel the wait, like a caller that has to send a heartbeat.
        assert!(timeout(MOMENT, subscription.next()).await.is_err());
        engine.set_pane("default", pane_pid, None).await;
        assert!(!next(&mut subscription).await.evidence.is_empty());
        while timeout(MOMENT, subscription.next()).await.is_ok() {}
    }
    drop(subscription);
    engine.stop().await;
}

#[tokio::test]
async fn a_server_that_responds_again_is_listed_again() {
    let engine = TestEngine::new();
    engine.set_pane("default", 10, None).await;
    let mut subscription = engine.handle().subscribe_evidence().await.expect("an engine");
    assert!(is_listed(&next(&mut subscription).await));
    let outage = TopologyUpdate::ServerOutage {
        server: server("default"),
        generation: GENERATION,
        code: OutageCode::ServerNotResponding,
        message: "not responding".into(),
    };
    engine.handle().apply_topology(outage).await;
    let evidence = next(&mut subscription).await.evidence;
    assert!(evidence.iter().any(|evidence| matches!(evidence, HostEvidence::ServerOutage { .. })), "{evidence:?}");
    engine.set_pane("default", 10, None).await;
    assert!(is_listed(&next(&mut subscription).await));
}
