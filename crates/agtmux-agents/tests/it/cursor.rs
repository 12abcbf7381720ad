//! Cursor was not available, so these screens are written by hand from its documentation. The tests prove only that the
//! rules match the documented screens.

use agtmux_agents::{Judgement, SavedScreen, judge};
use agtmux_core::state::State;

use crate::builtin;

fn judged(text: &str) -> Judgement {
    judge(builtin("cursor"), &SavedScreen { text: text.as_bytes(), title: None, command: None })
}

const FOOTER: &str = "  Claude 4 Sonnet · 12%\n  ~/work · main            Run Everything\n";

fn idle_screen(output: &str, prompt: &str) -> String {
    format!("  Cursor Agent\n\n{output}\n\n  → {prompt}\n\n{FOOTER}")
}

fn approval(question: &str, first: &str) -> String {
    format!(
        "  $ touch a.txt\n\n  {question}\n  Not in allowlist: touch\n\n   → {first} (y)\n     Add Shell(touch) to allowlist? (tab)\n     \
         Skip (esc or n)\n\n{FOOTER}"
    )
}

#[test]
fn cursor_is_idle_when_its_box_shows_the_placeholder() {
    assert_eq!(judged(&idle_screen("", "Plan, search, build anything")).state, State::Idle);
    assert_eq!(judged(&idle_screen("  Done.", "Add a follow-up")).state, State::Idle);
    assert_eq!(
        judged(&idle_screen("  Done.", "something typed")).state,
        State::Unknown,
        "without the placeholder the box is not recognized"
    );
}

#[test]
fn cursor_is_running_while_it_can_be_stopped() {
    assert_eq!(judged(&idle_screen("  ⬢ Thinking", "Add a follow-up            ctrl+c to stop")).state, State::Running);
    let below = idle_screen("  ⬡ Thinking", "Add a follow-up").replace("  Claude 4", "  ctrl+c to stop\n  Claude 4");
    assert_eq!(judged(&below).state, State::Running);
    let boxless = judged("  ⬢ Thinking\n  ctrl+c to stop\n");
    assert_eq!(
        (boxless.state, boxless.conclusive),
        (State::Running, false),
        "without an input box the result is not conclusive"
    );
}

#[test]
fn output_of_earlier_turns_does_not_mean_running() {
    assert_eq!(judged(&idle_screen("  ⬢ Thought, 3 files read", "Add a follow-up")).state, State::Idle);
    assert_eq!(judged(&idle_screen("  press ctrl+c to stop it", "Add a follow-up")).state, State::Idle);
}

#[test]
fn cursor_asks_before_it_runs_a_command_or_writes_a_file() {
    for (question, first) in [("Run this command?", "Run (once)"), ("Write to this file?", "Proceed")] {
        let asked = judged(&approval(question, first));
        assert_eq!(asked.state, State::WaitingApproval, "{question}");
        let dialog = asked.dialog.expect("a dialog");
        assert!(dialog.question.contains(question), "{dialog:?}");
        let labels: Vec<&str> = dialog.options.iter().map(|option| option.label.as_str()).collect();
        assert_eq!(labels[0], format!("{first} (y)"));
        assert_eq!(labels[2], "Skip (esc or n)");
    }
}

#[test]
fn cursor_asks_whether_to_trust_the_workspace() {
    let trust = "  ⚠ Workspace Trust Required\n\n  Cursor Agent can run code in this directory:\n\n  /srv/proj\n\n  Do you want to mark \
                 this directory as trusted?\n\n  ▶ [a] Trust this workspace\n    [q] Quit\n\n  Use arrow keys to navigate, Enter to select\n";
    assert_eq!(judged(trust).state, State::WaitingApproval);
}

#[test]
fn the_mode_in_the_footer_is_not_an_approval() {
    for output in ["", "  It asks: Run this command?", "  Run this command?\n  → Run everything"] {
        assert_eq!(judged(&idle_screen(output, "Add a follow-up")).state, State::Idle, "{output}");
    }
}
