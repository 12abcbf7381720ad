//! Hosts behind a link of their own, which can be cut: a network namespace each.

use std::time::Instant;

use agtmux_testkit::{Host, HostOptions, Link};
use serde_json::json;

use crate::agtmux::configure;
use crate::hub::{Agent, HEALED_WITHIN, Hub, KNOWN_WITHIN, SETTINGS, skipped};

fn behind(hub: &Hub, link: &Link, alias: &str) -> Host {
    let agtmux = Some(env!("CARGO_BIN_EXE_agtmux").into());
    let host = hub.hosts.start(alias, link.lead_to(HostOptions { agtmux, ..HostOptions::default() }));
    configure(host.world(), SETTINGS);
    host
}

#[test]
fn a_link_that_is_cut_and_mended_is_noticed_and_healed() {
    if skipped() {
        return;
    }
    let link = match Link::new() {
        Ok(link) => link,
        Err(error) => return eprintln!("SKIPPED: no network namespaces here: {error}"),
    };
    let hub = Hub::new();
    let (far, near) = (behind(&hub, &link, "vm1"), hub.host("vm2"));
    hub.watch("vm1");
    let (lost, well) = (Agent::start(far.world(), "work"), Agent::start(near.world(), "work"));
    let before = hub.becomes("vm1", &lost, "idle");
    hub.becomes("vm2", &well, "idle");
    let silent = Instant::now();
    link.cut();
    // No word comes back, neither that it is gone nor anything else.
    let trouble = hub.degrades_in_time("vm1", silent);
    assert!(trouble["message"].is_string() && trouble["hint"].is_string(), "{trouble}");
    well.draws("running");
    hub.becomes("vm2", &well, "running");
    assert_eq!(hub.items("vm1").len(), 1);
    hub.wait_for_health("vm1", "down", KNOWN_WITHIN);
    let unknown = hub.becomes("vm1", &lost, "unknown");
    assert_eq!(unknown["reason_code"], json!("target_unreachable"));
    link.mend();
    let healed = hub.becomes_within("vm1", &lost, "idle", HEALED_WITHIN);
    assert_eq!(healed["runtime_id"], before["runtime_id"]);
    assert_eq!(hub.items("vm1").len(), 1);
}
