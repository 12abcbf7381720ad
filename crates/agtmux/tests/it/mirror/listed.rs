//! A shared terminal in lists of panes.

use agtmux_testkit::agtmux::{SOON, agtmux, items, kill, pid};
use agtmux_testkit::{wait_for, wait_until};
use serde_json::{Value, json};

use super::MirrorFixture;

/// The item of the shared terminal among all panes.
#[track_caller]
fn item(fixture: &MirrorFixture) -> Value {
    let pane = fixture.pane();
    wait_for("the shared terminal in the list", SOON, || {
        let listing = agtmux(&fixture.world, &["list", "panes", "--all", "--json"]).json();
        let found = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane.as_str()).cloned();
        found.filter(|item| item["runtime_kind"] == "mirror").ok_or(listing.to_string())
    })
}

#[test]
fn a_shared_terminal_is_a_runtime_without_a_state() {
    let fixture = MirrorFixture::bash();
    let found = item(&fixture);
    let status = fixture.json(&["status", "--json"]);
    assert_eq!(found["mirror_id"], status["items"][0]["mirror_id"]);
    for field in ["state", "reason_code", "agent_type", "agent_id", "runtime_id", "since"] {
        assert_eq!(found[field], json!(null), "{field}: {found}");
    }
    assert_eq!(found["needs_action"], false);
    let agents = agtmux(&fixture.world, &["list", "panes", "--json"]).json();
    assert!(items(&agents).is_empty(), "only agents are listed by default: {agents}");
    let format = ["list", "panes", "--all", "-F", "#{pane_id} #{agtmux_kind}"];
    let lines = agtmux(&fixture.world, &format).text();
    assert!(lines.lines().any(|line| line == format!("{} mirror", fixture.pane())), "{lines}");
    let table = agtmux(&fixture.world, &["list", "panes", "--all"]).text();
    assert_eq!(table.matches("(mirror)").count(), 1, "{table}");
    let windows = agtmux(&fixture.world, &["list", "windows", "--json"]).json();
    assert!(items(&windows).iter().all(|window| window["top_state"] == json!(null)), "{windows}");
}

#[test]
fn the_kind_survives_a_restart_and_ends_with_the_terminal() {
    let fixture = MirrorFixture::bash();
    item(&fixture);
    kill(pid(&fixture.world));
    item(&fixture);
    let pane = fixture.pane();
    fixture.server.run(&["respawn-pane", "-k", "-t", &pane, "cat"]);
    wait_until("the pane without a terminal", SOON, || {
        let listing = agtmux(&fixture.world, &["list", "panes", "--all", "--json"]).json();
        let found = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane.as_str());
        found.is_some_and(|item| item["runtime_kind"] == json!(null) && item["mirror_id"] == json!(null))
    });
}
