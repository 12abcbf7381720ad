//! The tmux arguments that attach a client to a pane, if the pane is still the expected one.

use crate::command::{Framing, TmuxCommand};
use crate::input::{DONE, PaneGuard, pane_matches, print_facts};

/// How a client reaches the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachMethod {
    /// Start a new client on the current terminal.
    Attach,
    /// Switch the client that runs the command.
    Switch,
}

/// No pane has this id, so a command that targets it fails.
const NO_SUCH_PANE: &str = "%4294967295";

impl AttachMethod {
    /// The arguments after `tmux -S SOCKET`. The server checks the pane and attaches in one step. If another program
    /// runs in the pane, the command fails. Sessions and windows are named by id, because tmux matches names by prefix.
    pub fn tmux_arguments(self, guard: PaneGuard, session_id: &str, window_id: &str) -> Vec<String> {
        let pane = format!("%{}", guard.pane);
        let command = match self {
            Self::Attach => "attach-session",
            Self::Switch => "switch-client",
        };
        let attach = format!("{command} -t '{session_id}:{window_id}.{pane}'");
        let refuse = format!(
            "display-message -p 'agtmux: could not attach: another program was started in that pane' ; \
             list-panes -t {NO_SUCH_PANE}"
        );
        let arguments = ["if-shell", "-F", "-t", &pane, &pane_matches(guard), &attach, &refuse];
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }
}

/// Checks the identity of the pane without changing anything.
pub(crate) fn check_pane(framing: &Framing, guard: PaneGuard) -> TmuxCommand {
    let target = format!("%{}", guard.pane);
    let done = format!("display-message -p '{}'", framing.record(DONE, &[]));
    let report = print_facts(framing, &target, "1");
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(pane_matches(guard)).arg(done).arg(report)
}
