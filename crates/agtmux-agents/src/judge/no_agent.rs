//! Signs that no agent runs in a pane, whatever its screen still shows.

use crate::command_line::is_shell_name;
use crate::screen::CapturedScreen;

/// Programs that take over a pane and are never an agent.
const NON_AGENT_PROGRAMS: [&str; 4] = ["tmux", "tmux: client", "login", "screen"];
/// What tmux writes below the last frame of a program that ended, where panes are kept.
const DEAD_PANE_TEXT: &str = "Pane is dead (";

/// What proves that nobody is there.
pub(super) fn no_agent_reason(command: Option<&str>, screen: &CapturedScreen) -> Option<String> {
    let command = command.map(str::trim).unwrap_or_default();
    let name = command.strip_prefix('-').unwrap_or(command);
    if is_shell_name(name.as_bytes()) || NON_AGENT_PROGRAMS.contains(&name) {
        return Some(format!("the pane runs {name}"));
    }
    let last = screen.rows().last()?.text();
    last.trim_start().starts_with(DEAD_PANE_TEXT).then(|| last.to_owned())
}
