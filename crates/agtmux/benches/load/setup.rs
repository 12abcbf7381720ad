//! Sets up a world with one tmux server full of fake agents, and a daemon that lists all of them.

use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::Value;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
const PANES_PER_WINDOW: usize = 10;

/// An agent and its current state version.
#[derive(Debug, Clone)]
pub(crate) struct LoadRuntime {
    pub(crate) id: String,
    pub(crate) version: u64,
}

// Fields are dropped in order: the world stops the daemon, then the daemon is reaped.
pub(crate) struct LoadBench {
    pub(crate) world: TestWorld,
    pub(crate) runtimes: Vec<LoadRuntime>,
    daemon: ChildGuard,
}

impl LoadBench {
    pub(crate) fn build(size: usize) -> Self {
        eprintln!("{size} agents: building");
        let binary = std::env::var_os("AGTMUX_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_agtmux").into());
        let mut world = TestWorld::with_agtmux(binary);
        // Hundreds of processes need more time to end.
        world.set_shutdown_timeout(STARTUP_TIMEOUT);
        add_windows(&world, size);
        let mut command = world.agtmux();
        command.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = ChildGuard::start(&mut command);
        let runtimes = wait_for("the daemon to know every agent", STARTUP_TIMEOUT, || listed_runtimes(&world, size));
        Self { world, runtimes, daemon }
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }
}

fn add_windows(world: &TestWorld, size: usize) {
    let (tmux, agent) = (world.tmux("bench"), world.fake_agent_command("claude"));
    for window in 0..size.div_ceil(PANES_PER_WINDOW) {
        let name = format!("w{window}");
        let mut words: Vec<&str> = match window {
            0 => ["new-session", "-d", "-x", "200", "-y", "200", "-s", "s", "-n", &name].into(),
            _ => ["new-window", "-d", "-t", "=s:", "-n", &name].into(),
        };
        words.push(&agent);
        let beside = format!("=s:{name}.0");
        for _ in 1..PANES_PER_WINDOW.min(size - window * PANES_PER_WINDOW) {
            words.extend([";", "split-window", "-d", "-l", "10", "-t", &beside, &agent]);
        }
        tmux.run(&words);
    }
}

fn listed_runtimes(world: &TestWorld, size: usize) -> Result<Vec<LoadRuntime>, String> {
    let mut list = world.agtmux();
    let answer = list.args(["list", "panes", "--json"]).env("AGTMUX_NO_AUTOSTART", "1").output();
    let listing: Value =
        serde_json::from_slice(&answer.map_err(|e| e.to_string())?.stdout).map_err(|e| e.to_string())?;
    let items = listing["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let runtime = |item: &Value| {
        Some(LoadRuntime { id: item["runtime_id"].as_str()?.to_owned(), version: item["state_version"].as_u64()? })
    };
    let runtimes: Vec<LoadRuntime> = items.iter().filter_map(runtime).collect();
    if runtimes.len() == size { Ok(runtimes) } else { Err(format!("{} agents", runtimes.len())) }
}
