//! Turns that ended because the model failed.

use agtmux_agents::{SavedScreen, judge};
use agtmux_core::state::State;

use crate::builtin;
use crate::screen_cases::cases;

const YELLOW: &str = "\u{1b}[38;5;220m";
const RED: &str = "\u{1b}[38;5;211m";
const CODE: &str = "\u{1b}[38;5;153m";
const GREY: &str = "\u{1b}[38;5;246m";
const PLAIN: &str = "\u{1b}[39m";

/// The state of a Claude Code that shows this transcript and waits for a prompt.
fn claude(transcript: &str) -> &'static str {
    let line = "─".repeat(60);
    let text = format!("{transcript}\n\n{line}\n❯ \n{line}\n  {GREY}? for shortcuts{PLAIN}\n");
    let saved = SavedScreen { text: text.as_bytes(), title: Some("✳ Claude Code"), command: Some("claude") };
    judge(builtin("claude"), &saved).state.as_str()
}

fn done() -> String {
    format!("{GREY}✻ Brewed for 3s{PLAIN}")
}

#[test]
fn recorded_failures_are_errors() {
    let failures: Vec<_> = cases().into_iter().filter(|case| case.accept == "error|idle").collect();
    assert!(failures.len() > 15, "{} recorded failures", failures.len());
    for case in failures {
        let saved = SavedScreen { text: case.best(), title: Some(&case.title), command: Some(&case.command) };
        let judged = judge(builtin(&case.agent), &saved);
        assert_eq!(judged.state, State::Error, "{} by {:?} on {:?}", case.name, judged.rule, judged.evidence);
    }
}

#[test]
fn a_failed_turn_of_claude_is_an_error_above_its_duration() {
    let error = format!("{YELLOW}● API Error: 400 mock failure 400{PLAIN}");
    assert_eq!(claude(&format!("❯ hello\n\n{error}\n\n{}", done())), "error");
    assert_eq!(claude(&format!("❯ hello\n\n{error}")), "error", "the duration is not shown yet");
    let login = format!("{YELLOW}● Please run /login · API Error: 401 mock failure 401{PLAIN}");
    assert_eq!(claude(&format!("❯ hello\n\n{login}\n\n{}", done())), "error");
    let model = format!("{YELLOW}● There's an issue with the selected model (x). It may not exist.{PLAIN}");
    assert_eq!(claude(&format!("❯ hello\n\n{model}\n\n{}", done())), "error");
}

#[test]
fn a_failed_turn_of_claude_is_an_error_if_its_prompt_is_off_the_screen() {
    let error = format!("{YELLOW}● API Error: 400 mock failure 400{PLAIN}");
    let long = format!("● Many words.\n\n● More words.\n\n{error}\n\n{}", done());
    assert_eq!(claude(&long), "error");
}

#[test]
fn a_failure_that_claude_shows_below_the_prompt_is_an_error() {
    for text in ["API Error: 400 mock failure 400", "Context limit reached · /compact or /clear to continue"] {
        let failed = format!("❯ hello\n  ⎿  {RED}{text}{PLAIN}\n\n{}", done());
        assert_eq!(claude(&failed), "error", "{text}");
        assert_eq!(claude(&format!("❯ hello\n  ⎿  {RED}{text}{PLAIN}")), "error", "{text}");
    }
    let tool = format!("❯ hello\n\n● Bash(x)\n  ⎿  {RED}Error: Exit code 1{PLAIN}\n\n● It failed.\n\n{}", done());
    assert_eq!(claude(&tool), "completed", "a failed tool is not a failed turn");
}

#[test]
fn an_answer_that_quotes_a_failure_is_completed() {
    let quoted = format!("● The {CODE}API Error: 400{PLAIN} is fixed.");
    assert_eq!(claude(&format!("❯ hello\n\n{quoted}\n\n{}", done())), "completed");
    let earlier =
        format!("❯ hello\n\n{YELLOW}● API Error: 400{PLAIN}\n\n{}\n\n❯ again\n\n● Hello.\n\n{}", done(), done());
    assert_eq!(claude(&earlier), "completed", "an earlier turn failed");
}

#[test]
fn a_failed_turn_without_colours_is_not_completed() {
    for error in ["● API Error: 400 mock failure 400", "  ⎿  API Error: 400", "● Please run /login · API Error: 401"]
    {
        assert_eq!(claude(&format!("❯ hello\n\n{error}\n\n{}", done())), "idle", "{error}");
    }
}
