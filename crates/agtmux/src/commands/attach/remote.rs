//! Attaches to a pane on another host: with `ssh -t` on this terminal, or in a new window inside tmux.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use agtmux_api::wire::{ActionOutcome, AttachPlan, SshDestination};
use agtmux_core::{sanitize, text};
use agtmux_tmux::host::{EXTRA_PATH_DIRS, command_line, quoted};
use agtmux_tmux::{AttachMethod, PaneGuard};

use crate::error::{CliError, CliResult};
use crate::output;

/// A shell command that finds tmux outside the default PATH. The arguments for tmux follow.
fn tmux_prefix() -> String {
    format!("exec sh -c 'PATH=\"$PATH:{EXTRA_PATH_DIRS}\" exec tmux \"$@\"' tmux ")
}

pub(super) fn attach(
    done: &ActionOutcome<AttachPlan>,
    ssh: &SshDestination,
    pane: (PaneGuard, &str),
    print: bool,
) -> CliResult {
    let remote = RemoteAttach::new(done, ssh, pane);
    if print {
        return output::line(remote.shell_command().as_bytes());
    }
    if std::env::var_os("TMUX").is_some_and(|tmux| !tmux.is_empty()) {
        return remote.open_window();
    }
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        output::line(remote.shell_command().as_bytes())?;
        return Err(CliError::failed("cannot attach: stdin or stdout is not a terminal")
            .because("run the printed command on a terminal")
            .hint(format!("agtmux attach {}", remote.reference)));
    }
    let error = remote.command().exec();
    Err(CliError::io(&format!("start '{}'", ssh.program), error))
}

struct RemoteAttach<'a> {
    ssh: &'a SshDestination,
    /// The command line for the remote shell.
    remote: Vec<u8>,
    target: &'a str,
    reference: String,
}

impl<'a> RemoteAttach<'a> {
    /// The remote tmux server checks the pane and attaches in one step, like a local one.
    fn new(done: &'a ActionOutcome<AttachPlan>, ssh: &'a SshDestination, (guard, typed): (PaneGuard, &str)) -> Self {
        let plan = &done.report;
        let socket = std::ffi::OsString::from_vec(text::to_bytes(&plan.socket));
        let words = AttachMethod::Attach.tmux_arguments(guard, &plan.session_id, &plan.window_id);
        let words = words.iter().map(OsStr::new);
        let words = [OsStr::new("-S"), &socket].into_iter().chain(words);
        let remote = [tmux_prefix().as_bytes(), &command_line(words)].concat();
        let reference = done.runtime_id.as_ref().map_or_else(|| typed.to_owned(), |id| format!("runtime:{id}"));
        Self { ssh, remote, target: &done.target, reference }
    }

    /// The ssh command. It may ask for a password and uses the user's ssh settings, except for RemoteCommand.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.ssh.program);
        command
            .args(["-t", "-o", "RemoteCommand=none", "--"])
            .arg(&self.ssh.destination)
            .arg(OsStr::from_bytes(&self.remote));
        command
    }

    /// The command, quoted for a shell.
    fn shell_command(&self) -> String {
        let command = self.command();
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<Vec<u8>> = words.map(quoted).collect();
        sanitize::for_terminal(&String::from_utf8_lossy(&words.join(&b' ')))
    }

    /// Opens a new window, because a tmux nested in the same window is hard to leave.
    fn open_window(&self) -> CliResult {
        let mut tmux = Command::new("tmux");
        tmux.args(["new-window", "-n", self.target, "--"]);
        let command = self.command();
        tmux.arg(command.get_program()).args(command.get_args());
        let done = tmux.output().map_err(|error| CliError::io("start 'tmux'", error))?;
        if done.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(CliError::failed("tmux did not open a window")
            .because(stderr)
            .hint(format!("TMUX= agtmux attach {}   (nested, in this terminal)", self.reference)))
    }
}
