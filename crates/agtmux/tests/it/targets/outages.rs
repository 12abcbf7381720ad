//! Failures of a remote host are detected soon, do not affect other hosts, and recover without user action.

use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, items, pid, start, stop, tmux_pane_ids};
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::http::SseClient;
use agtmux_testkit::hub_fixture::{HubFixture, OUTAGE_TIMEOUT, RECOVERY_TIMEOUT, run_on_host, runtime_ref};
use agtmux_testkit::{http, skip_without_hosts};
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The limit for a listing, also while a host hangs. Far more than a listing takes, and far less than any host timeout.
const LISTING_LIMIT: Duration = Duration::from_secs(2);

#[track_caller]
fn list_quickly(hub: &HubFixture) -> Value {
    let started = Instant::now();
    let listing = hub.list();
    assert!(started.elapsed() < LISTING_LIMIT, "a listing took {:?}", started.elapsed());
    listing
}

/// Waits until the listing has an error for this target.
#[track_caller]
fn wait_for_target_error(hub: &HubFixture, target: &str) -> Value {
    wait_for(&format!("an error for {target}"), OUTAGE_TIMEOUT, || {
        let listing = list_quickly(hub);
        let named = listing["target_errors"].as_array().into_iter().flatten().any(|error| error["target"] == target);
        if named && listing["partial"] == true { Ok(listing) } else { Err(listing.to_string()) }
    })
}

#[track_caller]
fn wait_until_lost(hub: &HubFixture, target: &str, agent: &FakeAgent) {
    hub.wait_for_health(target, "down", OUTAGE_TIMEOUT);
    let affected = hub.wait_for_state_within(target, agent, "unknown", OUTAGE_TIMEOUT);
    assert_eq!((&affected["reason_code"], &affected["confidence"]), (&json!("target_unreachable"), &json!("low")));
}

#[track_caller]
fn wait_until_healed(hub: &HubFixture, target: &str, agent: &FakeAgent, before: &Value) {
    let recovered = hub.wait_for_state_within(target, agent, "idle", RECOVERY_TIMEOUT);
    assert_eq!(recovered["runtime_id"], before["runtime_id"]);
    hub.wait_for_health(target, "ok", RECOVERY_TIMEOUT);
    assert_eq!(hub.items(target).len(), 1, "each pane is listed once");
    assert_eq!(list_quickly(hub)["partial"], false);
}

/// Checks that the other host still reports state changes.
#[track_caller]
fn assert_reports_changes(hub: &HubFixture, target: &str, agent: &FakeAgent) {
    agent.draw_scene("running");
    hub.wait_for_state(target, agent, "running");
    agent.draw_scene("idle");
    hub.wait_for_state(target, agent, "idle");
}

/// Reads the stream until the target has had each of these healths, in this order.
#[track_caller]
fn assert_healths_in_order(stream: &SseClient, healths: &[&str]) {
    for health in healths {
        stream.until(&format!("the health {health}"), |event| event.data["item"]["health"] == *health);
    }
}

#[test]
fn a_killed_host_is_down_and_recovers() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let (failing_host, other_host) = (hub.host("vm1"), hub.host("vm2"));
    let (affected, healthy) =
        (FakeAgent::start(failing_host.world(), "work"), FakeAgent::start(other_host.world(), "work"));
    let before = hub.wait_for_state("vm1", &affected, "idle");
    hub.wait_for_state("vm2", &healthy, "idle");
    let health_stream = SseClient::open(&hub.world.socket(), "?scope=targets&target=vm1", None);
    hub.wait_for_health("vm1", "ok", SOON);
    failing_host.kill_sshd();
    wait_for_target_error(&hub, "vm1");
    assert_eq!(hub.items("vm1").len(), 1, "the last known panes are kept");
    wait_until_lost(&hub, "vm1", &affected);
    // The action must report that the host is unreachable.
    let health = http::get(&hub.world.socket(), &format!("/v1/actions/health?ref={}", runtime_ref(&before))).json();
    assert_eq!(health["code"], "E_TARGET_UNREACHABLE", "{health}");
    let refused = hub.send(&runtime_ref(&before), "not delivered").json();
    assert!(refused["message"].as_str().is_some() && refused["verified"].is_null(), "{refused}");
    assert_reports_changes(&hub, "vm2", &healthy);
    // A change during the outage is reported after the reconnect.
    affected.draw_scene("dialog");
    failing_host.start_sshd();
    assert_eq!(hub.agtmux(&["target", "connect", "vm1"]).code, Some(0));
    hub.wait_for_state("vm1", &affected, "waiting_approval");
    affected.draw_scene("idle");
    wait_until_healed(&hub, "vm1", &affected, &before);
    assert_eq!(affected.typed_text(), "", "nothing is typed after the reconnect");
    assert_healths_in_order(&health_stream, &["ok", "degraded", "down", "ok"]);
}

#[test]
fn a_frozen_host_is_detected_and_sends_are_not_repeated() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let (failing_host, other_host) = (hub.host("vm1"), hub.host("vm2"));
    let (affected, healthy) =
        (FakeAgent::start(failing_host.world(), "work"), FakeAgent::start(other_host.world(), "work"));
    let before = hub.wait_for_state("vm1", &affected, "idle");
    hub.wait_for_state("vm2", &healthy, "idle");
    let silent_since = Instant::now();
    failing_host.freeze();
    // The connection still looks healthy, so the outcome of this send is unknown.
    let sent = hub.send(&runtime_ref(&before), "was it typed?").json();
    assert_eq!(sent["code"], "E_OUTCOME_UNKNOWN", "{sent}");
    // Both hosts have a pane with this id, so the hint must name the host.
    let command = "agtmux view-output pane:vm1@default/work/@0/%0";
    assert!(sent["hint"].as_str().is_some_and(|hint| hint.ends_with(command)), "{sent}");
    let audit_row = hub.audit().pop().expect("the audit log has the send");
    assert_eq!(
        (&audit_row["status"], &audit_row["code"]),
        (&json!("failed"), &json!("E_OUTCOME_UNKNOWN")),
        "{audit_row}"
    );
    hub.assert_degrades_in_time("vm1", silent_since);
    wait_for_target_error(&hub, "vm1");
    assert_reports_changes(&hub, "vm2", &healthy);
    failing_host.thaw();
    wait_until_healed(&hub, "vm1", &affected, &before);
    assert_eq!(affected.typed_text(), "", "the send with the unknown outcome is not typed later");
}

/// The shared ssh connection hangs and is replaced.
#[test]
fn a_hung_ssh_connection_is_replaced() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let is_ssh = |pid: &u32| process::argv(*pid).first().is_some_and(|word| word.ends_with(b"/ssh"));
    let ssh = |hub: &HubFixture| process::children(pid(&hub.world)).into_iter().find(is_ssh);
    let hung_ssh = ssh(&hub).expect("the daemon runs ssh");
    let silent_since = Instant::now();
    assert!(process::signal(hung_ssh, Signal::STOP));
    hub.assert_degrades_in_time("vm1", silent_since);
    wait_for_target_error(&hub, "vm1");
    wait_until_healed(&hub, "vm1", &agent, &before);
    assert!(!process::is_alive(hung_ssh), "the hung ssh is killed");
    assert!(ssh(&hub).is_some_and(|pid| pid != hung_ssh));
    // Actions use the new connection.
    assert_eq!(hub.send(&runtime_ref(&before), "through the new one").json()["verified"], "confirmed");
}

#[test]
fn a_restarted_remote_tmux_server_gets_new_runtimes() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let first = FakeAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &first, "idle");
    first.server.kill_server();
    let second = FakeAgent::start(host.world(), "work");
    assert_eq!(first.pane, second.pane, "pane ids start again at %0");
    let after = wait_for("the new agent", SOON, || {
        let item = hub.item("vm1", &second).filter(|item| item["state"] == "idle")?;
        (item["runtime_id"] != before["runtime_id"]).then_some(item)
    });
    let stale = hub.send(&runtime_ref(&before), "for the old one").json();
    assert_eq!(stale["code"], "E_REF_NOT_FOUND", "{stale}");
    assert_eq!(hub.send(&runtime_ref(&after), "for the new one").json()["verified"], "confirmed");
    assert!(!second.typed_text().contains("old"));
    assert_eq!(hub.items("vm1").len(), 1);
}

#[test]
fn a_hung_remote_tmux_server_recovers_when_it_continues() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let tmux = agent.server.run(&["display-message", "-p", "#{pid}"]).trim().parse().expect("a pid");
    assert!(process::signal(tmux, Signal::STOP));
    wait_for_target_error(&hub, "vm1");
    assert!(process::signal(tmux, Signal::CONT));
    wait_until_healed(&hub, "vm1", &agent, &before);
}

/// The next connection starts a new daemon when the remote daemon is gone.
#[test]
fn the_hub_reconnects_to_a_restarted_remote_daemon() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    stop(host.world());
    wait_for("a new daemon on the host", RECOVERY_TIMEOUT, || host.world().daemons().first().copied());
    wait_until_healed(&hub, "vm1", &agent, &before);
    agtmux_testkit::agtmux::kill(*host.world().daemons().first().expect("a daemon"));
    wait_until_vm1_healed(&hub, &agent, &before);
    // While the remote daemon is stopped its host is unreachable.
    let stopped = run_on_host(&host, &["daemon", "status", "--json"]).json()["pid"].as_u64().expect("a pid");
    let stopped = u32::try_from(stopped).expect("pids are small");
    let silent_since = Instant::now();
    assert!(process::signal(stopped, Signal::STOP));
    let sent = hub.send(&runtime_ref(&before), "was it typed?").json();
    assert_eq!(sent["code"], "E_OUTCOME_UNKNOWN", "{sent}");
    hub.assert_degrades_in_time("vm1", silent_since);
    wait_for_target_error(&hub, "vm1");
    assert!(process::signal(stopped, Signal::CONT));
    wait_until("the host to refuse the late request", SOON, || {
        run_on_host(&host, &["audit", "--json"]).text().contains("the request arrived after its deadline")
    });
    wait_until_vm1_healed(&hub, &agent, &before);
    assert_eq!(agent.typed_text(), "", "the send with the unknown outcome is not typed later");
}

#[track_caller]
fn wait_until_vm1_healed(hub: &HubFixture, agent: &FakeAgent, before: &Value) {
    wait_for("the host to recover", RECOVERY_TIMEOUT, || {
        let target = hub.target("vm1");
        let item = hub.item("vm1", agent).unwrap_or_default();
        let healthy = target["health"] == "ok" && item["state"] == "idle" && item["runtime_id"] == before["runtime_id"];
        if healthy { Ok(()) } else { Err(format!("{target} {item}")) }
    });
}

#[test]
fn a_killed_hub_restores_its_hosts_and_runtimes() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "work");
    agent.server.run(&["split-window", "-d", "-t", &agent.pane, "cat"]);
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let panes = tmux_pane_ids(&agent.server);
    wait_until("both panes", SOON, || hub.items("vm1").len() == panes.len());
    agtmux_testkit::agtmux::kill(pid(&hub.world));
    agent.server.run(&["kill-pane", "-a", "-t", &agent.pane]);
    start(&hub.world);
    let after = hub.wait_for_state("vm1", &agent, "idle");
    assert_eq!(after["runtime_id"], before["runtime_id"]);
    wait_until("the killed pane to be removed", SOON, || hub.items("vm1").len() == 1);
    // Without the host the hub lists the last known panes with state unknown.
    stop(&hub.world);
    host.kill_sshd();
    start(&hub.world);
    let listing = list_quickly(&hub);
    assert_eq!(listing["partial"], true, "{listing}");
    let [item] = &items(&listing)[..] else { panic!("one pane: {listing}") };
    assert_eq!((&item["state"], &item["reason_code"]), (&json!("unknown"), &json!("target_unreachable")), "{item}");
    host.start_sshd();
    hub.wait_for_state_within("vm1", &agent, "idle", RECOVERY_TIMEOUT);
}
