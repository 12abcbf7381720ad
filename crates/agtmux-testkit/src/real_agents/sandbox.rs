//! An isolated environment for one real agent. It has its own tmux server, daemon, watch log and mock model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use super::hooks;
use super::options::PaneSize;
use super::poll_until;
use super::screen_pattern::AgentScreen;
use super::states::EvidenceMode;
use super::watch::WatchLog;
use super::{ASKED_TOOL, AgentWorkspace, ConformanceAgent, FREE_TOOL, LaunchMode};
use crate::agtmux::agtmux_program;
use crate::model::MockModel;
use crate::{TestTmuxServer, TestWorld, process};

const SOON: Duration = Duration::from_secs(20);

/// A proxy address at which no program listens. With it, connections to other machines fail at once.
const CLOSED_PROXY: &str = "http://127.0.0.1:9";

/// The script of both tools that agents run in tests. It creates a file, sleeps and prints a line.
const TOOL: &str = "#!/bin/sh\ntouch \"${0##*/}.began\"\nsleep \"$1\"\necho tool ended\n";

pub struct AgentSandbox {
    pub watch: WatchLog,
    pub model: MockModel,
    pub server: TestTmuxServer,
    pub pane: String,
    pub workspace: AgentWorkspace,
    pub hook_payload_dir: Option<PathBuf>,
    shell: u32,
    world: TestWorld,
}

/// The path of the agtmux binary to test. The environment variable AGTMUX_CONFORMANCE_AGTMUX can set it. The default is
/// the binary of this build.
fn agtmux_binary() -> PathBuf {
    let named = std::env::var_os("AGTMUX_CONFORMANCE_AGTMUX").filter(|path| !path.is_empty());
    named.map_or_else(agtmux_program, PathBuf::from)
}

pub struct SandboxOptions<'a> {
    pub agent: &'a dyn ConformanceAgent,
    pub program_dirs: &'a [PathBuf],
    pub mode: EvidenceMode,
    pub trusted: bool,
    pub size: PaneSize,
    /// Whether to save the hook payloads that the agent sends.
    pub save_hook_payloads: bool,
}

impl AgentSandbox {
    pub fn open(options: &SandboxOptions<'_>) -> Self {
        Self::open_with(options, "")
    }

    /// Opens a sandbox with these agtmux settings, written as dotted keys.
    pub fn open_with(options: &SandboxOptions<'_>, settings: &str) -> Self {
        let world = TestWorld::with_agtmux(agtmux_binary());
        write_settings(&world, settings);
        let model = MockModel::new();
        let project = world.dir().join("proj");
        fs::create_dir(&project).expect("the world is writable");
        for tool in [FREE_TOOL, ASKED_TOOL] {
            write_program(&world, &project.join(tool), TOOL);
        }
        let hook_payload_dir = (options.save_hook_payloads && options.mode == EvidenceMode::Hooks)
            .then(|| world.dir().join("hook-payloads"));
        let workspace = AgentWorkspace {
            home: world.home(),
            project,
            model_url: model.url(),
            trusted: options.trusted,
            hook_payload_saver: hook_payload_dir.as_ref().map(|dir| hooks::write_payload_saver(&world, dir)),
        };
        options.agent.prepare(&workspace);
        if options.mode == EvidenceMode::Hooks {
            hooks::install_agtmux_hooks(&world, options.agent);
        }
        let server = world.tmux("default");
        let pane = open_shell(&server, options, &workspace);
        let shell = server.panes().iter().find(|row| row.pane_id == pane).expect("the pane was just created").pid;
        start_daemon(&world);
        let watch = WatchLog::start(&world, &pane);
        poll_until(SOON, || (!watch.is_empty()).then_some(())).expect("the watch log reports the pane");
        Self { watch, model, server, pane, workspace, hook_payload_dir, shell, world }
    }

    pub fn world(&self) -> &TestWorld {
        &self.world
    }

    /// The current screen and title of the pane, and the command that runs in it.
    pub fn capture(&self) -> AgentScreen {
        let format = "\u{1}#{pane_title}\u{1}#{pane_current_command}";
        let args = ["capture-pane", "-p", "-t", &self.pane, ";", "display-message", "-p", "-t", &self.pane, format];
        let output = self.server.try_run(&args).unwrap_or_default();
        let mut parts = output.split('\u{1}');
        let mut next = || parts.next().unwrap_or_default().to_owned();
        AgentScreen { screen: next(), title: next(), command: next() }
    }

    /// The screen of the pane. Colours are included as escape sequences.
    pub fn capture_with_colours(&self) -> Vec<u8> {
        self.server.try_run_bytes(&["capture-pane", "-p", "-e", "-t", &self.pane]).unwrap_or_default()
    }

    /// Types the command that starts the agent into the shell of the pane.
    pub fn launch(&self, agent: &dyn ConformanceAgent, how: &LaunchMode) {
        self.type_text(&agent.launch(how));
        self.press("Enter");
    }

    /// Pastes the text into the pane as a bracketed paste.
    pub fn paste(&self, text: &str) {
        self.server.run(&["set-buffer", "-b", "typed", text]);
        self.server.run(&["paste-buffer", "-p", "-d", "-b", "typed", "-t", &self.pane]);
    }

    pub fn type_text(&self, text: &str) {
        self.server.run(&["send-keys", "-t", &self.pane, "-l", text]);
    }

    pub fn press(&self, key: &str) {
        self.server.run(&["send-keys", "-t", &self.pane, key]);
    }

    /// All descendants of the pane's shell: the agent and the processes that it has started.
    pub fn job_pids(&self) -> Vec<u32> {
        process::descendants(self.shell)
    }

    /// Whether the shell of the pane waits for a command.
    pub fn shell_is_ready(&self) -> bool {
        process::is_in_foreground(self.shell)
    }

    /// Restores the default settings and restarts the daemon. By default, agents may not run actions.
    pub fn forbid_agent_actions(&self) {
        fs::write(self.world.config_file(), "").expect("the world is writable");
        let (restarted, _, error) = self.run_agtmux(&["daemon", "restart"]);
        assert!(restarted, "{error}");
    }

    /// The `agtmux` command with the environment of this sandbox.
    pub fn agtmux_command(&self) -> Command {
        self.world.agtmux()
    }

    /// Runs `agtmux` outside tmux. Returns three values: whether the command succeeded, its stdout and its stderr.
    pub fn run_agtmux(&self, args: &[&str]) -> (bool, String, String) {
        let output = self.world.agtmux().args(args).output().expect("agtmux can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    /// The output of `agtmux explain` and `agtmux history` for the pane of the agent.
    pub fn explain_output(&self) -> String {
        let print = |options: &[&str]| {
            let output = self.world.agtmux().args(options).arg(&self.pane).output();
            String::from_utf8_lossy(&output.map(|output| output.stdout).unwrap_or_default()).into_owned()
        };
        print(&["explain"]) + &print(&["history", "--json"])
    }
}

impl Drop for AgentSandbox {
    /// Kills agents that still run after their terminals were closed. Otherwise the test world would report them as
    /// leaked processes.
    fn drop(&mut self) {
        let daemons = self.world.daemons();
        let is_agents = |pid: &u32| !daemons.contains(pid) && !is_tmux_or_agtmux(*pid);
        let left = || self.world.processes().into_iter().filter(is_agents).collect::<Vec<u32>>();
        poll_until(SOON, || {
            let left = left();
            left.iter().for_each(|pid| {
                process::signal(*pid, Signal::KILL);
            });
            left.is_empty().then_some(())
        });
    }
}

fn is_tmux_or_agtmux(pid: u32) -> bool {
    let argv = process::argv(pid);
    let name = argv.first().and_then(|argv0| argv0.rsplit(|b| *b == b'/').next()).unwrap_or_default();
    name.starts_with(b"tmux") || name.starts_with(b"agtmux")
}

fn open_shell(server: &TestTmuxServer, options: &SandboxOptions<'_>, workspace: &AgentWorkspace) -> String {
    let own = agtmux_binary();
    let own = own.parent().expect("a program path has a parent directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = options.program_dirs.iter().cloned().chain([own.to_owned()]).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(dirs).expect("the directories contain no colon");
    let path = path.to_string_lossy();
    let mut variables = vec![("PS1", "sh$ ".into()), ("COLORTERM", "truecolor".into())];
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        variables.push((name, CLOSED_PROXY.into()));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.push((name, "127.0.0.1,localhost".into()));
    }
    variables.extend(options.agent.environment(workspace));
    let variables: Vec<String> = variables.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let (columns, rows, project) =
        (options.size.0.to_string(), options.size.1.to_string(), workspace.project.to_string_lossy());
    let mut args = vec!["start-server", ";", "set-option", "-g", "default-terminal", "tmux-256color", ";"];
    args.extend(["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", &columns, "-y", &rows]);
    args.extend(["-s", "work", "-c", &*project]);
    args.extend(variables.iter().flat_map(|variable| ["-e", variable.as_str()]));
    // tmux gives a new pane the PATH of the client, not the one set with `-e`.
    let shell = format!("PATH='{path}' exec sh -i");
    args.push(&shell);
    server.run(&args)
}

/// Writes the settings of a world. Actions from agents are allowed, because these tests may run inside an agent.
fn write_settings(world: &TestWorld, settings: &str) {
    let file = world.config_file();
    fs::create_dir_all(file.parent().expect("a file has a directory")).expect("the world is writable");
    fs::write(file, format!("actions.allow_from_agents = true\n{settings}")).expect("the world is writable");
}

fn start_daemon(world: &TestWorld) {
    let output = world.agtmux().args(["daemon", "start"]).output().expect("agtmux can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Writes an executable file. The program `install` creates it as a copy, so that this process never has it open for
/// writing. Otherwise a child that another thread starts could inherit the open file, and running the file would fail
/// with ETXTBSY.
pub fn write_program(world: &TestWorld, path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("the world is writable");
    let install = world.command("install").args(["-m", "755"]).arg(&draft).arg(path).status();
    assert!(install.is_ok_and(|status| status.success()), "{} could not be made executable", path.display());
    fs::remove_file(draft).expect("the draft exists");
}

/// Replaces the script that the agent may run without approval.
pub fn write_tool(sandbox: &AgentSandbox, text: &str) {
    let path = sandbox.workspace.project.join(FREE_TOOL);
    fs::remove_file(&path).expect("the tool exists");
    write_program(&sandbox.world, &path, text);
}
