//! Races of `respond`: the dialog changes between capture, keys and verification.

use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux};
use agtmux_testkit::dialog_agent::{self, DialogAgent};
use agtmux_testkit::wait_for;

const RULE: &str = "────────────────────────────────────────────────────────────────────────────────";

/// `respond` types into a new dialog at the earliest after this time.
const UNSETTLED: Duration = Duration::from_millis(200);

/// A dialog with twelve options. Two-digit options need arrow keys.
fn colour_dialog(selected: u32) -> String {
    let sign = |n: u32| if n == selected { '❯' } else { ' ' };
    let options: String = (1..=12).map(|n| format!(" {} {n}. Colour {n}\n", sign(n))).collect();
    format!("{RULE}\n ☐ Colour\n\nWhich colour?\n\n{options}\nEnter to select · ↑/↓ to navigate")
}

/// A Gemini text dialog with this typed text.
fn text_dialog(question: &str, typed: &str) -> String {
    let row = |text: &str| format!("│ {text:<70} │\n");
    let rows = ["Answer Questions", "", question, "", &format!("> {typed}"), "", "Enter to submit · Esc to cancel"];
    let edge = "─".repeat(72);
    format!("╭{edge}╮\n{}╰{edge}╯\n", rows.map(row).concat())
}

/// Runs `respond` while the closure acts as the agent.
fn respond_while(agent: &DialogAgent, answer: &[&str], plays: impl FnOnce()) -> CommandResult {
    thread::scope(|scope| {
        let responds = scope.spawn(|| agtmux(&agent.world, &[&["respond", &agent.pane, "--json"], answer].concat()));
        plays();
        responds.join().expect("respond exits")
    })
}

#[test]
fn enter_is_not_pressed_after_the_selection_moves() {
    let agent = DialogAgent::start();
    let walked = "\x1b[B".repeat(2);
    let moved = (0..12).find(|round| {
        agent.draw(RULE);
        wait_for("no open dialog", SOON, || agent.dialog().is_null().then_some(()));
        agent.draw(&colour_dialog(9));
        agent.wait_for_dialog("Colour 12");
        let before = agent.typed().len();
        let mut in_time = false;
        let done = respond_while(&agent, &["11"], || {
            wait_for("the arrow keys", SOON, || (agent.typed()[before..] == walked).then_some(()));
            agent.draw(&colour_dialog(11));
            // Wait longer each round so that respond sees the selection in one of them.
            (0..8 + 4 * round).for_each(|_| agent.wait_for_row("❯ 11. Colour 11"));
            in_time = !agent.typed()[before..].contains(['\r', '\n']);
            agent.draw(&colour_dialog(12));
        });
        assert_ne!(done.code, Some(0), "{done:?}");
        // If Enter was pressed before the move, it chose the right option.
        let entered = agent.typed()[before..].contains(['\r', '\n']);
        assert!(!(in_time && entered), "Enter would have chosen another option: {done:?}");
        in_time && done.stderr.contains("the selection was changed")
    });
    assert!(moved.is_some(), "the selection was never moved before Enter");
}

#[test]
fn a_following_text_dialog_confirms_the_first_answer() {
    let agent = DialogAgent::start_as("gemini");
    agent.draw(&text_dialog("What is it called", ""));
    agent.wait_for_dialog("called");
    let done = respond_while(&agent, &["--text", "a name of mine"], || {
        wait_for("the text to be typed", SOON, || agent.typed().contains("a name of mine").then_some(()));
        agent.draw(&text_dialog("What is it called", "a name of mine"));
        wait_for("Enter", SOON, || agent.typed().contains('\r').then_some(()));
        agent.draw(&text_dialog("Where does it live", ""));
    });
    let result = done.json();
    assert_eq!(result["verified"], "confirmed", "{result}");
    assert!(result["asks_now"].to_string().contains("Where does it live"), "{result}");
    assert_eq!(agent.typed().matches('\r').count(), 1);
}

#[test]
fn text_for_one_dialog_is_not_typed_into_the_next() {
    let agent = DialogAgent::start_as("gemini");
    agent.draw(&text_dialog("What is it called", ""));
    let fingerprint = agent.wait_for_dialog("called");
    agent.draw(&text_dialog("Where does it live", ""));
    let done = agtmux(&agent.world, &["respond", &agent.pane, "--text", "words", "--if-dialog", &fingerprint]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert_eq!(agent.typed(), "");
}

#[test]
fn an_answered_dialog_is_closed_when_respond_returns() {
    let agent = DialogAgent::start();
    for round in 0..5 {
        let command = format!("touch round-{round}");
        agent.ask_permission(&command);
        agent.wait_for_dialog(&command);
        let before = agent.typed().len();
        let done = respond_while(&agent, &["approve"], || {
            wait_for("the answer to be typed", SOON, || (agent.typed().len() > before).then_some(()));
            agent.draw(&format!("● round {round}\n\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts"));
        });
        assert_eq!(done.json()["verified"], "confirmed");
        assert!(agent.dialog().is_null(), "round {round}: {}", agent.dialog());
        let wait = ["wait", &agent.pane, "--for", "waiting_approval", "--timeout", "200ms"];
        assert_eq!(agtmux(&agent.world, &wait).code, Some(1), "the agent no longer waits");
    }
}

/// Some agents ignore keys for a moment after they draw a dialog.
#[test]
fn a_key_that_the_agent_ignores_is_pressed_again() {
    let agent = DialogAgent::start();
    agent.ask_permission("touch a");
    agent.wait_for_dialog("touch a");
    let done = respond_while(&agent, &["approve"], || {
        wait_for("the second key", SOON, || (agent.typed() == "11").then_some(()));
        agent.draw(&format!("● done\n\n{RULE}\n❯ \n{RULE}\n  ? for shortcuts"));
    });
    assert_eq!(done.json()["verified"], "confirmed", "{done:?}");
    assert_eq!(agent.typed(), "11");
}

/// The agent may have accepted the key and asked for the same command again.
#[test]
fn a_key_is_not_pressed_again_after_the_screen_changed() {
    let agent = DialogAgent::start();
    agent.ask_permission("touch a");
    agent.wait_for_dialog("touch a");
    let done = respond_while(&agent, &["approve"], || {
        wait_for("the key", SOON, || (agent.typed() == "1").then_some(()));
        agent.draw(&format!("● Ran touch a\n{}", dialog_agent::permission_dialog("touch a")));
    });
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(agent.typed(), "1");
}

/// The same question about the same command, with two options swapped.
fn permission_with_swapped_options(command: &str) -> String {
    format!(
        "{RULE}\n Bash command\n\n   {command}\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n   3. Yes, always\n\n \
         Esc to cancel · Tab to amend turned"
    )
}

/// Responds several times and replaces the dialog at a different moment each time, always before the screen settles.
/// Keys typed after the replacement would answer the wrong dialog. A round is repeated if this test was too slow: the
/// first dialog may then have been answered before it was replaced.
fn assert_refused_after_swap(agent: &DialogAgent, answer: &str, screens: impl Fn(u32) -> (String, String, String)) {
    let (mut round, mut attempts) = (0, 0);
    while round < 4 {
        attempts += 1;
        assert!(attempts < 40, "every attempt at round {round} was too slow");
        agent.draw(RULE);
        wait_for("no open dialog", SOON, || agent.dialog().is_null().then_some(()));
        let (first, about, second) = screens(round);
        let typed_before = agent.typed().len();
        agent.draw(&first);
        let fingerprint = agent.wait_for_dialog(&about);
        let started = Instant::now();
        let mut replaced_after = Duration::ZERO;
        let done = respond_while(agent, &[answer, "--if-dialog", &fingerprint], || {
            (0..5 * round).for_each(|_| agent.wait_for_row("to cancel"));
            agent.draw(&second);
            replaced_after = started.elapsed();
        });
        if done.code == Some(0) && replaced_after > UNSETTLED {
            continue;
        }
        assert_eq!(done.code, Some(5), "round {round}: {done:?}");
        assert_eq!(agent.typed().len(), typed_before, "round {round}: keys were typed into another dialog");
        round += 1;
    }
}

#[test]
fn a_number_is_not_typed_after_its_option_changes() {
    let agent = DialogAgent::start();
    assert_refused_after_swap(&agent, "2", |round| {
        let command = format!("touch swapped-{round}");
        let (first, second) = (dialog_agent::permission_dialog(&command), permission_with_swapped_options(&command));
        (first, command, second)
    });
}

#[test]
fn dialogs_without_options_are_distinguished_by_their_question() {
    let agent = DialogAgent::start_as("gemini");
    assert_refused_after_swap(&agent, "deny", |round| {
        let about = format!("What is number {round} called");
        (text_dialog(&about, ""), about, text_dialog("Where does it live", ""))
    });
}

#[test]
fn a_denied_text_dialog_is_confirmed_by_the_next_dialog() {
    let agent = DialogAgent::start_as("gemini");
    agent.draw(&text_dialog("What is it called", ""));
    agent.wait_for_dialog("called");
    let done = respond_while(&agent, &["deny"], || {
        wait_for("Escape", SOON, || agent.typed().contains('\x1b').then_some(()));
        agent.draw(&text_dialog("Where does it live", ""));
    });
    assert_eq!(done.json()["verified"], "confirmed", "{done:?}");
}

#[test]
fn the_second_key_of_an_answer_is_not_typed_into_the_next_dialog() {
    let agent = DialogAgent::start_as("aider");
    let dialog = |about: &str| format!("> do it\n{about} (Y)es/(N)o [Yes]: ");
    agent.draw(&dialog("Add first.py to the chat?"));
    agent.wait_for_dialog("first.py");
    let done = respond_while(&agent, &["approve"], || {
        wait_for("the first key", SOON, || (agent.typed() == "y").then_some(()));
        agent.draw(&dialog("Run rm -r second?"));
    });
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.stderr.contains("failed after something was typed"), "{done:?}");
    assert_eq!(agent.typed(), "y");
}
