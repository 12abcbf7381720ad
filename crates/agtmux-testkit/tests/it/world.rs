//! A world is isolated and leaves nothing behind.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use agtmux_testkit::{ChildGuard, TestWorld, process, wait_for, wait_until};

const SOON: Duration = Duration::from_secs(10);

fn message(error: Box<dyn std::any::Any + Send>) -> String {
    error.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn the_environment_is_isolated() {
    let world = TestWorld::new();
    let output = world.command("env").output().expect("env runs");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let dir = world.dir().to_str().expect("UTF-8");
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "AGTMUX_STATE_DIR", "AGTMUX_SOCKET"] {
        assert!(value(name).is_some_and(|path| path.starts_with(dir)), "{name} in {text}");
    }
    assert_eq!(value("TMUX_TMPDIR"), Some(dir));
    assert_eq!(value("AGTMUX_WORLD"), Some(world.id()));
    let path = format!("{dir}/bin:{}", std::env::var("PATH").expect("UTF-8"));
    assert_eq!(value("PATH"), Some(path.as_str()));
    assert_eq!((value("TMUX"), value("TMUX_PANE"), value("CARGO_MANIFEST_DIR")), (None, None, None));
    assert!(world.socket().as_os_str().len() < 80, "sockets need short paths");
}

#[test]
fn dropping_a_world_removes_its_directory() {
    let world = TestWorld::new();
    let dir = world.dir().to_owned();
    fs::write(world.home().join("file"), "x").expect("writable");
    drop(world);
    assert!(!dir.exists());
}

#[test]
fn leaked_processes_are_named_and_killed() {
    let mut world = TestWorld::new();
    world.set_shutdown_timeout(Duration::from_millis(50));
    let bystander = ChildGuard::start(std::process::Command::new("sleep").arg("1000"));
    let leaked = ChildGuard::start(world.command("sleep").arg("1001"));
    let error = catch_unwind(AssertUnwindSafe(|| drop(world))).expect_err("a leak fails the test");
    assert_eq!(message(error), format!("the test left processes behind: {} (sleep 1001)", leaked.id()));
    wait_until("the leaked process's end", SOON, || !process::is_alive(leaked.id()));
    assert!(process::is_alive(bystander.id()));
}

#[test]
fn a_leak_does_not_hide_the_failure_of_the_test() {
    let mut leaked = None;
    let error = catch_unwind(AssertUnwindSafe(|| {
        let mut world = TestWorld::new();
        world.set_shutdown_timeout(Duration::from_millis(50));
        leaked = Some(ChildGuard::start(world.command("sleep").arg("1002")));
        panic!("{}", String::from("the real reason"));
    }))
    .expect_err("it failed");
    assert_eq!(message(error), "the real reason");
    let leaked = leaked.expect("started");
    wait_until("the leaked process's end", SOON, || !process::is_alive(leaked.id()));
}

#[test]
fn dropping_a_world_terminates_its_daemon() {
    let world = TestWorld::new();
    let done = std::env::temp_dir().join(format!("{}-done", world.id()));
    let script = world.shell_copy("agtmuxd");
    let ready = world.home().join("ready");
    let body = format!(
        "trap 'echo bye > {}; exit' TERM; : > {}; while :; do sleep 0.01; done",
        done.display(),
        ready.display()
    );
    let mut daemon = ChildGuard::start(world.command(&script).args(["-c", &body]));
    wait_until("the daemon", SOON, || ready.exists());
    assert_eq!(world.daemons(), [daemon.id()]);
    process::signal(daemon.id(), rustix::process::Signal::STOP);
    drop(world);
    assert!(daemon.wait().is_ok_and(|status| status.success()));
    assert_eq!(fs::read_to_string(&done).expect("the daemon handled SIGTERM"), "bye\n");
    fs::remove_file(&done).expect("the file is removable");
}

/// A world whose binary exits with this code for `replay --db FILE`.
fn world_with_replay(outer: &TestWorld, exit_code: i32) -> TestWorld {
    let script =
        format!("#!/bin/sh\n[ \"$1 $2\" = 'replay --db' ] && echo 'input 7 differs' >&2 && exit {exit_code}\n");
    fs::write(outer.home().join("draft"), script).expect("writable");
    // A child that another thread starts may inherit the draft while it is open for writing, and such a file cannot be
    // executed. cp creates a file that this process never opens.
    let made = outer.command("sh").args(["-c", "cp home/draft home/agtmux && chmod 755 home/agtmux"]).status();
    assert!(made.is_ok_and(|status| status.success()));
    let world = TestWorld::with_agtmux(outer.home().join("agtmux"));
    fs::write(world.state_dir().join("state.db"), "x").expect("writable");
    world
}

#[test]
fn a_replay_difference_fails_the_test() {
    let outer = TestWorld::new();
    let world = world_with_replay(&outer, 1);
    let error = catch_unwind(AssertUnwindSafe(|| drop(world))).expect_err("a difference fails the test");
    assert!(message(error).contains("input 7 differs"));
    drop(world_with_replay(&outer, 0));
    drop(world_with_replay(&outer, 2));
}

#[test]
fn fake_agents_have_the_name_of_the_agent() {
    let world = TestWorld::new();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    let pid = server.panes()[0].pid;
    wait_for("the fake agent", SOON, || {
        let exe = fs::read_link(format!("/proc/{pid}/exe"));
        if exe.as_ref().is_ok_and(|exe| *exe == world.home().join("claude")) { Ok(()) } else { Err(exe) }
    });
    let command = String::from_utf8_lossy(&server.panes()[0].command).into_owned();
    assert_eq!(command, "claude");
}
