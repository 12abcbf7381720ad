//! Fixture for target tests: a hub, hosts with a real sshd, and fake agents on them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::action_fixture::SETTINGS;
use crate::agtmux::{CommandResult, SOON, agtmux, agtmux_program, configure, items, run, start, world};
use crate::fake_agent::FakeAgent;
use crate::http::{self, HttpResponse};
use crate::{TestHost, TestHosts, TestWorld, wait_for};

/// How long a test waits until the hub notices an outage. The hub should need at most ten seconds, but the test machine
/// may be busy.
pub const OUTAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// The health of a target must leave `ok` within this time after its host stops answering.
const MAX_OUTAGE_DELAY: Duration = Duration::from_secs(10);
/// How long a test waits until the hub has reconnected. After a long outage, the hub waits up to 30 s before
/// it tries again.
pub const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// A hub with a daemon, and its hosts. Rust drops the fields in this order: first the hosts, then the world.
pub struct HubFixture {
    pub hosts: TestHosts,
    pub world: TestWorld,
}

impl HubFixture {
    pub fn new() -> Self {
        let world = world();
        configure(&world, SETTINGS);
        let hosts = TestHosts::for_hub(&world);
        start(&world);
        Self { hosts, world }
    }

    /// Starts a host with agtmux and adds it as a target.
    #[track_caller]
    pub fn host(&self, alias: &str) -> TestHost {
        let host = self.unwatched_host(alias);
        self.add_target(alias);
        host
    }

    #[track_caller]
    pub fn unwatched_host(&self, alias: &str) -> TestHost {
        let host = self.hosts.with_agtmux(alias, agtmux_program());
        configure(host.world(), SETTINGS);
        host
    }

    #[track_caller]
    pub fn add_target(&self, alias: &str) {
        let added = agtmux(&self.world, &["target", "add", alias, "--json"]);
        assert_eq!(added.json()["health"], "ok", "{}", added.text());
    }

    #[track_caller]
    pub fn agtmux(&self, args: &[&str]) -> CommandResult {
        agtmux(&self.world, args)
    }

    #[track_caller]
    pub fn list(&self) -> Value {
        crate::agtmux::list(&self.world)
    }

    #[track_caller]
    pub fn target(&self, name: &str) -> Value {
        let targets = self.agtmux(&["target", "list", "--json"]).json();
        items(&targets).iter().find(|item| item["name"] == name).cloned().unwrap_or_default()
    }

    #[track_caller]
    pub fn wait_for_health(&self, name: &str, health: &str, within: Duration) -> Value {
        wait_for(&format!("{name} to be {health}"), within, || {
            let target = self.target(name);
            if target["health"] == health { Ok(target) } else { Err(target.to_string()) }
        })
    }

    /// Checks that the health of the target leaves `ok` within `MAX_OUTAGE_DELAY` after `since`.
    #[track_caller]
    pub fn assert_degrades_in_time(&self, name: &str, since: Instant) -> Value {
        let target = wait_for(&format!("{name} to leave ok"), OUTAGE_TIMEOUT, || {
            let target = self.target(name);
            if target["health"] == "ok" { Err(target.to_string()) } else { Ok(target) }
        });
        let after = since.elapsed();
        assert!(after < MAX_OUTAGE_DELAY, "detected after {after:?}: {target}");
        target
    }

    /// The items of one target.
    pub fn items(&self, target: &str) -> Vec<Value> {
        let listing = self.list();
        items(&listing).iter().filter(|item| item["identity"]["target"] == target).cloned().collect()
    }

    pub fn item(&self, target: &str, agent: &FakeAgent) -> Option<Value> {
        let here = |item: &Value| {
            let identity = &item["identity"];
            identity["pane_id"] == agent.pane.as_str() && identity["server"] == agent.server.name()
        };
        self.items(target).into_iter().find(here)
    }

    #[track_caller]
    pub fn wait_for_state(&self, target: &str, agent: &FakeAgent, state: &str) -> Value {
        self.wait_for_state_within(target, agent, state, SOON)
    }

    #[track_caller]
    pub fn wait_for_state_within(&self, target: &str, agent: &FakeAgent, state: &str, within: Duration) -> Value {
        wait_for(&format!("{} on {target} to be {state}", agent.pane), within, || {
            let item = self.item(target, agent).unwrap_or_default();
            if item["agent_type"] == "claude" && item["state"] == state { Ok(item) } else { Err(item.to_string()) }
        })
    }

    #[track_caller]
    pub fn post(&self, action: &str, body: &Value) -> HttpResponse {
        http::post(&self.world.socket(), &format!("/v1/actions/{action}"), &body.to_string())
    }

    #[track_caller]
    pub fn send(&self, reference: &str, text: &str) -> HttpResponse {
        self.post("send", &json!({"ref": reference, "text": text}))
    }

    #[track_caller]
    pub fn audit(&self) -> Vec<Value> {
        items(&http::get(&self.world.socket(), "/v1/audit").json()).clone()
    }
}

/// The runtime reference of an item, for actions.
pub fn runtime_ref(item: &Value) -> String {
    format!("runtime:{}", item["runtime_id"].as_str().unwrap_or_else(|| panic!("no agent in {item}")))
}

/// Runs agtmux on the host itself.
#[track_caller]
pub fn run_on_host(host: &TestHost, args: &[&str]) -> CommandResult {
    run(host.world().agtmux().args(args))
}
