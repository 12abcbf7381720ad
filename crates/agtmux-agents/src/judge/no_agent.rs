//! Detects that no agent runs in a pane, even if the screen still shows one.

use crate::command_line::is_shell_name;
use crate::screen::CapturedScreen;

/// Programs that are never an agent.
const NON_AGENT_PROGRAMS: [&str; 4] = ["tmux", "tmux: client", "login", "screen"];
/// The text that tmux writes into a dead pane, below the last output (`remain-on-exit`).
const DEAD_PANE_TEXT: &str = "Pane is dead (";

/// Why it is certain that no agent runs in the pane. None if an agent may run there.
pub(super) fn no_agent_reason(command: Option<&str>, screen: &CapturedScreen) -> Option<String> {
    let command = command.map(str::trim).unwrap_or_default();
    let name = command.strip_prefix('-').unwrap_or(command);
    if is_shell_name(name.as_bytes()) || NON_AGENT_PROGRAMS.contains(&name) {
        return Some(format!("the pane runs {name}"));
    }
    let last = screen.rows().last()?.text();
    last.trim_start().starts_with(DEAD_PANE_TEXT).then(|| last.to_owned())
}
