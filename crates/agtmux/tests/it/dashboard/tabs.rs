//! Several tabs, and a connection that breaks.

use std::fs;

use agtmux_testkit::agtmux::{SOON, pid, stop, world};
use agtmux_testkit::process;
use agtmux_testkit::web::login_link;
use agtmux_testkit::{wait_for, wait_until};

use super::{open, restart_with};

/// How many connections to this port are established, as the daemon sees them.
fn connections(daemon: u32, port: u16) -> usize {
    let sockets: Vec<String> = process::open_fds(daemon)
        .iter()
        .filter_map(|path| Some(path.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = fs::read_to_string("/proc/net/tcp").expect("the table of connections");
    let local = format!(":{port:04X}");
    let is_open = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1).is_some_and(|address| address.ends_with(&local))
            && fields.get(3) == Some(&"01")
            && fields.get(9).is_some_and(|inode| sockets.iter().any(|socket| socket == inode))
    };
    table.lines().filter(is_open).count()
}

#[test]
fn eight_tabs_use_one_stream_and_all_are_live() {
    let world = world();
    let tmux = world.tmux("default");
    tmux.new_session("first", &world.fake_agent_command("claude"));
    let Some((web, browser)) = open(&world, &[]) else { return };
    let page = format!("http://{}/#/agents", web.address);
    let tabs: Vec<String> = (0..7)
        .map(|_| {
            let tab = browser.new_tab();
            browser.switch_to(&tab);
            browser.open(&page);
            browser.wait_until("the first agent", "return document.querySelectorAll('a.row').length === 1");
            tab
        })
        .collect();
    // Connections without a request in progress end after a while.
    wait_for("one connection", SOON * 2, || match connections(pid(&world), web.address.port()) {
        1 => Ok(()),
        more => Err(more),
    });
    tmux.new_session("second", &world.fake_agent_command("codex"));
    for tab in &tabs {
        browser.switch_to(tab);
        browser.wait_until("the second agent", "return document.querySelectorAll('a.row').length === 2");
    }
    assert_eq!(connections(pid(&world), web.address.port()), 1);
}

#[test]
fn a_lost_connection_is_visible_and_comes_back() {
    let world = world();
    let tmux = world.tmux("default");
    tmux.new_session("work", &world.fake_agent_command("claude"));
    let Some((web, browser)) = open(&world, &[]) else { return };
    browser.run("location.hash = '#/agents'");
    browser.wait_until("the agent", "return document.querySelectorAll('a.row').length === 1");
    stop(&world);
    browser.wait_until(
        "the notice",
        "return document.querySelector('.is-stale .banner')?.innerText.includes('Not connected')",
    );
    assert_eq!(browser.run("return document.querySelectorAll('a.row').length"), 1, "the last known agents stay");
    // A restarted daemon does not know this browser's login.
    restart_with(&world, &web);
    browser.wait_until("the end of the login", "return document.body.innerText.includes('your login has expired')");
    browser.open(&login_link(&world, &[]));
    browser.wait_until("the agents", "return document.querySelectorAll('.frame:not(.is-stale)').length === 1");
    browser.run("location.hash = '#/agents'");
    browser.wait_until("the agent", "return document.querySelectorAll('a.row').length === 1");
    // The copy of the page opens without a connection.
    browser.wait_until("the copy of the page", "return navigator.serviceWorker.ready.then(() => true)");
    stop(&world);
    browser.open(&format!("http://{}/", web.address));
    browser.wait_until("the page without a connection", "return document.body.innerText.includes('Not connected')");
    wait_until("the port to be closed", SOON, || std::net::TcpStream::connect(web.address).is_err());
}
