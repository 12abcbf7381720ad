//! An agent that is stopped takes nothing, and nothing is said to have been taken.

use std::time::Duration;

use agtmux_testkit::process;
use rustix::process::Signal;

use super::send_session::{SendSession, model_requests, send};
use crate::agents::{self, LaunchMode};
use crate::driver::ScenarioDriver;
use crate::options::AgentVersionChoice;
use crate::poll_until;
use crate::run::{install_agent, print_line};
use crate::sandbox::AgentSandbox;
use crate::states::EvidenceMode;

const SOON: Duration = Duration::from_secs(20);
const TEXT: &str = "a text for somebody who is asleep when it comes";
/// Long enough to stop it between the paste and Enter.
const SLOW_ENTER: &str = "tmux_bridge.text_enter_delay_ms = 4000\n";

fn visible_count(room: &AgentSandbox) -> usize {
    room.capture().screen.matches(TEXT).count()
}

#[test]
fn claude_that_is_stopped_between_text_and_enter_gets_no_enter() {
    let agent = agents::ALL[0];
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return print_line(&format!("skipped 1 send to {} that is stopped: {why}", agent.name())),
    };
    let round = SendSession { agent, program_dirs: &installed.program_dirs, mode: EvidenceMode::NoHooks };
    let room = AgentSandbox::open_with(&round.sandbox_options(), SLOW_ENTER);
    let driver = ScenarioDriver { agent, sandbox: &room, mode: EvidenceMode::NoHooks, recorder: None };
    driver.start(&LaunchMode::Plain).expect("it starts");
    let told = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&room, TEXT));
        poll_until(SOON, || (visible_count(&room) == 1).then_some(())).expect("the text shows in the box");
        room.job_pids().into_iter().for_each(|pid| {
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
    let again = poll_until(SOON, || send(&room, "more").err().filter(|told| told.contains("text in its input box")));
    assert!(again.is_some() && visible_count(&room) == 1, "{}", room.capture().screen);
    assert!(model_requests(&room).is_empty(), "the model was asked");
    let entered = room.agtmux_command().args(["send", &room.pane, "--key", "Enter"]).status();
    assert!(entered.is_ok_and(|status| status.success()), "what the message says to do is possible");
    poll_until(SOON, || model_requests(&room).iter().any(|request| request.answer_ended.is_some()).then_some(()))
        .expect("it was taken");
    let said: Vec<_> = model_requests(&room)
        .into_iter()
        .flat_map(|request| request.prompt_parts)
        .filter(|part| part == TEXT)
        .collect();
    assert_eq!(said.len(), 1, "once");
}
