//! Hosts behind a link of their own, which can be cut: a network namespace each.

use std::time::Instant;

use agtmux_testkit::{NetworkLink, TestHost, TestHostOptions};
use serde_json::json;

use crate::agtmux::configure;
use crate::hub::{HubAgent, HubFixture, OUTAGE_TIMEOUT, RECOVERY_TIMEOUT, SETTINGS, skip_without_hosts};

fn start_host_behind_link(hub: &HubFixture, link: &NetworkLink, alias: &str) -> TestHost {
    let agtmux = Some(env!("CARGO_BIN_EXE_agtmux").into());
    let host = hub.hosts.start(alias, link.place_behind(TestHostOptions { agtmux, ..TestHostOptions::default() }));
    configure(host.world(), SETTINGS);
    host
}

#[test]
fn a_link_that_is_cut_and_mended_is_noticed_and_healed() {
    if skip_without_hosts() {
        return;
    }
    let link = match NetworkLink::new() {
        Ok(link) => link,
        Err(error) => return eprintln!("SKIPPED: no network namespaces here: {error}"),
    };
    let hub = HubFixture::new();
    let (far, near) = (start_host_behind_link(&hub, &link, "vm1"), hub.host("vm2"));
    hub.add_target("vm1");
    let (lost, well) = (HubAgent::start(far.world(), "work"), HubAgent::start(near.world(), "work"));
    let before = hub.wait_for_state("vm1", &lost, "idle");
    hub.wait_for_state("vm2", &well, "idle");
    let silent = Instant::now();
    link.cut();
    // No word comes back, neither that it is gone nor anything else.
    let trouble = hub.assert_degrades_in_time("vm1", silent);
    assert!(trouble["message"].is_string() && trouble["hint"].is_string(), "{trouble}");
    well.draw_scene("running");
    hub.wait_for_state("vm2", &well, "running");
    assert_eq!(hub.items("vm1").len(), 1);
    hub.wait_for_health("vm1", "down", OUTAGE_TIMEOUT);
    let unknown = hub.wait_for_state("vm1", &lost, "unknown");
    assert_eq!(unknown["reason_code"], json!("target_unreachable"));
    link.restore();
    let healed = hub.wait_for_state_within("vm1", &lost, "idle", RECOVERY_TIMEOUT);
    assert_eq!(healed["runtime_id"], before["runtime_id"]);
    assert_eq!(hub.items("vm1").len(), 1);
}
