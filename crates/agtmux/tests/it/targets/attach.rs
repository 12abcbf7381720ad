//! Attaching to a pane of a remote host with a real `ssh -t`.

use std::thread;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, runtime_ref};
use agtmux_testkit::terminal::printed_on_terminal;
use agtmux_testkit::{TestHost, skip_without_hosts, wait_for, wait_until};
use serde_json::Value;

fn start_remote_agent() -> (TestHost, FakeAgent, Value, HubFixture) {
    let hub = HubFixture::new();
    let host = hub.host("vm1");
    let agent = FakeAgent::start(host.world(), "it's \\ odd $(x)");
    let idle = hub.wait_for_state("vm1", &agent, "idle");
    (host, agent, idle, hub)
}

#[test]
fn attach_connects_the_terminal_to_the_remote_tmux() {
    if skip_without_hosts() {
        return;
    }
    let (_host, agent, idle, hub) = start_remote_agent();
    let printed = hub.agtmux(&["attach", &runtime_ref(&idle), "--print"]).text();
    assert!(printed.contains("ssh") && printed.contains("vm1"), "{printed}");
    let reference = runtime_ref(&idle);
    let mut attach = hub.world.agtmux();
    attach.args(["attach", &reference]);
    let terminal_output = thread::scope(|scope| {
        let terminal_output = scope.spawn(move || printed_on_terminal(&mut attach, 100));
        wait_until("a client on the host", SOON, || !agent.server.client_pids().is_empty());
        let attached_pane = agent.server.run(&["list-clients", "-F", "#{pane_id}"]);
        assert_eq!(attached_pane, agent.pane);
        agent.server.run(&["detach-client", "-a"]);
        for client in agent.server.run(&["list-clients", "-F", "#{client_name}"]).lines() {
            agent.server.run(&["detach-client", "-t", client]);
        }
        terminal_output.join().expect("the attach thread ends")
    });
    assert!(String::from_utf8_lossy(&terminal_output).contains("earlier"), "the pane was shown");
    // The printed command must not attach after the pane was respawned.
    agent.server.run(&["respawn-pane", "-k", "-t", &agent.pane, "cat"]);
    let words = printed.trim_end();
    let stale = agtmux_testkit::agtmux::run(hub.world.command("sh").args(["-c", words]));
    assert_ne!(stale.code, Some(0), "{stale:?}");
    assert!(agent.server.client_pids().is_empty());
}

#[test]
fn attach_inside_tmux_opens_a_window() {
    if skip_without_hosts() {
        return;
    }
    let (_host, agent, idle, hub) = start_remote_agent();
    let here = hub.world.tmux("default");
    let go = format!("{} attach {}; cat", env!("CARGO_BIN_EXE_agtmux"), runtime_ref(&idle));
    here.new_session("mine", &go);
    wait_until("a client on the host", SOON, || !agent.server.client_pids().is_empty());
    let window = wait_for("the local window", SOON, || {
        let names = here.run(&["list-windows", "-t", "=mine", "-F", "#{window_name} #{window_id}"]);
        names.lines().find_map(|line| line.strip_prefix("vm1 ")).map(str::to_owned).ok_or(names)
    });
    here.run(&["kill-window", "-t", &window]);
    wait_until("the end of the client", SOON, || agent.server.client_pids().is_empty());
}
