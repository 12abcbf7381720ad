//! Checks that run only with AGTMUX_SOAK: free text, questions, plans and trust dialogs.

use std::path::PathBuf;

use agtmux_testkit::real_agents::states::{EvidenceMode, ScreenState};
use agtmux_testkit::real_agents::{ConformanceAgent, LaunchMode};

use super::{DialogTester, with_shell, with_started_agent};

/// Agents that ask questions only in plan mode.
const ASKS_ONLY_IN_PLAN_MODE: [&str; 1] = ["codex"];

const SHOWS_TRUST_DIALOG: [&str; 3] = ["claude", "codex", "gemini"];

pub(super) fn check(agent: &'static dyn ConformanceAgent, programs: &[PathBuf]) {
    if agent.name() == "aider" {
        return;
    }
    with_started_agent(agent, programs, &LaunchMode::Plain, &|tester| {
        check_free_text(tester);
        if !ASKS_ONLY_IN_PLAN_MODE.contains(&agent.name()) {
            check_questions(tester);
        }
    });
    if ASKS_ONLY_IN_PLAN_MODE.contains(&agent.name()) {
        with_started_agent(agent, programs, &LaunchMode::Plan, &check_questions);
    }
    if SHOWS_TRUST_DIALOG.contains(&agent.name()) {
        with_shell(agent, programs, false, &check_trust);
    }
    if agent.screen_pattern(ScreenState::Plan).is_some() && agent.modes().contains(&EvidenceMode::Hooks) {
        with_started_agent(agent, programs, &LaunchMode::Plan, &check_plan);
    }
}

/// Free text reaches the model, and the requested command does not run.
fn check_free_text(agent: &DialogTester<'_>) {
    agent.prompt_for_dialog("RUN mkdir unwanted", "unwanted");
    agent.answer_confirmed(&["--text", "SAY take the other one; it is #{better}"]);
    agent.wait_for_model_text("take the other one; it is #{better}");
    assert!(!agent.file_exists("unwanted"));
}

fn check_questions(agent: &DialogTester<'_>) {
    agent.prompt_for_dialog("ASK once", "colour");
    agent.answer_confirmed(&["2"]);
    agent.wait_for_model_text("Blue");
    let takes_words = agent.driver.agent.name() != "copilot";
    agent.prompt_for_dialog("ASK twice", "colour");
    if takes_words {
        agent.answer_confirmed(&["--text", "a green that is mine"]);
        agent.wait_for_model_text("a green that is mine");
        agent.prompt_for_dialog("ASK again", "colour");
    } else {
        let (succeeded, _, error) = agent.respond(&["--text", "a green that is mine"]);
        assert!(!succeeded && error.contains("accepts no text") && error.contains("accepted answers"), "{error}");
    }
    agent.answer_confirmed(&["deny"]);
}

fn check_plan(agent: &DialogTester<'_>) {
    agent.prompt_for_dialog("PLAN once", "plan");
    agent.answer_confirmed(&["deny"]);
    agent.prompt_for_dialog("PLAN twice", "plan");
    let response = agent.answer_confirmed(&["approve"]);
    let answered = response["answered"].as_str().expect("a label").to_lowercase();
    assert!(
        !answered.contains("auto") && !answered.contains("bypass"),
        "approve chose an option that allows more than the plan: {response}"
    );
    agent.wait_for_screen(ScreenState::Done);
}

/// Some agents preselect "No".
fn check_trust(agent: &DialogTester<'_>) {
    agent.sandbox().launch(agent.driver.agent, &LaunchMode::Plain);
    agent.wait_for_screen(ScreenState::Trust);
    agent.wait_for_dialog("rust");
    agent.answer_confirmed(&["approve"]);
    agent.wait_for_screen(ScreenState::Ready);
}
