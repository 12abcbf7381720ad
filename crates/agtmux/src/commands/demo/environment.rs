//! The private tmux server and daemon of the demo, in a temporary directory.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agtmux_api::config::Config;
use agtmux_api::paths::Paths;
use tempfile::TempDir;

use super::scripts::{self, PANES};
use crate::error::{CliError, CliResult};

const SESSION: &str = "demo";
const READY_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const REMOVED_VARIABLES: [&str; 3] = ["TMUX", "TMUX_PANE", "AGTMUX_NO_AUTOSTART"];

#[derive(Debug)]
pub(super) struct DemoEnvironment {
    dir: TempDir,
    exe: PathBuf,
    tmux: PathBuf,
    server: String,
}

impl DemoEnvironment {
    pub(super) fn build() -> CliResult<Self> {
        let fault = |error| CliError::io("set up the demo", error);
        let config = Config::load(&Paths::from_env()?.config)?;
        let environment = Self {
            dir: tempfile::Builder::new().prefix("agtmux-demo-").tempdir().map_err(fault)?,
            exe: std::env::current_exe().map_err(fault)?,
            tmux: config.tmux.program,
            server: format!("agtmux-demo-{}", std::process::id()),
        };
        for sub in ["bin", "tmux", "state"] {
            std::fs::create_dir(environment.dir.path().join(sub)).map_err(fault)?;
        }
        scripts::write(&environment.dir.path().join("bin"), &environment.exe, std::process::id()).map_err(fault)?;
        environment.write_config().map_err(fault)?;
        environment.start_daemon()?;
        environment.start_panes()?;
        environment.wait_for_states()?;
        Ok(environment)
    }

    /// Writes the configuration of the demo. Takes only the tmux program from the user's configuration, because the
    /// demo must not use the user's sockets.
    fn write_config(&self) -> std::io::Result<()> {
        let mut config = toml_edit::DocumentMut::new();
        config["tmux"] = toml_edit::table();
        config["tmux"]["program"] = toml_edit::value(self.tmux.to_string_lossy().into_owned());
        std::fs::write(self.dir.path().join("config.toml"), config.to_string())
    }

    pub(super) fn agtmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.exe);
        command.args(args);
        self.set_environment(&mut command);
        command
    }

    fn set_environment(&self, command: &mut Command) {
        let below = |name: &str| self.dir.path().join(name);
        command
            .env("TMUX_TMPDIR", below("tmux"))
            .env("AGTMUX_CONFIG", below("config.toml"))
            .env("AGTMUX_STATE_DIR", below("state"))
            .env("AGTMUX_SOCKET", below("state/agtmuxd.sock"));
        for name in REMOVED_VARIABLES {
            command.env_remove(name);
        }
    }

    /// Runs tmux on the demo's server.
    fn tmux(&self, add_arguments: impl FnOnce(&mut Command) -> &mut Command) -> CliResult {
        let mut command = Command::new(&self.tmux);
        add_arguments(command.args(["-L", &self.server, "-f", "/dev/null"])).stdin(Stdio::null());
        self.set_environment(&mut command);
        let output = command.output().map_err(|error| tmux_error(&self.tmux, &error))?;
        if output.status.success() {
            return Ok(());
        }
        Err(CliError::failed("tmux could not start the demo").because(String::from_utf8_lossy(&output.stderr).trim()))
    }

    fn start_panes(&self) -> CliResult {
        // High enough for every pane to show its screen after the splits.
        let size = ["-x", "120", "-y", "160"];
        let mut last_window = None;
        for pane in PANES {
            let args: Vec<&str> = match last_window.replace(pane.window) {
                None => [&["new-session", "-d", "-s", SESSION, "-n", pane.window], &size[..]].concat(),
                Some(window) if window == pane.window => vec!["split-window", "-d", "-t", "=demo:"],
                Some(_) => vec!["new-window", "-t", "=demo:", "-n", pane.window],
            };
            let program = self.dir.path().join("bin").join(pane.script.name);
            self.tmux(|tmux| tmux.args(args).arg("--").arg(program).arg(pane.first.to_string()))?;
        }
        // One pane without an agent, for `--all`.
        self.tmux(|tmux| tmux.args(["split-window", "-d", "-t", "=demo:", "--", "/bin/sh"]))
    }

    /// Waits until the daemon has detected all states, so that the first table that the demo shows is complete.
    fn wait_for_states(&self) -> CliResult {
        let mut wanted: Vec<&str> = PANES.iter().map(|pane| pane.script.scenes[pane.first].state.as_str()).collect();
        wanted.sort_unstable();
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let listed = self.agtmux(&["list", "panes", "--json"]).stderr(Stdio::null()).output();
            let listed = listed.map_err(|error| CliError::io("list the agents of the demo", error))?.stdout;
            let listing: serde_json::Value = serde_json::from_slice(&listed).unwrap_or_default();
            let items = listing["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut shown: Vec<&str> = items.iter().filter_map(|item| item["state"].as_str()).collect();
            shown.sort_unstable();
            if shown == wanted || Instant::now() >= deadline {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn start_daemon(&self) -> CliResult {
        let output = self.agtmux(&["daemon", "start"]).output().map_err(|error| CliError::io("start agtmux", error))?;
        if output.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(CliError::failed("the demo's daemon did not start").because(stderr.trim()))
    }
}

impl Drop for DemoEnvironment {
    /// Runs every step of the cleanup, even if an earlier step fails.
    fn drop(&mut self) {
        let _ = self.agtmux(&["daemon", "stop"]).output();
        let _ = self.tmux(|tmux| tmux.arg("kill-server"));
    }
}

fn tmux_error(program: &std::path::Path, error: &std::io::Error) -> CliError {
    let message = CliError::failed(format!("cannot run '{}': {error}", program.display()));
    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
    if is_missing { message.hint("apt install tmux").hint("brew install tmux") } else { message }
}
