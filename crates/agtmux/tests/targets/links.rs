//! Hosts behind a link of their own, which can be cut: a network namespace each.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use agtmux_testkit::{Host, HostOptions};
use serde_json::json;

use crate::agtmux::configure;
use crate::hub::{Agent, HEALED_WITHIN, Hub, KNOWN_WITHIN, SETTINGS, skipped};

/// A link to a namespace. Both go when it is dropped.
struct Link {
    name: String,
    address: String,
}

fn ip(args: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(args).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

impl Link {
    /// Fails where one may not make any.
    fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = (std::process::id() * 4 + COUNT.fetch_add(1, Ordering::SeqCst)) % 16_000;
        let (name, outer, inner) = (format!("agt{n}"), format!("agto{n}"), format!("agti{n}"));
        // From the block that is for such trials.
        let net = format!("198.18.{}", n / 64);
        let (ours, theirs) = (n % 64 * 4 + 1, n % 64 * 4 + 2);
        ip(&["netns", "add", &name])?;
        let link = Self { name: name.clone(), address: format!("{net}.{theirs}") };
        ip(&["link", "add", &outer, "type", "veth", "peer", "name", &inner, "netns", &name])?;
        ip(&["addr", "add", &format!("{net}.{ours}/30"), "dev", &outer])?;
        ip(&["link", "set", &outer, "up"])?;
        ip(&["-n", &name, "addr", "add", &format!("{}/30", link.address), "dev", &inner])?;
        ip(&["-n", &name, "link", "set", &inner, "up"])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(link)
    }

    fn outer(&self) -> String {
        self.name.replacen("agt", "agto", 1)
    }

    #[track_caller]
    fn cut(&self) {
        ip(&["link", "set", &self.outer(), "down"]).expect("it is ours");
    }

    #[track_caller]
    fn mend(&self) {
        ip(&["link", "set", &self.outer(), "up"]).expect("it is ours");
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = ip(&["link", "del", &self.outer()]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn behind(hub: &Hub, link: &Link, alias: &str) -> Host {
    let within = ["ip", "netns", "exec", &link.name].map(str::to_owned).to_vec();
    let agtmux = Some(env!("CARGO_BIN_EXE_agtmux").into());
    let host = hub
        .hosts
        .start(alias, HostOptions { agtmux, address: Some(link.address.clone()), within, ..HostOptions::default() });
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
        Err(error) => return eprintln!("SKIPPED: no network namespaces here: {}", error.trim()),
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
