//! No free file descriptors, threads or processes: an outage, never the end of an agent.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, agtmux_program, pid, run, soak, world};
use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, process, skip_outside_soak, wait_for, wait_until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use super::OpenConnection;
use crate::helper_process::is_root;

/// The limit of open files in these tests.
const FILES: u64 = 64;

fn set_limit(pid: u32, resource: Resource, current: u64, maximum: u64) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    prlimit(Some(pid), resource, Rlimit { current: Some(current), maximum: Some(maximum) }).expect("allowed");
}

fn server_with_agents(world: &TestWorld, count: usize) -> TestTmuxServer {
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    for _ in 1..count {
        server.run(&["new-window", "-d", "-t", "=work:", &world.fake_agent_command("claude")]);
    }
    server
}

/// Starts a daemon that may open only a few files. Returns its pid.
fn start_with_few_files(world: &TestWorld) -> u32 {
    let script = format!("ulimit -n {FILES} && exec {} daemon start", agtmux_program().display());
    let done = run(world.command("sh").args(["-c", &script]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    pid(world)
}

#[test]
fn live_agents_keep_their_ids_with_64_files_and_many_clients() {
    let world = world();
    let count = if soak() { 40 } else { 12 };
    let server = server_with_agents(&world, count);
    start_with_few_files(&world);
    let mut connection = OpenConnection::new(&world.socket());
    let known = wait_for("all agents", SOON, || {
        let known = connection.runtimes();
        if known.len() == count { Ok(known) } else { Err(known.len()) }
    });
    // Clients that stay connected take all descriptors that they may take. Further ones are refused.
    let mut clients: Vec<OpenConnection> = Vec::new();
    let refusal = wait_for("a refused client", SOON, || {
        let mut client = OpenConnection::new(&world.socket());
        let answer = client.send("GET", "/v1/health", "")?;
        let refusal = (answer.status == 503).then(|| answer.json());
        clients.push(client);
        refusal
    });
    assert_eq!(refusal["error"]["code"].as_str().or(refusal["code"].as_str()), Some("E_BUSY"), "{refusal}");
    for round in 0..if soak() { 200 } else { 5 } {
        // The daemon lists the server, reads the process table and captures the screen of the new pane.
        server.run(&["new-window", "-d", "-t", "=work:", &world.fake_agent_command("claude")]);
        let now = wait_for(&format!("the new agent of round {round}"), SOON, || {
            let now = connection.runtimes();
            let lost: Vec<&String> = known.iter().filter(|id| !now.contains(id)).collect();
            assert!(lost.is_empty(), "round {round}: agents vanished: {lost:?}");
            if now.len() > count { Ok(now) } else { Err(now.len()) }
        });
        assert_eq!(now.len(), count + 1);
        let window = server.run(&["list-windows", "-t", "=work:", "-F", "#{window_id}"]);
        let last = window.lines().last().expect("a window").to_owned();
        server.run(&["kill-window", "-t", &last]);
        wait_for("the end of the new agent", SOON, || {
            let now = connection.runtimes();
            if now == known { Ok(()) } else { Err(now.len()) }
        });
    }
    assert_eq!(connection.health()["status"], "ok");
    drop(clients);
    wait_until("new clients", SOON, || {
        OpenConnection::new(&world.socket()).send("GET", "/v1/health", "").is_some_and(|answer| answer.status == 200)
    });
}

#[test]
fn an_agent_does_not_end_while_no_file_can_be_opened() {
    let world = world();
    let server = server_with_agents(&world, 3);
    let daemon = start_with_few_files(&world);
    let mut connection = OpenConnection::new(&world.socket());
    let known = wait_for("all agents", SOON, || {
        let known = connection.runtimes();
        if known.len() == 3 { Ok(known) } else { Err(known.len()) }
    });
    for _ in 0..if soak() { 30 } else { 2 } {
        // From now on the daemon can open nothing at all.
        set_limit(daemon, Resource::Nofile, 3, FILES);
        wait_for("a health report that names the process table", SOON, || {
            // Output makes the daemon look at the processes of the pane.
            server.run(&["send-keys", "-t", "=work:", "x", "Enter"]);
            let health = connection.health();
            let named = health["components"]["process_table"]["status"] == "degraded";
            if named && health["status"] == "degraded" { Ok(()) } else { Err(health.to_string()) }
        });
        assert_eq!(connection.runtimes(), known, "an agent ended because its process could not be read");
        set_limit(daemon, Resource::Nofile, FILES, FILES);
        wait_for("a healthy daemon", SOON, || {
            let health = connection.health();
            if health["status"] == "ok" { Ok(()) } else { Err(health.to_string()) }
        });
        assert_eq!(connection.runtimes(), known);
    }
}

/// A user that has no other processes, so that the limit of processes is exact.
const OTHER_USER: u32 = 54_321;

#[test]
fn a_spooled_event_is_delivered_while_no_thread_can_be_started() {
    // An idle thread used to end after ten seconds, and without one the spool reader ended.
    if skip_outside_soak() || !is_root() {
        return;
    }
    let world = world();
    let (dir, program) = (world.dir().join("other"), world.dir().join("agtmux"));
    fs::create_dir(&dir).expect("created");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("ours");
    chown(&dir, Some(OTHER_USER), Some(OTHER_USER)).expect("root may");
    fs::set_permissions(world.dir(), fs::Permissions::from_mode(0o711)).expect("ours");
    assert_eq!(run(world.command("cp").arg(agtmux_program()).arg(&program)).code, Some(0));
    let mut daemon = world.command("setpriv");
    daemon.arg(format!("--reuid={OTHER_USER}")).arg(format!("--regid={OTHER_USER}")).arg("--clear-groups");
    daemon.arg(&program).args(["daemon", "run"]);
    daemon.env("HOME", &dir).env("AGTMUX_STATE_DIR", dir.join("state")).env("AGTMUX_SOCKET", dir.join("s.sock"));
    daemon.env("TMUX_TMPDIR", &dir);
    let daemon = ChildGuard::start(&mut daemon);
    wait_until("the daemon", SOON, || dir.join("s.sock").exists());
    let began = Instant::now();
    wait_until("the time after which idle threads used to end", SOON, || began.elapsed() > Duration::from_secs(12));
    set_limit(daemon.id(), Resource::Nproc, 0, 0);
    for round in 0..20 {
        let event =
            json!({"source": "hook", "agent_type": "claude", "pane": "%0", "event_type": "Stop", "payload": {}});
        let (draft, spooled) = (dir.join("draft"), dir.join(format!("state/spool/{round:020}-event.json")));
        fs::write(&draft, event.to_string()).expect("written");
        chown(&draft, Some(OTHER_USER), Some(OTHER_USER)).expect("root may");
        fs::rename(draft, &spooled).expect("renamed");
        wait_until("the event to be delivered", SOON, || !spooled.exists());
    }
    assert!(process::is_alive(daemon.id()));
}
