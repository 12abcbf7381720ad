//! Cursor could not be had: these screens are made by hand from what is written about it, and prove no more than that the
//! rules find what they are meant to find.

use agtmux_agents::{AgentRegistry, Judgement, SavedScreen, judge};
use agtmux_core::state::State;

fn judged(text: &str) -> Judgement {
    judge(AgentRegistry::builtin(), "cursor", &SavedScreen { text: text.as_bytes(), title: None, command: None })
}

const FOOTER: &str = "  Claude 4 Sonnet · 12%\n  ~/work · main            Run Everything\n";

fn at_rest(said: &str, prompt: &str) -> String {
    format!("  Cursor Agent\n\n{said}\n\n  → {prompt}\n\n{FOOTER}")
}

fn approval(question: &str, first: &str) -> String {
    format!(
        "  $ touch a.txt\n\n  {question}\n  Not in allowlist: touch\n\n   → {first} (y)\n     Add Shell(touch) to allowlist? (tab)\n     \
         Skip (esc or n)\n\n{FOOTER}"
    )
}

#[test]
fn it_rests_where_its_box_invites() {
    assert_eq!(judged(&at_rest("", "Plan, search, build anything")).state, State::Idle);
    assert_eq!(judged(&at_rest("  Done.", "Add a follow-up")).state, State::Idle);
    assert_eq!(judged(&at_rest("  Done.", "something typed")).state, State::Unknown, "its box is not known then");
}

#[test]
fn it_runs_while_it_can_be_stopped() {
    assert_eq!(judged(&at_rest("  ⬢ Thinking", "Add a follow-up            ctrl+c to stop")).state, State::Running);
    let below = at_rest("  ⬡ Thinking", "Add a follow-up").replace("  Claude 4", "  ctrl+c to stop\n  Claude 4");
    assert_eq!(judged(&below).state, State::Running);
    let boxless = judged("  ⬢ Thinking\n  ctrl+c to stop\n");
    assert_eq!((boxless.state, boxless.conclusive), (State::Running, false), "without its box that is a hint only");
}

#[test]
fn what_was_thought_before_does_not_run() {
    assert_eq!(judged(&at_rest("  ⬢ Thought, 3 files read", "Add a follow-up")).state, State::Idle);
    assert_eq!(judged(&at_rest("  press ctrl+c to stop it", "Add a follow-up")).state, State::Idle);
}

#[test]
fn it_asks_before_it_runs_or_writes() {
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
fn it_asks_whether_a_workspace_is_to_be_trusted() {
    let trust = "  ⚠ Workspace Trust Required\n\n  Cursor Agent can run code in this directory:\n\n  /srv/proj\n\n  Do you want to mark \
                 this directory as trusted?\n\n  ▶ [a] Trust this workspace\n    [q] Quit\n\n  Use arrow keys to navigate, Enter to select\n";
    assert_eq!(judged(trust).state, State::WaitingApproval);
}

#[test]
fn the_mode_in_its_footer_is_no_approval() {
    for said in ["", "  It asks: Run this command?", "  Run this command?\n  → Run everything"] {
        assert_eq!(judged(&at_rest(said, "Add a follow-up")).state, State::Idle, "{said}");
    }
}
