//! Attaching to a pane of a remote host with a real `ssh -t`.

use std::thread;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::fake_agent::FakeAgent;
use agtmux_testkit::hub_fixture::{HubFixture, runtime_ref};
use agtmux_testkit::terminal::printed_on_terminal;
use agtmux_testkit::{TestHost, skip_without_hosts, wait_until};
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
fn attach_inside_tmux_opens_one_window_per_agent() {
    if skip_without_hosts() {
        return;
    }
    let (_host, agent, idle, hub) = start_remote_agent();
    let here = hub.world.tmux("default");
    here.new_session("mine", "cat");
    let client = here.attach("mine");
    let attach = format!("{} attach {} --client '#{{client_tty}}'", env!("CARGO_BIN_EXE_agtmux"), runtime_ref(&idle));
    here.run(&["bind-key", "-T", "prefix", "g", "run-shell", "-b", &attach]);
    let back = format!("{} back --client '#{{client_tty}}'", env!("CARGO_BIN_EXE_agtmux"));
    here.run(&["bind-key", "-T", "prefix", "G", "run-shell", "-b", &back]);
    let window_of_client = || here.run(&["list-clients", "-F", "#{window_name}"]);
    let home = window_of_client();
    for _ in 0..2 {
        client.type_keys(b"\x02g");
        wait_until("a client on the host", SOON, || !agent.server.client_pids().is_empty());
        wait_until("the window", SOON, || window_of_client() == "vm1");
        let windows = here.run(&["list-windows", "-t", "=mine", "-F", "#{window_name}"]);
        assert_eq!(windows.lines().filter(|name| *name == "vm1").count(), 1, "{windows}");
        client.type_keys(b"\x02G");
        wait_until("the first window", SOON, || window_of_client() == home);
    }
    here.run(&["kill-window", "-t", "=mine:vm1"]);
    wait_until("the end of the client", SOON, || agent.server.client_pids().is_empty());
}
