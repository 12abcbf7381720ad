//! Private tmux servers.

use std::fs;
use std::time::Duration;

use agtmux_testkit::{TestWorld, process, wait_for, wait_until};

const SOON: Duration = Duration::from_secs(10);

#[test]
fn servers_are_independent() {
    let world = TestWorld::new();
    let (first, second) = (world.tmux("first"), world.tmux("second"));
    assert!(!first.is_running());
    assert_eq!(first.new_session("work", "cat"), "%0");
    assert_eq!(second.new_session("work", ""), "%0");
    assert_ne!(first.pid(), second.pid());
    assert!(first.socket().starts_with(world.tmux_sockets()));
    first.kill_server();
    assert!(!first.is_running() && second.is_running());
}

#[test]
fn a_failing_command_returns_the_error_of_tmux() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let error = server.try_run(&["kill-session", "-t", "=missing"]).expect_err("no such session");
    assert!(error.contains("can't find session"), "{error}");
}

#[test]
fn values_with_separators_are_read_correctly() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    let cwd = world.home().join("a\n2:%93:@93:$9");
    fs::create_dir(&cwd).expect("the directory is created");
    let pane = server.new_session("wörk", "cat");
    let cwd_text = cwd.to_str().expect("UTF-8");
    server.run(&["new-window", "-t", "=wörk:", "-n", "näme: ##(touch x)", "-c", cwd_text, "cat"]);
    server.run(&["select-pane", "-t", &pane, "-T", "a title: 日本"]);
    let panes = wait_for("the working directory", SOON, || {
        let panes = server.panes();
        if panes[1].cwd == cwd_text.as_bytes() { Ok(panes) } else { Err(panes) }
    });
    assert_eq!(panes.len(), 2);
    assert_eq!(panes[0].title, "a title: 日本".as_bytes());
    assert_eq!(panes[0].session_name, "wörk".as_bytes());
    assert_eq!(panes[1].window_name, "näme: #(touch x)".as_bytes());
    assert!(process::is_alive(panes[0].pid) && !panes[0].dead && panes[0].tty.starts_with("/dev/pts/"));
}

#[test]
fn a_stopped_server_can_continue() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let pid = server.stop();
    assert!(process::is_stopped(pid));
    server.cont(pid);
    assert!(server.is_running());
}

#[test]
fn dropping_the_world_ends_a_stopped_server() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let pid = server.stop();
    drop(world);
    assert!(!process::is_alive(pid));
}

#[test]
fn clients_attach_type_resize_and_detach() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    let mut first = server.attach("work");
    let second = server.attach("work");
    let third = server.attach("work");
    assert_eq!(server.run(&["display-message", "-p", "-t", "=work:", "#{session_attached}"]), "3");
    first.type_keys(b"hello from a client\r");
    wait_until("the typed text", SOON, || server.run(&["capture-pane", "-p", "-t", "%0"]).contains("hello from"));
    wait_until("the drawn text", SOON, || second.output().windows(5).any(|bytes| bytes == b"hello"));
    first.resize(100, 30);
    wait_until("the new size", SOON, || {
        server.run(&["list-clients", "-F", "#{client_width}x#{client_height}"]).contains("100x30")
    });
    drop(second);
    wait_until("the second client's end", SOON, || server.client_pids().len() == 2);
    server.run(&["detach-client", "-s", "=work"]);
    wait_until("the first client's end", SOON, || !first.is_attached());
    drop(third);
}
