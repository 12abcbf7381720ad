//! `agtmux sidebar` in real windows.

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{AttachedClient, TestTmuxServer, wait_for, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

/// A session with two panes of unequal height, shown by a client with 120 columns.
fn open_window(server: &TestTmuxServer) -> AttachedClient {
    server.new_session("home", "cat");
    server.run(&["split-window", "-v", "-l", "7", "-t", "=home:", "cat"]);
    let client = server.attach("home");
    client.resize(120, 30);
    wait_until("the width", SOON, || {
        server.run(&["display-message", "-p", "-t", "=home:", "#{window_width}"]) == "120"
    });
    client
}

fn toggle(server: &TestTmuxServer, options: &str) {
    let tty = server.run(&["list-clients", "-F", "#{client_tty}"]);
    server.run(&["run-shell", &format!("{AGTMUX} sidebar toggle --client {tty} {options}")]);
}

/// Id, left edge, width and activity of each pane in the session.
fn panes(server: &TestTmuxServer) -> Vec<Vec<String>> {
    let format = "#{pane_id} #{pane_left} #{pane_width} #{pane_active}";
    let rows = server.run(&["list-panes", "-s", "-t", "=home", "-F", format]);
    rows.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn layout(server: &TestTmuxServer) -> String {
    server.run(&["display-message", "-p", "-t", "=home:", "#{window_layout}"])
}

#[test]
fn a_sidebar_is_opened_and_removed_and_the_layout_is_as_before() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    let agent = fixture.agent("work");
    let client = open_window(server);
    let (before, panes_before) = (layout(server), panes(server));
    toggle(server, "");
    let opened = panes(server);
    let sidebar = opened.iter().find(|pane| !panes_before.iter().any(|before| before[0] == pane[0])).expect("a pane");
    assert_eq!(sidebar[1..], ["0", "32", "0"], "at the left edge, 32 columns, not active: {opened:?}");
    let screen = wait_for("the agents in the sidebar", SOON, || {
        let screen = server.run(&["capture-pane", "-p", "-t", &sidebar[0]]);
        if screen.contains("1 idle") && screen.contains("claude") { Ok(screen) } else { Err(screen) }
    });
    assert!(screen.lines().all(|line| line.chars().count() <= 32), "{screen}");
    // The other panes keep their widths when the window grows, and the sidebar stays narrow.
    client.resize(200, 30);
    wait_for("a narrow sidebar", SOON, || {
        let panes = panes(server);
        let width: u32 =
            panes.iter().find(|pane| pane[0] == sidebar[0]).expect("the sidebar")[2].parse().expect("a width");
        let is_wide = panes.iter().any(|pane| pane[2].parse::<u32>().expect("a width") > 150);
        if (24..=40).contains(&width) && is_wide { Ok(()) } else { Err(panes) }
    });
    client.resize(120, 30);
    wait_until("the width", SOON, || {
        server.run(&["display-message", "-p", "-t", "=home:", "#{window_width}"]) == "120"
    });
    toggle(server, "");
    assert_eq!(panes(server).len(), 2);
    toggle(server, "--width 24");
    toggle(server, "");
    let shape = |layout: &str| layout.split_once(',').map(|(_, cells)| cells.to_owned());
    let widths = |layout: &str| layout.matches("120x").count();
    assert_eq!(widths(&layout(server)), widths(&before), "{} {before}", layout(server));
    let now = layout(server);
    toggle(server, "");
    toggle(server, "");
    assert_eq!(shape(&layout(server)), shape(&now));
    assert_eq!(panes(server).iter().map(|pane| pane[3].clone()).collect::<Vec<_>>(), ["0", "1"]);
    drop(agent);
}

#[test]
fn a_sidebar_is_never_the_last_pane_of_a_window() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    server.new_session("other", "cat");
    let _client = open_window(server);
    let own = panes(server);
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    toggle(server, "");
    wait_until("the sidebar", SOON, || panes(server).len() == 3);
    server.run(&["kill-pane", "-t", &own[0][0]]);
    wait_until("one pane and the sidebar", SOON, || panes(server).len() == 2);
    server.run(&["kill-pane", "-t", &own[1][0]]);
    wait_until("the end of the window", SOON, || server.try_run(&["has-session", "-t", "=home"]).is_err());
}

#[test]
fn every_window_of_the_session_gets_a_sidebar() {
    let fixture = ActionFixture::new("");
    let server = &fixture.server;
    server.new_session("other", "cat");
    let _client = open_window(server);
    server.run(&["new-window", "-d", "-t", "=home:", "cat"]);
    let before = panes(server).len();
    toggle(server, "--every-window");
    assert_eq!(panes(server).len(), before + 2);
    toggle(server, "");
    assert_eq!(panes(server).len(), before + 1, "only the sidebar of this window is removed");
    toggle(server, "--every-window");
    assert_eq!(panes(server).len(), before + 2, "a window has at most one sidebar");
    toggle(server, "--every-window");
    assert_eq!(panes(server).len(), before);
    assert_eq!(server.run(&["list-panes", "-s", "-t", "=other"]).lines().count(), 1);
}
