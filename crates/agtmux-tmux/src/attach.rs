//! Bringing a person to a pane, only while it is the one that was meant.

use crate::command::{Framing, TmuxCommand};
use crate::input::{DONE, PaneGuard, pane_matches, print_facts};

/// How to get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachMethod {
    /// A new client, on the terminal that tmux is started on.
    Attach,
    /// The client that one is in.
    Switch,
}

/// No pane has this number: whatever is asked of it fails.
const NO_SUCH_PANE: &str = "%4294967295";

impl AttachMethod {
    /// The words after `tmux -S SOCKET`. The server looks and goes in one step, and fails if the pane is another one. Sessions
    /// and windows are named by their ids: a name would be matched by its beginning.
    pub fn tmux_arguments(self, guard: PaneGuard, session_id: &str, window_id: &str) -> Vec<String> {
        let pane = format!("%{}", guard.pane);
        let go = match self {
            Self::Attach => "attach-session",
            Self::Switch => "switch-client",
        };
        let there = format!("{go} -t '{session_id}:{window_id}.{pane}'");
        let not_there = format!(
            "display-message -p 'agtmux: another program was started in that pane, so nobody was brought there' ; \
             list-panes -t {NO_SUCH_PANE}"
        );
        let words = ["if-shell", "-F", "-t", &pane, &pane_matches(guard), &there, &not_there];
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

/// Changes nothing: only tells whether the pane is that one.
pub(crate) fn check_pane(framing: &Framing, guard: PaneGuard) -> TmuxCommand {
    let target = format!("%{}", guard.pane);
    let done = format!("display-message -p '{}'", framing.record(DONE, &[]));
    let told = print_facts(framing, &target, "1");
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(pane_matches(guard)).arg(done).arg(told)
}
