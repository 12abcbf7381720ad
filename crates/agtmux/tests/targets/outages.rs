//! Whatever becomes of one host: it is known soon, the others are not touched, and it heals by itself.

use std::time::{Duration, Instant};

use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agtmux::{SOON, items, pid, start, stop, true_pane_ids};
use crate::http;
use crate::hub::{
    HubAgent, HubFixture, OUTAGE_TIMEOUT, RECOVERY_TIMEOUT, run_on_host, runtime_ref, skip_without_hosts,
};

/// A listing has to come at once, also while a host hangs. Far more than it takes, and far less than any host is waited for.
const LISTING_LIMIT: Duration = Duration::from_secs(2);

#[track_caller]
fn list_quickly(hub: &HubFixture) -> Value {
    let began = Instant::now();
    let listing = hub.list();
    assert!(began.elapsed() < LISTING_LIMIT, "a listing took {:?}", began.elapsed());
    listing
}

/// Names trouble with this target and keeps what was known of it.
#[track_caller]
fn wait_for_target_error(hub: &HubFixture, target: &str) -> Value {
    wait_for(&format!("trouble with {target}"), OUTAGE_TIMEOUT, || {
        let listing = list_quickly(hub);
        let named = listing["target_errors"].as_array().into_iter().flatten().any(|error| error["target"] == target);
        if named && listing["partial"] == true { Ok(listing) } else { Err(listing.to_string()) }
    })
}

#[track_caller]
fn wait_until_lost(hub: &HubFixture, target: &str, agent: &HubAgent) {
    hub.wait_for_health(target, "down", OUTAGE_TIMEOUT);
    let lost = hub.wait_for_state_within(target, agent, "unknown", OUTAGE_TIMEOUT);
    assert_eq!((&lost["reason_code"], &lost["confidence"]), (&json!("target_unreachable"), &json!("low")));
}

#[track_caller]
fn wait_until_healed(hub: &HubFixture, target: &str, agent: &HubAgent, before: &Value) {
    let healed = hub.wait_for_state_within(target, agent, "idle", RECOVERY_TIMEOUT);
    assert_eq!(healed["runtime_id"], before["runtime_id"]);
    hub.wait_for_health(target, "ok", RECOVERY_TIMEOUT);
    assert_eq!(hub.items(target).len(), 1, "no pane twice");
    assert_eq!(list_quickly(hub)["partial"], false);
}

/// The other host is alive all the while: it still tells at once what its agent does.
#[track_caller]
fn assert_reports_changes(hub: &HubFixture, target: &str, agent: &HubAgent) {
    agent.draw_scene("running");
    hub.wait_for_state(target, agent, "running");
    agent.draw_scene("idle");
    hub.wait_for_state(target, agent, "idle");
}

#[test]
fn a_host_that_is_killed_is_lost_and_comes_back() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let (bad, good) = (hub.host("vm1"), hub.host("vm2"));
    let (lost, well) = (HubAgent::start(bad.world(), "work"), HubAgent::start(good.world(), "work"));
    let before = hub.wait_for_state("vm1", &lost, "idle");
    hub.wait_for_state("vm2", &well, "idle");
    bad.kill_sshd();
    wait_for_target_error(&hub, "vm1");
    assert_eq!(hub.items("vm1").len(), 1, "what was known is kept");
    wait_until_lost(&hub, "vm1", &lost);
    // Whether it is there is not known, and that is what is said.
    let health = http::get(&hub.world.socket(), &format!("/v1/actions/health?ref={}", runtime_ref(&before))).json();
    assert_eq!(health["code"], "E_TARGET_UNREACHABLE", "{health}");
    let refused = hub.send(&runtime_ref(&before), "nobody hears it").json();
    assert!(refused["message"].as_str().is_some() && refused["verified"].is_null(), "{refused}");
    assert_reports_changes(&hub, "vm2", &well);
    // What happens there meanwhile is known as soon as it is back.
    lost.draw_scene("dialog");
    bad.start_sshd();
    assert_eq!(hub.agtmux(&["target", "connect", "vm1"]).code, Some(0));
    hub.wait_for_state("vm1", &lost, "waiting_approval");
    lost.draw_scene("idle");
    wait_until_healed(&hub, "vm1", &lost, &before);
    assert_eq!(lost.typed_text(), "", "nothing was typed late");
}

#[test]
fn a_host_that_freezes_is_noticed_and_a_write_is_never_repeated() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let (bad, good) = (hub.host("vm1"), hub.host("vm2"));
    let (lost, well) = (HubAgent::start(bad.world(), "work"), HubAgent::start(good.world(), "work"));
    let before = hub.wait_for_state("vm1", &lost, "idle");
    hub.wait_for_state("vm2", &well, "idle");
    let silent = Instant::now();
    bad.freeze();
    // Sent into a line that looks fine: nobody can know what becomes of it.
    let sent = hub.send(&runtime_ref(&before), "was it typed?").json();
    assert_eq!(sent["code"], "E_OUTCOME_UNKNOWN", "{sent}");
    // The number of its pane is also that of a pane of the other host.
    let look = format!("agtmux view-output {}", runtime_ref(&before));
    assert!(sent["hint"].as_str().is_some_and(|hint| hint.ends_with(&look)), "{sent}");
    let noted = hub.audit().pop().expect("it was written down");
    assert_eq!((&noted["status"], &noted["code"]), (&json!("failed"), &json!("E_OUTCOME_UNKNOWN")), "{noted}");
    hub.assert_degrades_in_time("vm1", silent);
    wait_for_target_error(&hub, "vm1");
    assert_reports_changes(&hub, "vm2", &well);
    bad.thaw();
    wait_until_healed(&hub, "vm1", &lost, &before);
    assert_eq!(lost.typed_text(), "", "nothing is typed after nobody knew of it");
}

/// The connection that everything shares hangs: it is replaced.
#[test]
fn a_wedged_connection_wedges_nobody() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = HubAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let is_ssh = |pid: &u32| process::argv(*pid).first().is_some_and(|word| word.ends_with(b"/ssh"));
    let ssh = |hub: &HubFixture| process::children(pid(&hub.world)).into_iter().find(is_ssh);
    let wedged = ssh(&hub).expect("an ssh of ours");
    let silent = Instant::now();
    assert!(process::signal(wedged, Signal::STOP));
    hub.assert_degrades_in_time("vm1", silent);
    wait_for_target_error(&hub, "vm1");
    wait_until_healed(&hub, "vm1", &agent, &before);
    assert!(!process::is_alive(wedged), "the wedged one is gone");
    assert!(ssh(&hub).is_some_and(|pid| pid != wedged));
    // One that was left behind by somebody else, and hangs, is in nobody's way either.
    assert_eq!(hub.send(&runtime_ref(&before), "through the new one").json()["verified"], "confirmed");
}

#[test]
fn a_tmux_server_that_is_restarted_there_is_another_one() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let first = HubAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &first, "idle");
    first.server.kill_server();
    let second = HubAgent::start(host.world(), "work");
    assert_eq!(first.pane, second.pane, "ids begin anew");
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
fn a_tmux_server_that_hangs_there_is_known_again_when_it_goes_on() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = HubAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let tmux = agent.server.run(&["display-message", "-p", "#{pid}"]).trim().parse().expect("a pid");
    assert!(process::signal(tmux, Signal::STOP));
    wait_for_target_error(&hub, "vm1");
    assert!(process::signal(tmux, Signal::CONT));
    wait_until_healed(&hub, "vm1", &agent, &before);
}

/// Its daemon is the one that watches: without it another is started by the next connection.
#[test]
fn a_daemon_that_is_restarted_there_is_found_again() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = HubAgent::start(host.world(), "work");
    let before = hub.wait_for_state("vm1", &agent, "idle");
    stop(host.world());
    wait_for("another daemon there", RECOVERY_TIMEOUT, || host.world().daemons().first().copied());
    wait_until_healed(&hub, "vm1", &agent, &before);
    crate::agtmux::kill(*host.world().daemons().first().expect("a daemon"));
    wait_until_vm1_healed(&hub, &agent, &before);
    // A stopped daemon says nothing, and its host is out of reach until it goes on.
    let stopped = run_on_host(&host, &["daemon", "status", "--json"]).json()["pid"].as_u64().expect("a pid");
    let stopped = u32::try_from(stopped).expect("pids are small");
    let silent = Instant::now();
    assert!(process::signal(stopped, Signal::STOP));
    let sent = hub.send(&runtime_ref(&before), "was it typed?").json();
    assert_eq!(sent["code"], "E_OUTCOME_UNKNOWN", "{sent}");
    hub.assert_degrades_in_time("vm1", silent);
    wait_for_target_error(&hub, "vm1");
    assert!(process::signal(stopped, Signal::CONT));
    wait_until("the host to refuse what came late", SOON, || {
        run_on_host(&host, &["audit", "--json"]).text().contains("it came too late")
    });
    wait_until_vm1_healed(&hub, &agent, &before);
    assert_eq!(agent.typed_text(), "", "nothing is typed after nobody knew of it");
}

#[track_caller]
fn wait_until_vm1_healed(hub: &HubFixture, agent: &HubAgent, before: &Value) {
    wait_for("the host to be well again", RECOVERY_TIMEOUT, || {
        let target = hub.target("vm1");
        let item = hub.item("vm1", agent).unwrap_or_default();
        let well = target["health"] == "ok" && item["state"] == "idle" && item["runtime_id"] == before["runtime_id"];
        if well { Ok(()) } else { Err(format!("{target} {item}")) }
    });
}

#[test]
fn a_hub_that_is_killed_finds_everything_again() {
    if skip_without_hosts() {
        return;
    }
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = HubAgent::start(host.world(), "work");
    agent.server.run(&["split-window", "-d", "-t", &agent.pane, "cat"]);
    let before = hub.wait_for_state("vm1", &agent, "idle");
    let panes = true_pane_ids(&agent.server);
    wait_until("both panes", SOON, || hub.items("vm1").len() == panes.len());
    crate::agtmux::kill(pid(&hub.world));
    agent.server.run(&["kill-pane", "-a", "-t", &agent.pane]);
    start(&hub.world);
    let after = hub.wait_for_state("vm1", &agent, "idle");
    assert_eq!(after["runtime_id"], before["runtime_id"]);
    wait_until("the pane that is gone to be gone", SOON, || hub.items("vm1").len() == 1);
    // Without its host it shows what it knows, and that it does not know.
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
