//! Sending to a stopped agent fails, and nothing is reported as delivered.

use std::time::Duration;

use agtmux_testkit::real_agents::options::AgentVersionChoice;
use agtmux_testkit::real_agents::poll_until;
use agtmux_testkit::real_agents::sandbox::AgentSandbox;
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, LaunchMode};
use agtmux_testkit::{process, skip};
use rustix::process::Signal;

use super::send_session::{SendSession, model_requests, send};
use crate::conformance::driver::ScenarioDriver;
use crate::conformance::run::install_agent;

const SOON: Duration = Duration::from_secs(20);
const TEXT: &str = "a text for an agent that is stopped when it arrives";
/// A delay that is long enough to stop the agent between the paste and Enter.
const SLOW_ENTER: &str = "tmux_bridge.text_enter_delay_ms = 4000\n";

fn visible_count(sandbox: &AgentSandbox) -> usize {
    sandbox.capture().screen.matches(TEXT).count()
}

#[test]
fn enter_is_not_pressed_when_claude_is_stopped_after_the_paste() {
    let agent = real_agents::ALL[0];
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&why),
    };
    let round = SendSession { agent, program_dirs: &installed.program_dirs, mode: EvidenceMode::NoHooks };
    let sandbox = AgentSandbox::open_with(&round.sandbox_options(), SLOW_ENTER);
    let driver = ScenarioDriver { agent, sandbox: &sandbox, mode: EvidenceMode::NoHooks, recorder: None };
    driver.start(&LaunchMode::Plain).expect("the agent starts");
    let message = std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&sandbox, TEXT));
        poll_until(SOON, || (visible_count(&sandbox) == 1).then_some(())).expect("the input box shows the text");
        sandbox.job_pids().into_iter().for_each(|pid| {
            process::signal(pid, Signal::STOP);
        });
        sending.join().expect("the sender thread ends")
    });
    let message = message.expect_err("the send fails");
    assert!(message.contains("the agent is stopped; Enter was not pressed"), "{message}");
    // The shell has the terminal now. In this terminal mode it needs C-j instead of Enter.
    sandbox.type_text("fg");
    sandbox.press("C-j");
    // The agent redraws when it continues. The text is still in its box, so a second send is refused.
    let again =
        poll_until(SOON, || send(&sandbox, "more").err().filter(|message| message.contains("contains unsent text")));
    assert!(again.is_some() && visible_count(&sandbox) == 1, "{}", sandbox.capture().screen);
    assert!(model_requests(&sandbox).is_empty(), "the model received a request");
    let entered = sandbox.agtmux_command().args(["send", &sandbox.pane, "--key", "Enter"]).status();
    assert!(entered.is_ok_and(|status| status.success()), "pressing Enter, as the message suggests, works");
    poll_until(SOON, || model_requests(&sandbox).iter().any(|request| request.answer_ended.is_some()).then_some(()))
        .expect("the model answers");
    let texts: Vec<_> = model_requests(&sandbox)
        .into_iter()
        .flat_map(|request| request.prompt_parts)
        .filter(|part| part == TEXT)
        .collect();
    assert_eq!(texts.len(), 1, "once");
}
