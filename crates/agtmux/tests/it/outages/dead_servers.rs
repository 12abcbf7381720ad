//! Servers that are stopped, killed, replaced or have lost their socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;

use agtmux_testkit::agtmux::{
    SOON, agtmux, errors, items, list, pane_ids, run, start, stop, tmux_pane_ids, wait_for_panes, world,
};
use agtmux_testkit::{process, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::{KNOWN_WITHIN, agent, error_of, server_with_agent, wait_for_agent, wait_for_error, wait_for_health};

#[test]
fn a_stopped_server_is_reported_and_its_panes_are_kept() {
    let world = world();
    let (first, second) = (server_with_agent(&world, "first"), world.tmux("second"));
    second.new_session("other", "cat");
    let panes = tmux_pane_ids(&first);
    let before = wait_for_agent(&world, "first", "unsupported_signal");
    wait_for_panes(&world, "first", &panes);

    let stopped = first.stop();
    let stopped_at = jiff::Timestamp::now();
    let listing = wait_for_error(&world, "server_not_responding", Some("first"));
    let error = error_of(&listing, "server_not_responding");
    let since: jiff::Timestamp = error["since"].as_str().and_then(|t| t.parse().ok()).expect("a time");
    let took = since.duration_since(stopped_at).unsigned_abs();
    println!("a stopped server was reported after {took:?}");
    assert!(took < KNOWN_WITHIN, "{took:?}");
    assert_eq!(listing["partial"], true);
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains(&format!("kill -CONT {stopped}"))), "{error}");
    assert_eq!(pane_ids(&listing, "first"), panes);
    let unreachable = wait_for_agent(&world, "first", "target_unreachable");
    assert_eq!(unreachable["runtime_id"], before["runtime_id"]);

    second.run(&["new-window", "-t", "=other:", "cat"]);
    let started = Instant::now();
    wait_for_panes(&world, "second", &tmux_pane_ids(&second));
    println!("a new pane on the other server was listed after {:?}", started.elapsed());
    let output = agtmux(&world, &["list", "panes", "--all"]);
    assert!(
        output.code == Some(0) && output.stderr.contains("host@first") && output.stderr.contains("try:"),
        "{output:?}"
    );

    first.cont(stopped);
    let recovered = wait_for_agent(&world, "first", "unsupported_signal");
    assert_eq!(recovered["runtime_id"], before["runtime_id"]);
    assert_eq!(recovered["since"], before["since"], "the outage does not change the age of the state");
    assert_eq!(errors(&list(&world)), []);
    first.run(&["kill-window", "-t", "=work:more"]);
    wait_for_panes(&world, "first", &tmux_pane_ids(&first));
}

#[test]
fn a_killed_server_is_removed_and_its_successor_has_new_panes() {
    let world = world();
    let (first, second, claude) = (world.tmux("first"), world.tmux("second"), world.fake_agent_command("claude"));
    first.new_session("work", &claude);
    second.new_session("other", "cat");
    let before = wait_for_agent(&world, "first", "unsupported_signal");
    first.kill_server();
    let listing = wait_for_panes(&world, "first", &[]);
    assert_eq!((listing["partial"].clone(), pane_ids(&listing, "second")), (Value::Bool(false), vec!["%0".into()]));

    first.new_session("work", &claude);
    let after = wait_for_agent(&world, "first", "unsupported_signal");
    assert_eq!((&after["identity"], &after["agent_type"]), (&before["identity"], &before["agent_type"]));
    assert_ne!(after["runtime_id"], before["runtime_id"], "%0 of another server is another pane");
    wait_for_panes(&world, "first", &tmux_pane_ids(&first));
}

#[test]
fn a_server_replaced_at_once_gets_a_new_runtime() {
    let world = world();
    let (server, claude) = (world.tmux("default"), world.fake_agent_command("claude"));
    server.new_session("work", &claude);
    let before = wait_for_agent(&world, "default", "unsupported_signal");
    // One shell command replaces the server, so that polls see the same socket and the same %0. The old server may
    // still be ending when the new one starts, so try several times.
    let swap = "tmux -S \"$1\" kill-server
                for attempt in 1 2 3 4 5 6 7 8 9 10; do
                    tmux -S \"$1\" -f /dev/null new-session -d -s work \"$2\" && exit
                done; exit 1";
    let done = run(world.command("sh").args(["-c", swap, "sh"]).arg(server.socket()).arg(&claude));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    wait_for("the new agent alone", SOON, || {
        let listing = list(&world);
        let new = agent(&listing, "default").filter(|agent| agent["runtime_id"] != before["runtime_id"]);
        if new.is_some() && items(&listing).len() == 1 { Ok(()) } else { Err(listing.to_string()) }
    });
}

#[test]
fn a_stale_socket_of_a_killed_server_is_not_an_outage() {
    let world = world();
    let server = server_with_agent(&world, "default");
    wait_for_panes(&world, "default", &tmux_pane_ids(&server));
    agtmux_testkit::agtmux::kill(server.pid());
    assert_eq!(errors(&wait_for_panes(&world, "default", &[])), []);
    assert!(server.socket().exists(), "a killed server cannot remove its socket");
    stop(&world);
    let fresh = list(&world);
    assert_eq!((items(&fresh).len(), errors(&fresh)), (0, vec![]), "a stale socket is not an outage");
    let output = agtmux(&world, &["list", "panes"]);
    assert!(output.code == Some(0) && output.stderr.contains("no tmux server is running"), "{output:?}");
    server.new_session("again", "cat");
    wait_for_panes(&world, "default", &tmux_pane_ids(&server));
}

#[test]
fn a_live_server_without_its_socket_keeps_its_panes() {
    let world = world();
    let server = server_with_agent(&world, "default");
    let (pid, panes) = (server.pid(), tmux_pane_ids(&server));
    wait_for_panes(&world, "default", &panes);
    fs::remove_file(server.socket()).expect("the socket is there");
    // The server still runs, so its panes stay listed.
    let listing = wait_for_error(&world, "server_not_responding", Some("default"));
    assert_eq!(pane_ids(&listing, "default"), panes);
    // tmux recreates its socket on SIGUSR1.
    assert!(process::signal(pid, Signal::USR1));
    wait_for_health(&world);
    wait_for_agent(&world, "default", "unsupported_signal");

    fs::remove_file(server.socket()).expect("the socket is there again");
    wait_for_error(&world, "server_not_responding", Some("default"));
    agtmux_testkit::agtmux::kill(pid);
    assert_eq!(errors(&wait_for_panes(&world, "default", &[])), [], "the server is dead now");
}

#[test]
fn a_daemon_started_beside_a_stopped_server_reports_it() {
    let world = world();
    let (hung, other) = (server_with_agent(&world, "hung"), world.tmux("other"));
    other.new_session("work", "cat");
    let panes = tmux_pane_ids(&hung);
    let stopped = hung.stop();
    let started = Instant::now();
    start(&world);
    println!("the daemon started beside a stopped server after {:?}", started.elapsed());
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "other"), ["%0"]);
    hung.cont(stopped);
    wait_for_health(&world);
    wait_for_panes(&world, "hung", &panes);
    let before = wait_for_agent(&world, "hung", "unsupported_signal");

    // The next daemon knows the panes from the store.
    let stopped = hung.stop();
    agtmux_testkit::agtmux::kill(agtmux_testkit::agtmux::pid(&world));
    start(&world);
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "hung"), panes);
    let unreachable = wait_for_agent(&world, "hung", "target_unreachable");
    assert_eq!(unreachable["runtime_id"], before["runtime_id"]);
    hung.cont(stopped);
    wait_for_agent(&world, "hung", "unsupported_signal");
}

/// Opens connections until the backlog of the socket is full. Further connections block while the server is stopped.
fn fill_queue(socket: &Path) -> Vec<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
    let address = SocketAddrUnix::new(socket).expect("a short path");
    let mut held = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let one = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket");
        match connect(&one, &address) {
            Ok(()) => held.push(UnixStream::from(one)),
            Err(rustix::io::Errno::AGAIN) => return held,
            Err(error) => panic!("cannot connect to {socket:?}: {error}"),
        }
    }
}

#[test]
fn a_stopped_server_with_a_full_queue_does_not_hang_the_daemon() {
    let world = world();
    let (hung, other) = (server_with_agent(&world, "hung"), world.tmux("other"));
    other.new_session("work", "cat");
    let panes = tmux_pane_ids(&hung);
    let stopped = hung.stop();
    let held = fill_queue(hung.socket());
    start(&world);
    let listing = wait_for_error(&world, "server_not_responding", Some("hung"));
    assert_eq!(pane_ids(&listing, "other"), ["%0"]);
    other.run(&["new-window", "-t", "=work:", "cat"]);
    wait_for_panes(&world, "other", &tmux_pane_ids(&other));
    drop(held);
    hung.cont(stopped);
    wait_for_panes(&world, "hung", &panes);
}
