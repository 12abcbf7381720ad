//! Sets up a world with one tmux server of a given size.

use std::process::Command;

use agtmux_testkit::agtmux::configure;
use agtmux_testkit::{ChildGuard, TestPane, TestTmuxServer, TestWorld, process, wait_for, wait_until};

use super::writers::BUSY_PANES;
use crate::harness::world::{self, STARTUP_TIMEOUT, add_panes, list_panes};

/// The number of shells to type into. They run in the first panes.
pub(crate) const SHELLS: usize = 2;
/// The number of fake agents. They run in the panes after the shells.
const AGENTS: usize = 3;

/// The tmux format with the same information as `agtmux list`.
pub(crate) const COMPARABLE_FORMAT: &str = "#{session_id} #{session_name} #{session_attached} #{window_id} \
    #{window_index} #{window_name} #{window_active} #{window_activity} #{pane_id} #{pane_index} #{pane_active} \
    #{pane_pid} #{pane_tty} #{pane_dead} #{pane_dead_status} #{pane_width} #{pane_height} #{pane_in_mode} #{pid} \
    #{pane_current_command} #{pane_current_path} #{pane_title}";

// Fields are dropped in order: the world stops the daemon, then the daemon is reaped.
pub(crate) struct SpineBench {
    pub(crate) size: usize,
    pub(crate) world: TestWorld,
    pub(crate) tmux: TestTmuxServer,
    pub(crate) panes: Vec<TestPane>,
    daemon: Option<ChildGuard>,
}

impl SpineBench {
    pub(crate) fn build(size: usize) -> Self {
        eprintln!("{size} panes: building");
        let world = world::world();
        let tmux = world.tmux("bench");
        let agent = world.fake_agent_command("claude");
        let program = |n: usize| match n {
            n if n < SHELLS => "exec env PS1='$ ' sh -i".to_owned(),
            n if n < SHELLS + AGENTS => agent.clone(),
            _ => "exec sleep 1000000".to_owned(),
        };
        add_panes(&tmux, &(0..size).map(program).collect::<Vec<_>>());
        let mut panes = tmux.panes();
        // Sort by creation, not by position in the window.
        panes.sort_by_key(|pane| pane.pane_id[1..].parse::<u32>().unwrap_or_default());
        assert_eq!(panes.len(), size, "every pane was created");
        Self { size, world, tmux, panes, daemon: None }
    }

    pub(crate) fn start_daemon(&mut self) {
        self.daemon = Some(world::start_daemon(&self.world));
        wait_for("the daemon to list every pane and agent", STARTUP_TIMEOUT, || {
            let items = list_panes(&self.world, &["--all"]);
            let agents = items.iter().filter(|item| !item["agent_type"].is_null()).count();
            let listed = (items.len(), agents);
            if listed == (self.size, AGENTS) { Ok(()) } else { Err(format!("{listed:?} panes and agents")) }
        });
    }

    /// Restarts the daemon with this configuration.
    pub(crate) fn restart_daemon(&mut self, config: &str) {
        if let Some(mut daemon) = self.daemon.take() {
            process::signal(daemon.id(), rustix::process::Signal::TERM);
            wait_until("the daemon's end", STARTUP_TIMEOUT, || matches!(daemon.try_wait(), Ok(Some(_))));
        }
        configure(&self.world, config);
        self.start_daemon();
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().expect("the daemon was started").id()
    }

    /// `agtmux list panes --json` with these arguments.
    pub(crate) fn list(&self, args: &[&str]) -> Command {
        let mut command = self.world.agtmux();
        command.args(["list", "panes", "--json"]).args(args);
        command
    }

    pub(crate) fn tmux_list(&self) -> Command {
        let mut command = self.tmux.command();
        command.args(["list-panes", "-a", "-F", COMPARABLE_FORMAT]);
        command
    }

    /// The panes that run neither a shell nor an agent.
    pub(crate) fn spare_panes(&self) -> &[TestPane] {
        &self.panes[SHELLS + AGENTS..]
    }

    pub(crate) fn busy_panes(&self) -> &[TestPane] {
        let spare = self.spare_panes();
        &spare[..BUSY_PANES.min(spare.len())]
    }
}
