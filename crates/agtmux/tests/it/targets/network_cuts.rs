//! Hosts in their own network namespace, whose link can be cut.

use std::time::Instant;

use agtmux_testkit::action_fixture::SETTINGS;
use agtmux_testkit::agtmux::configure;
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, OUTAGE_TIMEOUT, RECOVERY_TIMEOUT};
use agtmux_testkit::{NetworkLink, TestHost, TestHostOptions, skip, skip_without_hosts};
use serde_json::json;

fn start_host_behind_link(hub: &HubFixture, link: &NetworkLink, alias: &str) -> TestHost {
    let agtmux = Some(env!("CARGO_BIN_EXE_agtmux").into());
    let host = hub.hosts.start(alias, link.place_behind(TestHostOptions { agtmux, ..TestHostOptions::default() }));
    configure(host.world(), SETTINGS);
    host
}

#[test]
fn a_cut_network_link_is_detected_and_recovers() {
    if skip_without_hosts() {
        return;
    }
    let link = match NetworkLink::new() {
        Ok(link) => link,
        Err(error) => return skip(&format!("no network namespaces here: {error}")),
    };
    let hub = HubFixture::new();
    let (cut_host, other_host) = (start_host_behind_link(&hub, &link, "vm1"), hub.host("vm2"));
    hub.add_target("vm1");
    let (affected, healthy) =
        (FakeAgent::start(cut_host.world(), "work"), FakeAgent::start(other_host.world(), "work"));
    let before = hub.wait_for_state("vm1", &affected, "idle");
    hub.wait_for_state("vm2", &healthy, "idle");
    let cut_at = Instant::now();
    link.cut();
    // Packets are dropped without an error.
    let target = hub.assert_degrades_in_time("vm1", cut_at);
    assert!(target["message"].is_string() && target["hint"].is_string(), "{target}");
    healthy.draw_scene("running");
    hub.wait_for_state("vm2", &healthy, "running");
    assert_eq!(hub.items("vm1").len(), 1);
    hub.wait_for_health("vm1", "down", OUTAGE_TIMEOUT);
    let unknown = hub.wait_for_state("vm1", &affected, "unknown");
    assert_eq!(unknown["reason_code"], json!("target_unreachable"));
    link.restore();
    let recovered = hub.wait_for_state_within("vm1", &affected, "idle", RECOVERY_TIMEOUT);
    assert_eq!(recovered["runtime_id"], before["runtime_id"]);
    assert_eq!(hub.items("vm1").len(), 1);
}
