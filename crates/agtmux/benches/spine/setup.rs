//! Sets up a world with one tmux server of a given size.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use agtmux_testkit::{ChildGuard, TestPane, TestTmuxServer, TestWorld, process, wait_for, wait_until};
use serde_json::Value;

use crate::writers::BUSY_PANES;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
const PANES_PER_WINDOW: usize = 10;
const PANES_PER_SESSION: usize = 100;
/// The first panes: two shells to type into, then three fake agents.
pub(crate) const SHELLS: usize = 2;
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
        let mut world = TestWorld::with_agtmux(binary());
        // A thousand processes need more time to end.
        world.set_shutdown_timeout(STARTUP_TIMEOUT);
        let tmux = world.tmux("bench");
        let agent = world.fake_agent_command("claude");
        let program = |n: usize| match n {
            n if n < SHELLS => "exec env PS1='$ ' sh -i".to_owned(),
            n if n < SHELLS + AGENTS => agent.clone(),
            _ => "exec sleep 1000000".to_owned(),
        };
        for first in (0..size).step_by(PANES_PER_WINDOW) {
            add_window(&tmux, first, (first..size.min(first + PANES_PER_WINDOW)).map(program).collect());
        }
        let mut panes = tmux.panes();
        // Sort by creation, not by position in the window.
        panes.sort_by_key(|pane| pane.pane_id[1..].parse::<u32>().unwrap_or_default());
        assert_eq!(panes.len(), size, "every pane was created");
        Self { size, world, tmux, panes, daemon: None }
    }

    pub(crate) fn start_daemon(&mut self) {
        let mut command = self.world.agtmux();
        command.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemon = Some(ChildGuard::start(&mut command));
        wait_for("the daemon to list every pane and agent", STARTUP_TIMEOUT, || self.fully_listed());
    }

    fn fully_listed(&self) -> Result<(), String> {
        let answer = self.list(&["--all"]).env("AGTMUX_NO_AUTOSTART", "1").output().map_err(|e| e.to_string())?;
        let listing: Value = serde_json::from_slice(&answer.stdout).map_err(|e| e.to_string())?;
        let items = listing["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let agents = items.iter().filter(|item| !item["agent_type"].is_null()).count();
        let listed = (items.len(), agents);
        if listed == (self.size, AGENTS) { Ok(()) } else { Err(format!("{listed:?} panes and agents")) }
    }

    /// Restarts the daemon with this configuration.
    pub(crate) fn restart_daemon(&mut self, config: &str) {
        if let Some(mut daemon) = self.daemon.take() {
            process::signal(daemon.id(), rustix::process::Signal::TERM);
            wait_until("the daemon's end", STARTUP_TIMEOUT, || matches!(daemon.try_wait(), Ok(Some(_))));
        }
        let file = self.world.config_file();
        let written = fs::create_dir_all(file.parent().expect("the file has a parent directory"))
            .and_then(|()| fs::write(&file, config));
        written.expect("the directory is writable");
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

    /// The panes without a shell or an agent.
    pub(crate) fn spare_panes(&self) -> &[TestPane] {
        &self.panes[SHELLS + AGENTS..]
    }

    pub(crate) fn busy_panes(&self) -> &[TestPane] {
        let spare = self.spare_panes();
        &spare[..BUSY_PANES.min(spare.len())]
    }
}

/// The binary to measure. `AGTMUX_BENCH_BINARY` selects another build for comparison.
fn binary() -> PathBuf {
    std::env::var_os("AGTMUX_BENCH_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_agtmux").into(), PathBuf::from)
}

fn add_window(tmux: &TestTmuxServer, first: usize, programs: Vec<String>) {
    let name = format!("w{}", first / PANES_PER_WINDOW);
    let session = format!("s{}", first / PANES_PER_SESSION);
    let mut words: Vec<String> = if first.is_multiple_of(PANES_PER_SESSION) {
        ["new-session", "-d", "-x", "200", "-y", "200", "-s", &session, "-n", &name].map(String::from).into()
    } else {
        ["new-window", "-d", "-t", &format!("={session}:"), "-n", &name].map(String::from).into()
    };
    for (n, program) in programs.into_iter().enumerate() {
        if n > 0 {
            let target = format!("={session}:{name}.0");
            words.extend([";", "split-window", "-d", "-l", "10", "-t", &target].map(String::from));
        }
        words.push(program);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    tmux.run(&words);
}
