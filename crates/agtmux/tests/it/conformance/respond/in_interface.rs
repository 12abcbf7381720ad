//! A person answers in the terminal interface with a key, while another person closes the dialog in the pane and the
//! next one opens. The key must never answer a dialog that was not on the screen when it was pressed.

use std::thread;
use std::time::Duration;

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::real_agents::DialogReply;
use agtmux_testkit::seeded_random::SeededRandom;

use super::{DialogTester, RESPONSE_TIMEOUT, poll_until};
use crate::seat::{PROGRAM, Seat};

/// The key is pressed within this time after the dialog is closed. The next one opens about a second later.
const MAX_DELAY: Duration = Duration::from_millis(2500);

#[derive(Debug, Default)]
struct Totals {
    /// The first dialog was on the screen when the key was pressed, or none was.
    pressed_before: u32,
    /// The second dialog was on the screen already, so the key may answer it.
    pressed_after: u32,
    second_answered: u32,
}

/// Opens the interface beside the agent.
fn open(agent: &DialogTester<'_>) -> Seat {
    let world = agent.sandbox().world();
    let seat = Seat::open_on(world, world.tmux("seat"), &format!("env -u TMUX {PROGRAM}"));
    seat.server.run(&["resize-window", "-t", "=seat:", "-x", "120", "-y", "40"]);
    seat
}

/// Approves the dialog of the agent with a key of the interface.
pub(super) fn check_answer(agent: &DialogTester<'_>) {
    let seat = open(agent);
    let file = "answered-in-the-interface";
    agent.prompt_for_dialog(&format!("RUN touch {file}"), file);
    seat.wait_for_texts(&["waits for approval", file, "a approve"]);
    // A key that comes too soon after the dialog is not taken.
    let answered = poll_until(RESPONSE_TIMEOUT, || {
        let screen = seat.screen();
        if screen.contains("waits for approval") && !screen.contains("answering") {
            seat.press(&["a"]);
        }
        agent.file_exists(file).then_some(())
    });
    assert!(answered.is_some(), "{}\n{}", seat.screen(), agent.driver.screen_text());
    seat.press(&["q"]);
    seat.assert_ended("0");
}

pub(super) fn check(agent: &DialogTester<'_>) {
    let seat = open(agent);
    let (mut random, mut totals) = (SeededRandom::new(), Totals::default());
    let rounds = if soak() { 100 } else { 2 };
    for round in 0..rounds {
        swap(agent, &seat, round, &mut random, &mut totals);
    }
    println!("{rounds} swapped dialogs in the interface: {totals:?}");
    seat.press(&["q"]);
    seat.assert_ended("0");
}

fn swap(agent: &DialogTester<'_>, seat: &Seat, round: u32, random: &mut SeededRandom, totals: &mut Totals) {
    let [first, second] = ["first", "second"].map(|which| format!("swap-{round}-{which}"));
    agent.prompt_for_dialog(&format!("RUN touch {first}"), &first);
    seat.wait_for_texts(&[&first, "Do you want to proceed?"]);
    agent.driver.press_all(agent.driver.agent.keys(DialogReply::Deny));
    poll_until(RESPONSE_TIMEOUT, || agent.is_at_rest().then_some(())).expect("the first dialog closes");
    let prompt = format!("RUN touch {second}");
    let delay = random.duration_below(MAX_DELAY);
    let was_shown = thread::scope(|scope| {
        let key = scope.spawn(|| {
            thread::sleep(delay);
            let screen = seat.screen();
            // The screen of the pane shows the prompt before the dialog opens.
            let was_shown = screen.contains("waits for approval") && screen.contains(&second);
            seat.press(&["1"]);
            was_shown
        });
        // The model reads only the last line.
        let enter = |text: &str| agent.sandbox().paste(&format!("the next one:\n{text}"));
        agent.driver.submit(&prompt, enter).unwrap_or_else(|error| panic!("{}", error.0));
        key.join().expect("tmux types the key")
    });
    if was_shown {
        totals.pressed_after += 1;
        // The interface may take the key or refuse it because the dialog has just appeared.
        let is_answered = poll_until(Duration::from_secs(3), || agent.file_exists(&second).then_some(()));
        if is_answered.is_some() {
            totals.second_answered += 1;
            return;
        }
    } else {
        totals.pressed_before += 1;
    }
    agent.wait_for_dialog(&second);
    seat.wait_for_texts(&[&second]);
    assert!(!agent.file_exists(&second), "round {round}: the second command was approved; {}", seat.screen());
    agent.driver.press_all(agent.driver.agent.keys(DialogReply::Deny));
}
