//! To a pane of another host: `ssh -t` on this terminal, or in a window of the tmux that one is in.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use agtmux_api::wire::{ActionOutcome, AttachPlan, SshDestination};
use agtmux_core::{sanitize, text};
use agtmux_tmux::host::{EXTRA_PATH_DIRS, command_line, quoted};
use agtmux_tmux::{AttachMethod, PaneGuard};

use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

/// tmux may be where only a login shell looks. What follows are its words.
fn tmux_prefix() -> String {
    format!("exec sh -c 'PATH=\"$PATH:{EXTRA_PATH_DIRS}\" exec tmux \"$@\"' tmux ")
}

pub(super) fn attach(
    done: &ActionOutcome<AttachPlan>,
    ssh: &SshDestination,
    meant: (PaneGuard, &str),
    print: bool,
) -> Result<CliExit, CliError> {
    let trip = RemoteAttach::new(done, ssh, meant);
    if print {
        output::line(trip.shell_command().as_bytes())?;
        return Ok(CliExit::Ok);
    }
    if std::env::var_os("TMUX").is_some_and(|tmux| !tmux.is_empty()) {
        return trip.open_window();
    }
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        output::line(trip.shell_command().as_bytes())?;
        let message = CliMessage::new("there is no terminal to attach").because("the command above does it on one");
        return Err(CliError::failed(message.hint(format!("agtmux attach {}", trip.reference))));
    }
    let error = trip.command().exec();
    Err(CliError::io(&format!("start '{}'", ssh.program), error))
}

struct RemoteAttach<'a> {
    ssh: &'a SshDestination,
    /// What the shell there is given.
    remote: Vec<u8>,
    target: &'a str,
    reference: String,
}

impl<'a> RemoteAttach<'a> {
    /// The tmux server there looks and goes in one step, as it does here.
    fn new(done: &'a ActionOutcome<AttachPlan>, ssh: &'a SshDestination, (guard, asked): (PaneGuard, &str)) -> Self {
        let plan = &done.report;
        let socket = std::ffi::OsString::from_vec(text::to_bytes(&plan.socket));
        let words = AttachMethod::Attach.tmux_arguments(guard, &plan.session_id, &plan.window_id);
        let words = words.iter().map(OsStr::new);
        let words = [OsStr::new("-S"), &socket].into_iter().chain(words);
        let remote = [tmux_prefix().as_bytes(), &command_line(words)].concat();
        let reference = done.runtime_id.as_ref().map_or_else(|| asked.to_owned(), |id| format!("runtime:{id}"));
        Self { ssh, remote, target: &done.target, reference }
    }

    /// A person is there: ssh may ask, and what one's settings say holds, but for a command of their own in place of ours.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.ssh.program);
        command
            .args(["-t", "-o", "RemoteCommand=none", "--"])
            .arg(&self.ssh.destination)
            .arg(OsStr::from_bytes(&self.remote));
        command
    }

    /// As it could be pasted into a shell.
    fn shell_command(&self) -> String {
        let command = self.command();
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<Vec<u8>> = words.map(quoted).collect();
        sanitize::for_terminal(&String::from_utf8_lossy(&words.join(&b' ')))
    }

    /// One tmux in the other is hard to leave in the same window.
    fn open_window(&self) -> Result<CliExit, CliError> {
        let mut tmux = Command::new("tmux");
        tmux.args(["new-window", "-n", self.target, "--"]);
        let command = self.command();
        tmux.arg(command.get_program()).args(command.get_args());
        let done = tmux.output().map_err(|error| CliError::io("start 'tmux'", error))?;
        if done.status.success() {
            return Ok(CliExit::Ok);
        }
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        let message = CliMessage::new("tmux did not open a window").because(said);
        Err(CliError::failed(message.hint(format!("TMUX= agtmux attach {}   (here, all the same)", self.reference))))
    }
}
