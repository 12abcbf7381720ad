//! `agtmux inbox --plain`: the waiting agents as plain lines, with the answers on stdin.

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{CommandResult, run};

/// Runs the inbox with these lines on stdin.
fn inbox(fixture: &ActionFixture, lines: &str) -> CommandResult {
    let file = fixture.world.dir().join("answers");
    std::fs::write(&file, lines).expect("the world is writable");
    let script = "exec \"$0\" inbox --plain <\"$1\"";
    let done = run(fixture.world.command("sh").args(["-c", script, env!("CARGO_BIN_EXE_agtmux")]).arg(&file));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.text().chars().all(|c| c == '\n' || !c.is_control()), "{done:?}");
    done
}

#[test]
fn waiting_agents_are_shown_and_answered_one_after_the_other() {
    let fixture = ActionFixture::new("");
    let (first, second) = (fixture.agent("first"), fixture.agent("second"));
    fixture.show_scene(&first, "permission", "waiting_approval");
    fixture.show_scene(&second, "asks", "waiting_input");
    let text = inbox(&fixture, "maybe\napprove\n\n").text();
    let places = ["2 left: claude in first:0.0 on host", "rm -r build", "expected approve", "answered 1. Yes"];
    let next = ["1 left: claude in second:0.0 on host", "Which colour?", "no other agent waits"];
    let found: Vec<_> = places.iter().chain(&next).map(|words| text.find(words)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{found:?}: {text}");
    assert_eq!(first.input_so_far(), b"1");
    second.assert_no_input();
}

#[test]
fn an_inbox_without_waiting_agents_says_so() {
    let fixture = ActionFixture::new("");
    let _agent = fixture.agent("work");
    assert_eq!(inbox(&fixture, "").text(), "no agent waits\n");
}

#[test]
fn the_end_of_stdin_leaves_the_dialogs_open() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    fixture.show_scene(&agent, "dialog", "waiting_approval");
    assert!(inbox(&fixture, "").text().contains("1 left"));
    agent.assert_no_input();
}
