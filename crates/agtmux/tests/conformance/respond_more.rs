//! The long form: words, questions, plans and trust.

use std::path::PathBuf;

use super::super::agents::{Agent, Launch};
use super::super::words::{Mode, Scene};
use super::{Respondent, in_room, in_shell};

/// Those that ask questions only while they plan.
const ASKS_IN_PLANS: [&str; 1] = ["codex"];

const ASKS_FOR_TRUST: [&str; 3] = ["claude", "codex", "gemini"];

pub(super) fn check(agent: &'static dyn Agent, programs: &[PathBuf]) {
    if agent.name() == "aider" {
        return;
    }
    in_room(agent, programs, &Launch::Plain, &|room| {
        words(room);
        if !ASKS_IN_PLANS.contains(&agent.name()) {
            questions(room);
        }
    });
    if ASKS_IN_PLANS.contains(&agent.name()) {
        in_room(agent, programs, &Launch::Plan, &questions);
    }
    if ASKS_FOR_TRUST.contains(&agent.name()) {
        in_shell(agent, programs, false, &trust);
    }
    if agent.mark(Scene::Plan).is_some() && agent.modes().contains(&Mode::Hooks) {
        in_room(agent, programs, &Launch::Plan, &plan);
    }
}

/// They reach the model, and what was asked for is not done.
fn words(agent: &Respondent<'_>) {
    agent.asks("RUN mkdir unwanted", "unwanted");
    agent.answers(&["--text", "SAY take the other one; it is #{better}"]);
    agent.hears("take the other one; it is #{better}");
    assert!(!agent.has("unwanted"));
}

fn questions(agent: &Respondent<'_>) {
    agent.asks("ASK once", "colour");
    agent.answers(&["2"]);
    agent.hears("Blue");
    let takes_words = agent.driver.agent.name() != "copilot";
    agent.asks("ASK twice", "colour");
    if takes_words {
        agent.answers(&["--text", "a green that is mine"]);
        agent.hears("a green that is mine");
        agent.asks("ASK again", "colour");
    } else {
        let (worked, _, error) = agent.respond(&["--text", "a green that is mine"]);
        assert!(!worked && error.contains("takes no words") && error.contains("it takes"), "{error}");
    }
    agent.answers(&["deny"]);
}

fn plan(agent: &Respondent<'_>) {
    agent.asks("PLAN once", "plan");
    agent.answers(&["deny"]);
    agent.asks("PLAN twice", "plan");
    let said = agent.answers(&["approve"]);
    let answered = said["answered"].as_str().expect("a label").to_lowercase();
    assert!(!answered.contains("auto") && !answered.contains("bypass"), "it allows more than the plan: {said}");
    agent.shows(Scene::Done);
}

/// "No" is selected in some of these.
fn trust(agent: &Respondent<'_>) {
    agent.room().launch(agent.driver.agent, &Launch::Plain);
    agent.shows(Scene::Trust);
    agent.asked("rust");
    agent.answers(&["approve"]);
    agent.shows(Scene::Ready);
}
