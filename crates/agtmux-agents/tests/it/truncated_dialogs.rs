//! Whether a dialog shows all of what it asks to approve.

use agtmux_agents::{SavedScreen, judge};
use agtmux_core::dialog::Dialog;

use crate::builtin;

fn dialog(agent: &str, text: &str) -> Dialog {
    let saved = SavedScreen { text: text.as_bytes(), title: None, command: None };
    judge(builtin(agent), &saved).dialog.unwrap_or_else(|| panic!("no dialog in\n{text}"))
}

/// The end of a dialog of Claude Code in a pane with 45 columns.
const END: &str = " │ twelve thirteen fourteen fifteen sixteen
 │ seventeen eighteen nineteen twenty
 │ twenty-one twenty-two twenty-three
 │ twenty-four twenty-five twenty-six
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to
      /srv/project from this project
   3. No

 Esc to cancel · Tab to amend
";

const BEGINNING: &str = "
● I will use a tool.

  Running mock command
  ⎿  $ rm -rf ./work && echo one two three

─────────────────────────────────────────────
 Bash command
 Run mock command
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 │ rm -rf ./work && echo one two three four
 │ five six seven eight nine ten eleven
";

#[test]
fn a_dialog_whose_top_is_scrolled_off_is_truncated() {
    let cut = dialog("claude", END);
    assert!(cut.subject_truncated, "{cut:?}");
    assert!(cut.subject.as_deref().is_some_and(|subject| subject.starts_with("twelve thirteen")), "{cut:?}");
    let only_options: String = END.lines().skip(5).map(|row| format!("{row}\n")).collect();
    assert!(dialog("claude", &only_options).subject_truncated, "nothing of the command is visible");
}

#[test]
fn a_dialog_that_is_visible_in_full_keeps_the_rows_of_its_command() {
    let full = dialog("claude", &format!("{BEGINNING}{END}"));
    assert!(!full.subject_truncated, "{full:?}");
    let rows = "Bash command\nRun mock command\nrm -rf ./work && echo one two three four\nfive six seven";
    assert!(full.subject.as_deref().is_some_and(|subject| subject.starts_with(rows)), "{full:?}");
}

#[test]
fn a_note_about_hidden_lines_marks_the_subject_as_truncated() {
    let codex = include_str!("../../evidence/screens/codex/codex-128-approval-long.txt");
    let gemini = include_str!("../../evidence/screens/gemini/gemini-28-80-edit.txt");
    for (agent, screen) in [("codex", codex), ("gemini", gemini)] {
        assert!(dialog(agent, screen).subject_truncated, "{agent}");
    }
}

#[test]
fn recorded_approvals_that_are_visible_in_full_are_not_truncated() {
    let screens = [
        ("claude", include_str!("../../evidence/screens/claude/claude-46-approval.txt")),
        ("claude", include_str!("../../evidence/screens/claude/claude-2110-approval.txt")),
        ("claude", include_str!("../../evidence/screens/claude/claude-60-trust.txt")),
        ("codex", include_str!("../../evidence/screens/codex/codex-80-approval.txt")),
        ("codex", include_str!("../../evidence/screens/codex/codex-trust-dialog.txt")),
        ("codex", include_str!("../../evidence/screens/codex/codex-hooktrust-startup.txt")),
        ("gemini", include_str!("../../evidence/screens/gemini/gemini-80-approval.txt")),
        ("copilot", include_str!("../../evidence/screens/copilot/copilot-approval2.txt")),
        ("opencode", include_str!("../../evidence/screens/opencode/opencode-approval.txt")),
        ("qwen", include_str!("../../evidence/screens/qwen/qwen-approval.txt")),
        ("pi", include_str!("../../evidence/screens/pi/pi87-confirm.txt")),
        ("aider", include_str!("../../evidence/screens/aider/aider-approval.txt")),
    ];
    for (agent, screen) in screens {
        let dialog = dialog(agent, screen);
        assert!(!dialog.subject_truncated, "{agent}: {dialog:?}");
    }
}

/// A command can contain a line like the border of a dialog. The text above it must not disappear.
#[test]
fn a_line_inside_a_command_is_not_the_top_of_the_dialog() {
    let line = " ────────────────────────────────────────────";
    let code = " ─────────────────────────────────────────; id";
    let screen = format!("{BEGINNING}{line}\n{code}\n{END}");
    let subject = dialog("claude", &screen).subject.unwrap_or_default();
    assert!(subject.contains("rm -rf ./work") && subject.contains("; id"), "{subject}");
}
