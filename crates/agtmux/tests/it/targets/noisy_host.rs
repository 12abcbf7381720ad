//! A host that sends changes as fast as it can.

use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, errors, health, soak};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hook_load::HookConnection;
use agtmux_testkit::hub_fixture::HubFixture;
use agtmux_testkit::{TestWorld, skip_without_hosts, wait_for, wait_until};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// The changes that the hub reads from a host at once, and per second. A pane counts 1, an agent 10.
const BURST: f64 = 20_000.0;
const PER_SECOND: f64 = 1_000.0;

/// Sends everything once, then two batches in turn until the file `stop` exists, then only heartbeats.
const NOISY_AGTMUX: &str = r##"#!/bin/sh
cd "DIR" || exit
cat >/dev/null &
printf '{"type":"hello","collect":2,"version":"9","now":"%s","tmux_versions":[]}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
cat full
while [ ! -e stop ]; do cat one && cat two || exit; done
while printf '{"type":"heartbeat","now":"2026-01-01T00:00:00Z"}\n'; do sleep 1; done
"##;

struct Noise {
    panes: u32,
    agents: u32,
}

impl Noise {
    /// The units that one batch counts.
    fn units(&self) -> f64 {
        f64::from(self.panes + 2 * 10 * self.agents)
    }

    /// A batch in which every pane has another title, and every agent another state.
    fn batch(&self, full: bool, title: &str, assertion: &str, second: i64) -> String {
        let server = json!({"name": "default", "pid": 7, "start_time": 7});
        let process = |pane: u32| json!({"pid": 1_000 + pane, "start": 1});
        let panes = (0..self.panes).map(|pane| {
            let agent = json!({"agent_type": "claude", "process": process(pane), "suspended": false});
            json!({
                "placements": [{"session": "$0", "session_name": "s", "window_index": 0}], "window": "@0",
                "window_name": "w", "pane": format!("%{pane}"), "pane_index": pane, "pid": 1_000 + pane, "tty": "",
                "title": title, "agent": (pane < self.agents).then_some(agent),
            })
        });
        let panes: Vec<Value> = panes.collect();
        let time = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second() - 60 + second).expect("in range");
        let agents = (0..self.agents).map(|pane| {
            let observation = json!({
                "source": "hook", "assertion": assertion, "conclusive": true, "as_of": time, "settled": true,
                "valid_for_ms": null, "source_seq": null, "event_time": time, "received_at": time,
                "event_id": format!("{assertion}{pane}"), "rule": "noise", "rule_version": 1, "excerpt": "noise",
                "recorded_at": time,
            });
            json!({
                "kind": "agent", "server": server, "pane": format!("%{pane}"), "process": process(pane),
                "runtime_id": format!("noisy-{pane}"), "name": null, "agent_id": null, "observations": [observation],
            })
        });
        let mut evidence = vec![json!({"kind": "panes", "server": server, "complete": full, "panes": panes})];
        evidence.extend(agents);
        json!({"type": "batch", "full": full, "evidence": evidence}).to_string() + "\n"
    }
}

/// How long the hub takes to store and publish each of these events of a local agent.
fn local_latencies(hub: &TestWorld, runtime: &str, from: usize, count: usize) -> Vec<Duration> {
    let mut connection = HookConnection::open(&hub.socket()).expect("the daemon accepts connections");
    let mut latencies = Vec::new();
    for n in from..from + count {
        let event_type = ["running", "waiting_input"][n % 2];
        let key = format!("local-{n}");
        let event = json!({"runtime_id": runtime, "source": "hook", "event_type": event_type, "dedupe_key": key});
        let began = Instant::now();
        let (status, answer) = connection.post("/v1/events", &event).expect("an answer");
        latencies.push(began.elapsed());
        assert_eq!(status, 202, "{answer}");
        // Spread the events over the time in which the host is noisy.
        std::thread::sleep(Duration::from_millis(10));
    }
    latencies.sort();
    latencies
}

fn p95(sorted: &[Duration]) -> Duration {
    sorted[sorted.len() * 95 / 100]
}

/// The stored state changes of agents of the host.
fn stored_transitions(hub: &TestWorld) -> f64 {
    let file = hub.state_dir().join("state.db");
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let sql = "SELECT count(*) FROM transitions t JOIN runtimes r ON r.runtime_id = t.runtime_id
               WHERE r.target_id = 'noisy'";
    database.query_row(sql, [], |row| row.get(0)).expect("counted")
}

/// The keys of the stored events of the local agent, in the order in which they were stored.
fn stored_events(hub: &TestWorld, runtime: &str) -> Vec<String> {
    let file = hub.state_dir().join("state.db");
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let sql = "SELECT dedupe_key FROM events WHERE runtime_id = ?1 AND dedupe_key LIKE 'local-%' ORDER BY event_id";
    let mut query = database.prepare(sql).expect("valid SQL");
    let keys = query.query_map([runtime], |row| row.get(0)).expect("read");
    keys.map(|key| key.expect("a text")).collect()
}

fn is_reported(hub: &HubFixture) -> bool {
    errors(&health(&hub.world)).iter().any(|(code, _)| code == "rate_limited")
}

#[test]
fn a_noisy_host_is_slowed_down_and_reported_and_does_not_delay_local_agents() {
    if skip_without_hosts() {
        return;
    }
    let (noise, events) = match soak() {
        true => (Noise { panes: 5_000, agents: 512 }, 3_000),
        false => (Noise { panes: 600, agents: 60 }, 200),
    };
    let hub = HubFixture::new();
    let here = FakeAgent::start(&hub.world, "work");
    let mine = hub.wait_for_state("host", &here, "idle");
    let runtime = mine["runtime_id"].as_str().expect("an agent").to_owned();
    let before = p95(&local_latencies(&hub.world, &runtime, 0, events));

    let host = hub.hosts.agentless("noisy");
    let dir = host.world().home();
    for (name, text) in [
        ("full", noise.batch(true, "start", "idle", 0)),
        ("one", noise.batch(false, "one", "running", 1)),
        ("two", noise.batch(false, "two", "idle", 2)),
    ] {
        std::fs::write(dir.join(name), text).expect("the world is writable");
    }
    host.world().install_script("agtmux", &NOISY_AGTMUX.replace("DIR", &dir.display().to_string()));
    let began = Instant::now();
    hub.add_target("noisy");
    wait_until("the report of the rate limit", SOON, || is_reported(&hub));
    let target = wait_for("the target to be degraded", SOON, || {
        let target = hub.target("noisy");
        if target["health"] == "degraded" { Ok(target) } else { Err(target.to_string()) }
    });
    assert!(target["message"].to_string().contains("more slowly"), "{target}");
    assert_eq!(target["panes"], noise.panes);
    assert_eq!(health(&hub.world)["status"], "degraded");

    let during = p95(&local_latencies(&hub.world, &runtime, events, events));
    let (stored, elapsed) = (stored_transitions(&hub.world), began.elapsed());
    // One more batch may be under way, and a state may change on the way to the reported one.
    let batches = (BURST + PER_SECOND * elapsed.as_secs_f64()) / noise.units() + 2.0;
    let most = batches * f64::from(noise.agents) * 2.0;
    println!(
        "noisy host with {} panes and {} agents: local events p95 {before:.1?} before, {during:.1?} during (goal: within \
         10 ms of before); {stored} state changes stored in {elapsed:.0?} (limit {most:.0})",
        noise.panes, noise.agents
    );
    assert!(stored <= most, "{stored} state changes in {elapsed:?}, at most {most}");
    // Every local event was applied between the batches of the host, in its order.
    let expected: Vec<String> = (0..2 * events).map(|n| format!("local-{n}")).collect();
    assert_eq!(stored_events(&hub.world, &runtime), expected);
    if soak() {
        assert!(during <= before + Duration::from_millis(10), "{before:?}, then {during:?}");
    }

    std::fs::write(dir.join("stop"), "").expect("the world is writable");
    wait_until("the end of the report", Duration::from_secs(60), || !is_reported(&hub));
    assert_eq!(hub.target("noisy")["health"], "ok");
}
