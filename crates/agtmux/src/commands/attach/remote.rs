//! Attaches to a pane on another host: with `ssh -t` on this terminal, or in a window of the client's session.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use agtmux_api::wire::SshDestination;
use agtmux_core::{sanitize, text};
use agtmux_tmux::AttachMethod;
use agtmux_tmux::host::{EXTRA_PATH_DIRS, command_line, quoted};

use super::{AttachTarget, CallingClient};
use crate::error::{CliError, CliResult};
use crate::output;

/// The start of a shell command that also finds tmux outside the default PATH. The caller appends the arguments for
/// tmux.
fn tmux_prefix() -> String {
    format!("exec sh -c 'PATH=\"$PATH:{EXTRA_PATH_DIRS}\" exec tmux \"$@\"' tmux ")
}

pub(super) fn print(target: &AttachTarget, ssh: &SshDestination) -> CliResult {
    output::line(&shell_command(&ssh_command(target, ssh)))
}

/// Replaces this process by ssh.
pub(super) fn attach(target: &AttachTarget, ssh: &SshDestination) -> CliResult {
    Err(CliError::io(&format!("start '{}'", ssh.program), ssh_command(target, ssh).exec()))
}

/// The ssh command that attaches to the remote pane. ssh may ask for a password, and uses the user's ssh settings
/// except RemoteCommand. As for a local pane, the tmux server checks the pane and attaches in one step.
fn ssh_command(target: &AttachTarget, ssh: &SshDestination) -> Command {
    let plan = &target.outcome.report;
    let socket = OsString::from_vec(text::to_bytes(&plan.socket));
    let words = AttachMethod::Attach.tmux_arguments(target.guard, &plan.session_id, &plan.window_id);
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

/// Runs ssh in a window of the client's session, and shows the window in the client. The window of an earlier visit is
/// used again. If the remote tmux ran in the current window instead, the user could hardly leave it.
pub(super) async fn open_window(target: &AttachTarget, ssh: &SshDestination, client: &CallingClient) -> CliResult {
    let command = ssh_command(target, ssh);
    let argv = [command.get_program()].into_iter().chain(command.get_args()).map(OsStr::to_owned);
    let argv: Vec<OsString> = argv.collect();
    let (session, runtime) = (client.view.client.session, target.outcome.runtime_id.as_deref().unwrap_or_default());
    let opened = async {
        let place = client.server.open_agent_window(session, &target.outcome.target, runtime, &argv).await?;
        client.server.switch_client(&client.view.tty, place).await
    };
    opened.await.map_err(|error| {
        CliError::failed("tmux did not open a window")
            .because(error.to_string())
            .hint(format!("TMUX= agtmux attach {}   (nested, in this terminal)", target.reference))
    })
}
