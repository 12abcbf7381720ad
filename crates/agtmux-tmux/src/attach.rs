//! The tmux arguments that attach a client to a pane. tmux first checks that the pane is still the expected one.

use crate::command::{Framing, TmuxCommand};
use crate::input::{DONE, PaneGuard, pane_matches, print_facts};

/// How to bring the user to the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachMethod<'a> {
    /// Start a new client on the current terminal.
    Attach,
    /// Show the pane in the client on this terminal, whose path is a [`crate::is_terminal_path`].
    Switch { tty: &'a str },
}

/// A pane id that no pane has. A command that targets this pane fails.
const NO_SUCH_PANE: &str = "%4294967295";

impl AttachMethod<'_> {
    /// The arguments that follow `tmux -S SOCKET`. The server checks the pane and attaches in one step. The command
    /// fails if the pane is gone or runs another program now. Sessions and windows are named by id, because tmux would
    /// match a name by prefix.
    pub fn tmux_arguments(self, guard: PaneGuard, session_id: &str, window_id: &str) -> Vec<String> {
        let pane = format!("%{}", guard.pane);
        let command = match self {
            Self::Attach => "attach-session".to_owned(),
            Self::Switch { tty } => format!("switch-client -c '{tty}'"),
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

/// A command that checks the identity of the pane and changes nothing.
pub(crate) fn check_pane(framing: &Framing, guard: PaneGuard) -> TmuxCommand {
    let target = format!("%{}", guard.pane);
    let done = format!("display-message -p '{}'", framing.record(DONE, &[]));
    let report = print_facts(framing, &target, "1");
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(pane_matches(guard)).arg(done).arg(report)
}
