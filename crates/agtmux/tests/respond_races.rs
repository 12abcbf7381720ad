//! What happens to a dialog between the look at it, the keys for it and the word about it.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_asking.rs"]
mod asking;

use std::thread;

use agtmux::{Done, SOON, agtmux};
use agtmux_testkit::wait_for;
use asking::Asking;

const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

/// Twelve options, of which this one is selected: numbers of two digits are walked to.
fn colour_dialog(selected: u32) -> String {
    let sign = |n: u32| if n == selected { '❯' } else { ' ' };
    let options: String = (1..=12).map(|n| format!(" {} {n}. Colour {n}\n", sign(n))).collect();
    format!("{RULE}\n ☐ Colour\n\nWhich colour?\n\n{options}\nEnter to select · ↑/↓ to navigate")
}

/// A field of Gemini's for words, with what was typed into it.
fn text_dialog(question: &str, typed: &str) -> String {
    let row = |text: &str| format!("│ {text:<70} │\n");
    let rows = ["Answer Questions", "", question, "", &format!("> {typed}"), "", "Enter to submit · Esc to cancel"];
    let edge = "─".repeat(72);
    format!("╭{edge}╮\n{}╰{edge}╯\n", rows.map(row).concat())
}

/// Answers while the test plays the agent's part.
fn respond_while(agent: &Asking, answer: &[&str], plays: impl FnOnce()) -> Done {
    thread::scope(|scope| {
        let responds = scope.spawn(|| agtmux(&agent.world, &[&["respond", &agent.pane, "--json"], answer].concat()));
        plays();
        responds.join().expect("it ends")
    })
}

#[test]
fn enter_is_not_pressed_once_somebody_has_moved_the_selection_on() {
    let agent = Asking::start();
    let walked = "\x1b[B".repeat(2);
    let moved = (0..12).find(|round| {
        agent.draws(RULE);
        wait_for("it asks nothing", SOON, || agent.dialog().is_null().then_some(()));
        agent.draws(&colour_dialog(9));
        agent.knows("Colour 12");
        let before = agent.typed().len();
        let mut in_time = false;
        let done = respond_while(&agent, &["11"], || {
            wait_for("it walks", SOON, || (agent.typed()[before..] == walked).then_some(()));
            agent.draws(&colour_dialog(11));
            // Longer in one round than in the other, so that it is seen to have arrived in one of them.
            (0..8 + 4 * round).for_each(|_| agent.shows("❯ 11. Colour 11"));
            in_time = !agent.typed()[before..].contains(['\r', '\n']);
            agent.draws(&colour_dialog(12));
        });
        assert_ne!(done.code, Some(0), "{done:?}");
        // Where Enter was pressed before it was moved on, it took what it was for.
        let entered = agent.typed()[before..].contains(['\r', '\n']);
        assert!(!(in_time && entered), "another colour would have been taken: {done:?}");
        in_time && done.stderr.contains("somebody else has changed the selection")
    });
    assert!(moved.is_some(), "it was never moved in between");
}

#[test]
fn a_second_question_for_words_is_not_taken_for_the_first() {
    let agent = Asking::start_as("gemini");
    agent.draws(&text_dialog("What is it called", ""));
    agent.knows("called");
    let done = respond_while(&agent, &["--text", "a name of mine"], || {
        wait_for("it is typed", SOON, || agent.typed().contains("a name of mine").then_some(()));
        agent.draws(&text_dialog("What is it called", "a name of mine"));
        wait_for("it is sent off", SOON, || agent.typed().contains('\r').then_some(()));
        agent.draws(&text_dialog("Where does it live", ""));
    });
    let said = done.json();
    assert_eq!(said["verified"], "confirmed", "{said}");
    assert!(said["asks_now"].to_string().contains("Where does it live"), "{said}");
    assert_eq!(agent.typed().matches('\r').count(), 1);
}

#[test]
fn words_for_one_question_are_not_typed_into_the_next() {
    let agent = Asking::start_as("gemini");
    agent.draws(&text_dialog("What is it called", ""));
    let fingerprint = agent.knows("called");
    agent.draws(&text_dialog("Where does it live", ""));
    let done = agtmux(&agent.world, &["respond", &agent.pane, "--text", "words", "--if-dialog", &fingerprint]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert_eq!(agent.typed(), "");
}

#[test]
fn what_was_answered_is_over_for_everybody_when_respond_returns() {
    let agent = Asking::start();
    for round in 0..5 {
        let command = format!("touch round-{round}");
        agent.permission(&command);
        agent.knows(&command);
        let before = agent.typed().len();
        let done = respond_while(&agent, &["approve"], || {
            wait_for("it is answered", SOON, || (agent.typed().len() > before).then_some(()));
            agent.draws(&format!("● round {round}\n\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts"));
        });
        assert_eq!(done.json()["verified"], "confirmed");
        assert!(agent.dialog().is_null(), "round {round}: {}", agent.dialog());
        let waits = ["wait", &agent.pane, "--for", "waiting_approval", "--timeout", "200ms"];
        assert_eq!(agtmux(&agent.world, &waits).code, Some(1), "it waits no more");
    }
}

/// The same question about the same command, with other words behind two of the numbers.
fn permission_with_swapped_options(command: &str) -> String {
    format!(
        "{RULE}\n Bash command\n\n   {command}\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n   3. Yes, always\n\n \
         Esc to cancel · Tab to amend turned"
    )
}

/// Answers each of several times, and shows another screen at another moment of it: before it has held still, so that whatever
/// is typed then was meant for what was there before.
fn assert_refused_after_swap(agent: &Asking, answer: &str, screens: impl Fn(u32) -> (String, String, String)) {
    for round in 0..4 {
        agent.draws(RULE);
        wait_for("it asks nothing", SOON, || agent.dialog().is_null().then_some(()));
        let (first, about, second) = screens(round);
        agent.draws(&first);
        let fingerprint = agent.knows(&about);
        let done = respond_while(agent, &[answer, "--if-dialog", &fingerprint], || {
            (0..5 * round).for_each(|_| agent.shows("to cancel"));
            agent.draws(&second);
        });
        assert_eq!(done.code, Some(5), "round {round}: {done:?}");
        assert_eq!(agent.typed(), "", "round {round}: it was typed into another dialog");
    }
}

#[test]
fn a_number_is_not_typed_once_it_stands_for_something_else() {
    let agent = Asking::start();
    assert_refused_after_swap(&agent, "2", |round| {
        let command = format!("touch swapped-{round}");
        let (first, second) = (asking::permission(&command), permission_with_swapped_options(&command));
        (first, command, second)
    });
}

#[test]
fn what_has_no_options_is_told_from_the_next_by_its_words() {
    let agent = Asking::start_as("gemini");
    assert_refused_after_swap(&agent, "deny", |round| {
        let about = format!("What is number {round} called");
        (text_dialog(&about, ""), about, text_dialog("Where does it live", ""))
    });
}

#[test]
fn the_next_without_options_is_not_the_one_that_was_denied() {
    let agent = Asking::start_as("gemini");
    agent.draws(&text_dialog("What is it called", ""));
    agent.knows("called");
    let done = respond_while(&agent, &["deny"], || {
        wait_for("it is denied", SOON, || agent.typed().contains('\x1b').then_some(()));
        agent.draws(&text_dialog("Where does it live", ""));
    });
    assert_eq!(done.json()["verified"], "confirmed", "{done:?}");
}

#[test]
fn the_second_key_of_an_answer_does_not_answer_the_next_question() {
    let agent = Asking::start_as("aider");
    let asks = |about: &str| format!("> do it\n{about} (Y)es/(N)o [Yes]: ");
    agent.draws(&asks("Add first.py to the chat?"));
    agent.knows("first.py");
    let done = respond_while(&agent, &["approve"], || {
        wait_for("the first key", SOON, || (agent.typed() == "y").then_some(()));
        agent.draws(&asks("Run rm -r second?"));
    });
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("something was typed before this"), "{done:?}");
    assert_eq!(agent.typed(), "y");
}
