//! Runs the agtmux executable under test in an isolated world.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::Value;

use crate::{TestTmuxServer, TestWorld, process, wait_for};

/// How long most waits may take. This is long enough for a machine that is busy with other tests.
pub const SOON: Duration = Duration::from_secs(20);

/// The output and exit code of a command.
#[derive(Debug, Clone)]
pub struct CommandResult {
    /// None if a signal ended the command.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl CommandResult {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {}", self.text()))
    }
}

/// Whether the environment variable `AGTMUX_SOAK` asks for the long variants of tests.
pub fn soak() -> bool {
    std::env::var_os("AGTMUX_SOAK").is_some_and(|value| !value.is_empty())
}

/// The executable under test. Cargo builds it before the integration tests and benchmarks of the same crate. Cargo puts
/// the test programs into the directory `deps`, and the executable into the parent directory of `deps`.
pub fn agtmux_program() -> PathBuf {
    let test_program = std::env::current_exe().expect("the path of the test program is known");
    test_program.ancestors().nth(2).expect("test programs are in `deps`").join("agtmux")
}

/// A test world that uses the executable under test.
pub fn world() -> TestWorld {
    TestWorld::with_agtmux(agtmux_program())
}

/// The commands that a help text lists, but not `help` itself.
pub fn listed_commands(help: &str) -> Vec<String> {
    let after_usage = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let sections = after_usage.take_while(|line| !matches!(*line, "Options:" | "Arguments:"));
    let rows = sections.filter_map(|line| line.strip_prefix("  ").filter(|row| !row.starts_with(' ')));
    rows.filter_map(|row| row.split(' ').next()).filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Runs a command and returns its output. Panics if the command does not end within `SOON`.
#[track_caller]
pub fn run(command: &mut Command) -> CommandResult {
    let output = output_within(command, SOON).unwrap_or_else(|| panic!("{command:?} did not end within {SOON:?}"));
    CommandResult {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn output_within(command: &mut Command, deadline: Duration) -> Option<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let pid = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver.recv_timeout(deadline);
    if output.is_err() {
        process::signal(pid, Signal::KILL);
    }
    output.ok().and_then(Result::ok)
}

#[track_caller]
pub fn agtmux(world: &TestWorld, args: &[&str]) -> CommandResult {
    run(world.agtmux().args(args))
}

/// The output of `agtmux list panes --all --json`.
#[track_caller]
pub fn list(world: &TestWorld) -> Value {
    agtmux(world, &["list", "panes", "--all", "--json"]).json()
}

#[track_caller]
pub fn items(listing: &Value) -> &Vec<Value> {
    listing["items"].as_array().unwrap_or_else(|| panic!("no items in {listing}"))
}

/// The error code and the server of each target error in a listing.
pub fn errors(listing: &Value) -> Vec<(String, Option<String>)> {
    let errors = listing["target_errors"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    errors.iter().map(|e| (text(&e["code"]).unwrap_or_default(), text(&e["server"]))).collect()
}

/// The pane ids of one server, as agtmux lists them.
pub fn pane_ids(listing: &Value, server: &str) -> Vec<String> {
    let of_server = items(listing).iter().filter(|item| item["identity"]["server"] == server);
    let mut ids: Vec<String> =
        of_server.map(|item| item["identity"]["pane_id"].as_str().unwrap_or_default().to_owned()).collect();
    ids.sort();
    ids
}

/// The pane ids of a server, as tmux lists them.
#[track_caller]
pub fn tmux_pane_ids(server: &TestTmuxServer) -> Vec<String> {
    let mut ids: Vec<String> = server.panes().into_iter().map(|pane| pane.pane_id).collect();
    ids.sort();
    ids
}

/// Waits until agtmux lists exactly these panes of this server.
#[track_caller]
pub fn wait_for_panes(world: &TestWorld, server: &str, ids: &[String]) -> Value {
    wait_for(&format!("exactly the panes {ids:?} of {server}"), SOON, || {
        let listing = list(world);
        if pane_ids(&listing, server) == ids { Ok(listing) } else { Err(listing.to_string()) }
    })
}

#[track_caller]
pub fn health(world: &TestWorld) -> Value {
    agtmux(world, &["daemon", "status", "--json"]).json()
}

/// Starts the daemon and waits until it accepts requests. Returns its pid.
#[track_caller]
pub fn start(world: &TestWorld) -> u32 {
    let done = agtmux(world, &["daemon", "start"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    pid(world)
}

#[track_caller]
pub fn pid(world: &TestWorld) -> u32 {
    let pid = health(world)["pid"].as_u64().expect("health has a pid");
    u32::try_from(pid).expect("pids are small")
}

#[track_caller]
pub fn stop(world: &TestWorld) {
    let done = agtmux(world, &["daemon", "stop"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}

/// Kills a process with SIGKILL and waits until it has ended.
#[track_caller]
pub fn kill(pid: u32) {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    let process = pidfd_open(raw, PidfdFlags::empty()).expect("the process exists");
    assert!(process::signal(pid, Signal::KILL), "process {pid} has already ended");
    // The main thread may end before other threads, which still have files open. The pidfd is readable when all threads
    // have ended.
    let mut end = [PollFd::new(&process, PollFlags::IN)];
    let timeout = Timespec { tv_sec: SOON.as_secs().cast_signed(), tv_nsec: 0 };
    assert_eq!(poll(&mut end, Some(&timeout)), Ok(1), "process {pid} did not end after SIGKILL");
}

/// Waits until the daemon has installed its hooks in this server.
#[track_caller]
pub fn wait_for_hooks(world: &TestWorld, server: &str) {
    wait_for(&format!("our hooks in {server}"), SOON, || {
        // The daemon may still be starting.
        let done = agtmux(world, &["daemon", "status", "--json"]);
        let health: Value = serde_json::from_slice(&done.stdout).map_err(|_| done.stderr)?;
        let servers = health["servers"].as_array().cloned().unwrap_or_default();
        let hooked = servers.iter().any(|s| s["server"] == server && s["hooks"] == true);
        if hooked { Ok(()) } else { Err(health.to_string()) }
    });
}

/// Writes the configuration file of a world.
pub fn configure(world: &TestWorld, text: &str) {
    let file = world.config_file();
    std::fs::create_dir_all(file.parent().expect("a file has a directory")).expect("the world is writable");
    std::fs::write(file, text).expect("the world is writable");
}

/// Writes an executable script.
pub fn script(world: &TestWorld, name: &str, body: &str) -> std::path::PathBuf {
    let (path, draft) = (world.home().join(name), world.home().join(format!("{name}.draft")));
    std::fs::write(&draft, format!("#!/bin/sh\n{body}\n")).expect("the world is writable");
    // Another thread may fork while this process has the draft open for writing. The child inherits the open file, and
    // Linux does not execute a file that is open for writing. The copy by cp is never open in this process.
    let copied = run(world.command("cp").arg(&draft).arg(&path));
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    let executable = run(world.command("chmod").arg("755").arg(&path));
    assert_eq!(executable.code, Some(0), "{}", executable.stderr);
    path
}
