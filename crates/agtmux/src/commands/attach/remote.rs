//! Attaches to a pane on another host: with `ssh -t` on this terminal, or in a new window inside tmux.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use agtmux_api::wire::{ActionOutcome, AttachPlan, SshDestination};
use agtmux_core::{sanitize, text};
use agtmux_tmux::host::{EXTRA_PATH_DIRS, command_line, quoted};
use agtmux_tmux::{AttachMethod, PaneGuard};

use super::{on_terminal, print_for_terminal};
use crate::error::{CliError, CliResult};
use crate::output;

/// The start of a shell command that also finds tmux outside the default PATH. The caller appends the arguments for
/// tmux.
fn tmux_prefix() -> String {
    format!("exec sh -c 'PATH=\"$PATH:{EXTRA_PATH_DIRS}\" exec tmux \"$@\"' tmux ")
}

pub(super) fn attach(
    done: &ActionOutcome<AttachPlan>,
    ssh: &SshDestination,
    guard: PaneGuard,
    reference: &str,
    print: bool,
) -> CliResult {
    let mut command = ssh_command(&done.report, ssh, guard);
    if print {
        return output::line(&shell_command(&command));
    }
    if std::env::var_os("TMUX").is_some_and(|tmux| !tmux.is_empty()) {
        return open_window(&command, &done.target, reference);
    }
    if !on_terminal() {
        return print_for_terminal(&shell_command(&command), reference);
    }
    Err(CliError::io(&format!("start '{}'", ssh.program), command.exec()))
}

/// The ssh command that attaches to the remote pane. ssh may ask for a password, and uses the user's ssh settings
/// except RemoteCommand. As for a local pane, the tmux server checks the pane and attaches in one step.
fn ssh_command(plan: &AttachPlan, ssh: &SshDestination, guard: PaneGuard) -> Command {
    let socket = std::ffi::OsString::from_vec(text::to_bytes(&plan.socket));
    let words = AttachMethod::Attach.tmux_arguments(guard, &plan.session_id, &plan.window_id);
    let words = [OsStr::new("-S"), &socket].into_iter().chain(words.iter().map(OsStr::new));
    let remote = [tmux_prefix().as_bytes(), &command_line(words)].concat();
    let mut command = Command::new(&ssh.program);
    command.args(["-t", "-o", "RemoteCommand=none", "--"]).arg(&ssh.destination).arg(OsStr::from_bytes(&remote));
    command
}

/// The command, quoted for a shell.
fn shell_command(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let words: Vec<Vec<u8>> = words.map(quoted).collect();
    sanitize::for_terminal(&String::from_utf8_lossy(&words.join(&b' ')))
}

/// Runs the command in a new tmux window. If the remote tmux ran in the user's current window, the user could hardly
/// leave it.
fn open_window(command: &Command, target: &str, reference: &str) -> CliResult {
    let mut tmux = Command::new("tmux");
    tmux.args(["new-window", "-n", target, "--"]).arg(command.get_program()).args(command.get_args());
    let done = tmux.output().map_err(|error| CliError::io("start 'tmux'", error))?;
    if done.status.success() {
        return Ok(());
    }
    Err(CliError::failed("tmux did not open a window")
        .because(String::from_utf8_lossy(&done.stderr).trim())
        .hint(format!("TMUX= agtmux attach {reference}   (nested, in this terminal)")))
}
