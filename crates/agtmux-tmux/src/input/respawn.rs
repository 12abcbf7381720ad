use super::{DONE, PaneGuard, and, is_before, pane_matches, print_facts};
use crate::command::{Framing, TmuxCommand};

/// Respawns a pane if it is still dead, is still the expected pane, and the time is before `until`.
pub(crate) fn respawn(
    framing: &Framing,
    guard: PaneGuard,
    until: u64,
    cwd: Option<&str>,
    command: &str,
) -> TmuxCommand {
    let target = format!("%{}", guard.pane);
    // tmux expands formats in the directory.
    let directory = cwd.map(|dir| format!("-c {} ", quoted(&dir.replace('#', "##")))).unwrap_or_default();
    let respawn_and_report = format!(
        "respawn-pane {directory}-t {target} {} ; display-message -p '{}'",
        quoted(command),
        framing.record(DONE, &[])
    );
    let before_deadline = is_before(until);
    let report = print_facts(framing, &target, &before_deadline);
    let condition = and(pane_matches(guard), and("#{pane_dead}".into(), before_deadline));
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(condition).arg(respawn_and_report).arg(report)
}

/// Quotes one word for tmux's parser.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_quoted_and_not_expanded() {
        assert_eq!(quoted("it's"), "'it'\\''s'");
        let guard = PaneGuard { server_pid: 9, server_start: 100, pane: 3, pane_pid: 42 };
        let command = respawn(&Framing::fixed("W"), guard, 7, Some("/a #(x)'b"), "claude --resume x");
        let words: Vec<String> = command.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words[5].starts_with("respawn-pane -c '/a ##(x)'\\''b' -t %3 'claude --resume x' ; "), "{words:?}");
    }
}
