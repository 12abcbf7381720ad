use super::{DONE, PaneGuard, is_before, pane_matches, print_facts};
use crate::command::{Framing, TmuxCommand};

/// Starts a program in a dead pane, only while it is that pane and still dead, and before the second that `until` names.
pub(crate) fn respawn(
    framing: &Framing,
    guard: PaneGuard,
    until: u64,
    cwd: Option<&str>,
    command: &str,
) -> TmuxCommand {
    let target = format!("%{}", guard.pane);
    // tmux expands formats in a directory.
    let place = cwd.map(|dir| format!("-c {} ", quoted(&dir.replace('#', "##")))).unwrap_or_default();
    let doing = format!(
        "respawn-pane {place}-t {target} {} ; display-message -p '{}'",
        quoted(command),
        framing.record(DONE, &[])
    );
    let in_time = is_before(until);
    let told = print_facts(framing, &target, &in_time);
    let all = format!("#{{&&:{},#{{&&:#{{pane_dead}},{in_time}}}}}", pane_matches(guard));
    TmuxCommand::new("if-shell").arg("-F").arg("-t").arg(&target).arg(all).arg(doing).arg(told)
}

/// One word for tmux's own parser, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_word_and_no_format() {
        assert_eq!(quoted("it's"), "'it'\\''s'");
        let guard = PaneGuard { server_pid: 9, server_start: 100, pane: 3, pane_pid: 42 };
        let command = respawn(&Framing::fixed("W"), guard, 7, Some("/a #(x)'b"), "claude --resume x");
        let words: Vec<String> = command.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert!(words[5].starts_with("respawn-pane -c '/a ##(x)'\\''b' -t %3 'claude --resume x' ; "), "{words:?}");
    }
}
