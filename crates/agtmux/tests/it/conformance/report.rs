//! The report of a run, as Markdown.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use agtmux_testkit::real_agents::states::EvidenceMode;

use super::outcomes::{ConformanceVerdict, ScenarioOutcome};
use super::run::TestedAgent;

const PREFACE: &str = "# Conformance

This page compares the states that agtmux reports with the actual states of the real agents. Each agent runs through the
scenarios below with a scripted mock model on loopback. The actual state is read from that model, from the agent's screen and
from its process, never from agtmux. `hooks` means that agtmux's hooks are installed in the agent's settings, `no-hooks` that
they are not. `make conformance` writes this page.

- `ok N`: every step was reported correctly. N is the longest delay of a step in milliseconds, from the actual change to the
  line of `agtmux watch`. It is negative where agtmux reported the change before the screen showed it. A state in brackets was
  reported instead of a more precise one, because the agent shows nothing that distinguishes the two.
- `unknown`: agtmux reported `unknown`.
- `wrong`: agtmux reported a wrong state, even if only briefly.
- `drift`: the agent behaved differently from the pinned version, so the scenario could not finish.
- `skip`: the scenario could not run.

";

/// Renders the report as Markdown.
pub(crate) fn markdown(tried: &[TestedAgent], outcomes: &[ScenarioOutcome]) -> String {
    let mut text = String::from(PREFACE);
    for agent in tried {
        let _ = writeln!(text, "- {} {}{}", agent.name, agent.version, agent.note);
    }
    text += "\n";
    table(&mut text, tried, outcomes);
    totals(&mut text, outcomes);
    problems(&mut text, outcomes);
    text
}

fn table(text: &mut String, tried: &[TestedAgent], outcomes: &[ScenarioOutcome]) {
    let mut scenarios: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !scenarios.contains(&outcome.scenario) {
            scenarios.push(outcome.scenario);
        }
    }
    let columns: Vec<(&str, EvidenceMode)> =
        tried.iter().flat_map(|agent| agent.modes.iter().map(|mode| (agent.name, *mode))).collect();
    *text += "| scenario |";
    columns.iter().for_each(|(agent, mode)| *text += &format!(" {agent} {} |", mode.as_str()));
    *text += &format!("\n|---|{}\n", "---|".repeat(columns.len()));
    for scenario in scenarios {
        *text += &format!("| {scenario} |");
        for (agent, mode) in &columns {
            let found = outcomes.iter().find(|o| (o.agent, o.mode, o.scenario) == (*agent, *mode, scenario));
            *text += &format!(" {} |", found.map_or_else(|| "–".into(), cell));
        }
        *text += "\n";
    }
}

fn cell(outcome: &ScenarioOutcome) -> String {
    match (outcome.verdict(), outcome.lag()) {
        (ConformanceVerdict::Ok, Some(lag)) => format!("ok {lag}{}", second_best_state(outcome)),
        (verdict, _) => verdict.to_string(),
    }
}

/// The first reported state that its step accepts, but not as the best state. Empty if there is none.
fn second_best_state(outcome: &ScenarioOutcome) -> String {
    let lesser = outcome.steps.iter().find(|step| step.accepted.first() != Some(&step.reported));
    lesser.map(|step| format!(" ({})", step.reported)).unwrap_or_default()
}

fn totals(text: &mut String, outcomes: &[ScenarioOutcome]) {
    *text += "\n";
    for mode in EvidenceMode::ALL {
        let of_mode: Vec<&ScenarioOutcome> = outcomes.iter().filter(|outcome| outcome.mode == mode).collect();
        if of_mode.is_empty() {
            continue;
        }
        let count = |verdict| of_mode.iter().filter(|outcome| outcome.verdict() == verdict).count();
        let mut lags: Vec<i64> = of_mode.iter().flat_map(|o| o.steps.iter().filter_map(|step| step.lag)).collect();
        lags.sort_unstable();
        let at = |percent: usize| lags.get((lags.len() * percent / 100).min(lags.len().saturating_sub(1)));
        let ms = |lag: Option<&i64>| lag.map_or_else(|| "–".into(), |lag| format!("{lag} ms"));
        let _ = writeln!(
            text,
            "{}: {} ok, {} unknown, {} wrong, {} drift, {} skip; delay of a step p50 {}, p95 {}, max {}\n",
            mode.as_str(),
            count(ConformanceVerdict::Ok),
            count(ConformanceVerdict::Unknown),
            count(ConformanceVerdict::Wrong),
            count(ConformanceVerdict::Drift),
            count(ConformanceVerdict::Skip),
            ms(at(50)),
            ms(at(95)),
            ms(lags.last())
        );
    }
}

fn problems(text: &mut String, outcomes: &[ScenarioOutcome]) {
    let with: Vec<&ScenarioOutcome> =
        outcomes.iter().filter(|outcome| outcome.verdict() != ConformanceVerdict::Ok).collect();
    if with.is_empty() {
        return;
    }
    *text += "## Problems\n\n";
    for outcome in with {
        for line in outcome.problems() {
            // The first line is enough here; the terminal output has the whole screen.
            let line = line.lines().next().unwrap_or_default();
            let _ = writeln!(text, "- {} {} {}: {line}", outcome.agent, outcome.scenario, outcome.mode.as_str());
        }
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
