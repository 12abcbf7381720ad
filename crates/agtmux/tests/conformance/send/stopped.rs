//! An agent that is stopped takes nothing, and nothing is said to have been taken.

use std::time::Duration;

use agtmux_testkit::process;
use rustix::process::Signal;

use super::round::{Round, asked, send};
use crate::agents::{self, Launch};
use crate::drive::Driver;
use crate::options::Version;
use crate::room::Room;
use crate::run::{provide, say};
use crate::until;
use crate::words::Mode;

const SOON: Duration = Duration::from_secs(20);
const TEXT: &str = "a text for somebody who is asleep when it comes";
/// Long enough to stop it between the paste and Enter.
const SLOWLY: &str = "tmux_bridge.text_enter_delay_ms = 4000\n";

fn shows(room: &Room) -> usize {
    room.look().screen.matches(TEXT).count()
}

#[test]
fn claude_that_is_stopped_between_text_and_enter_gets_no_enter() {
    let agent = agents::ALL[0];
    let installed = match provide(agent, Version::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return say(&format!("skipped 1 send to {} that is stopped: {why}", agent.name())),
    };
    let round = Round { agent, programs: &installed.programs, mode: Mode::Bare };
    let room = Room::open_with(&round.plan(), SLOWLY);
    let driver = Driver { agent, room: &room, mode: Mode::Bare, recorder: None };
    driver.start(&Launch::Plain).expect("it starts");
    let told = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&room, TEXT));
        until(SOON, || (shows(&room) == 1).then_some(())).expect("the text shows in the box");
        room.job().into_iter().for_each(|pid| {
            process::signal(pid, Signal::STOP);
        });
        sending.join().expect("it ends")
    });
    let told = told.expect_err("nothing was taken");
    assert!(told.contains("the agent is stopped; Enter was not pressed"), "{told}");
    // Its shell has the terminal meanwhile, which knows no Enter in this mode.
    room.type_text("fg");
    room.press("C-j");
    // It draws itself again when it wakes up; what it was not given it does not take.
    let again = until(SOON, || send(&room, "more").err().filter(|told| told.contains("text in its input box")));
    assert!(again.is_some() && shows(&room) == 1, "{}", room.look().screen);
    assert!(asked(&room).is_empty(), "the model was asked");
    let entered = room.agtmux().args(["send", &room.pane, "--key", "Enter"]).status();
    assert!(entered.is_ok_and(|status| status.success()), "what the message says to do is possible");
    until(SOON, || asked(&room).iter().any(|request| request.ended.is_some()).then_some(())).expect("it was taken");
    let said: Vec<_> = asked(&room).into_iter().flat_map(|request| request.said).filter(|part| part == TEXT).collect();
    assert_eq!(said.len(), 1, "once");
}
