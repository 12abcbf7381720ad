//! Sets up a world with one tmux server full of fake agents, and a daemon that lists all of them.

use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::Value;

use crate::harness::world::{self, STARTUP_TIMEOUT, add_panes, list_panes};

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
        let world = world::world();
        add_panes(&world.tmux("bench"), &vec![world.fake_agent_command("claude"); size]);
        let daemon = world::start_daemon(&world);
        let runtimes = wait_for("the daemon to know every agent", STARTUP_TIMEOUT, || listed_runtimes(&world, size));
        Self { world, runtimes, daemon }
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }
}

fn listed_runtimes(world: &TestWorld, size: usize) -> Result<Vec<LoadRuntime>, String> {
    let runtime = |item: &Value| {
        Some(LoadRuntime { id: item["runtime_id"].as_str()?.to_owned(), version: item["state_version"].as_u64()? })
    };
    let runtimes: Vec<LoadRuntime> = list_panes(world, &[]).iter().filter_map(runtime).collect();
    if runtimes.len() == size { Ok(runtimes) } else { Err(format!("{} agents", runtimes.len())) }
}
