//! The proof that agtmux is right about the real agents: each is installed from npm or PyPI, pointed at a mock model, led through
//! the scenes that matter, and what `agtmux watch` says meanwhile is compared with what really is so.
//!
//! `make test` plays the core; `make conformance` plays everything and writes `docs/conformance.md`.

mod agents;
#[path = "../support/trial_agtmux.rs"]
mod agtmux;
#[path = "../support/trial_bridge.rs"]
mod bridge;
mod driver;
mod hooks;
#[path = "../support/trial_http.rs"]
mod http;
mod install;
mod options;
mod outcomes;
mod polling;
mod record;
mod report;
mod respond;
mod resume;
mod run;
mod sandbox;
mod scenario;
mod screen_pattern;
mod send;
mod states;
mod step_verdict;
mod watch;

use options::ConformanceOptions;
use outcomes::ConformanceVerdict;
use polling::poll_until;
use states::EvidenceMode;

mod conformance_core {
    use super::*;

    #[track_caller]
    fn check(agent: &str, mode: EvidenceMode) {
        let outcomes = match run::run_core(agent, mode) {
            Ok(outcomes) => outcomes,
            Err(why) => {
                let count = scenario::all().iter().filter(|scenario| scenario.in_core).count();
                return run::print_line(&format!("skipped {count} scenes of {agent} {}: {why}", mode.as_str()));
            }
        };
        let bad: Vec<_> = outcomes.iter().filter(|outcome| outcome.verdict() != ConformanceVerdict::Ok).collect();
        let lines: Vec<String> = bad.iter().map(|o| format!("{}: {}", o.scenario, o.problems().join("; "))).collect();
        assert!(lines.is_empty(), "{agent} {}:\n{}", mode.as_str(), lines.join("\n"));
    }

    #[test]
    fn claude_with_hooks() {
        check("claude", EvidenceMode::Hooks);
    }

    #[test]
    fn claude_bare() {
        check("claude", EvidenceMode::NoHooks);
    }

    #[test]
    fn codex_with_hooks() {
        check("codex", EvidenceMode::Hooks);
    }

    #[test]
    fn codex_bare() {
        check("codex", EvidenceMode::NoHooks);
    }

    #[test]
    fn gemini_with_hooks() {
        check("gemini", EvidenceMode::Hooks);
    }

    #[test]
    fn gemini_bare() {
        check("gemini", EvidenceMode::NoHooks);
    }

    #[test]
    fn pi_with_hooks() {
        check("pi", EvidenceMode::Hooks);
    }

    #[test]
    fn pi_bare() {
        check("pi", EvidenceMode::NoHooks);
    }
}

mod conformance_resume {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        match resume::check_resume(agent) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => panic!("{agent}: {why}"),
            Err(why) => run::print_line(&format!("skipped the resuming of {agent}: {why}")),
        }
    }

    /// The others take their time.
    fn check_in_soak_run(agent: &str) {
        if std::env::var_os("AGTMUX_SOAK").is_some() {
            check(agent);
        }
    }

    #[test]
    fn claude_goes_on() {
        check("claude");
    }

    #[test]
    fn codex_goes_on() {
        check("codex");
    }

    #[test]
    fn gemini_goes_on() {
        check_in_soak_run("gemini");
    }

    #[test]
    fn copilot_goes_on() {
        check_in_soak_run("copilot");
    }

    #[test]
    fn opencode_goes_on() {
        check_in_soak_run("opencode");
    }

    #[test]
    fn pi_goes_on() {
        check_in_soak_run("pi");
    }

    #[test]
    fn qwen_goes_on() {
        check_in_soak_run("qwen");
    }
}

mod conformance_respond {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        if let Err(why) = respond::check(agent) {
            run::print_line(&format!("skipped the answers to {agent}: {why}"));
        }
    }

    #[test]
    fn claude() {
        check("claude");
    }

    #[test]
    fn codex() {
        check("codex");
    }

    #[test]
    fn gemini() {
        check("gemini");
    }

    #[test]
    fn opencode() {
        check("opencode");
    }

    /// Over the paths of the tmux-bridge document.
    #[test]
    fn claude_over_the_bridge() {
        if let Err(why) = respond::check_bridge() {
            run::print_line(&format!("skipped the answers to claude over the bridge: {why}"));
        }
    }

    /// In their long form the other agents, too.
    #[test]
    fn others() {
        if std::env::var_os("AGTMUX_SOAK").is_some() {
            respond::SOAK_ONLY_AGENTS.into_iter().for_each(check);
        }
    }
}

/// What `make conformance` runs.
#[test]
#[ignore = "takes half an hour; `make conformance` runs it"]
fn everything() {
    let options = ConformanceOptions::from_environment();
    let (tried, outcomes) = run::run_all(&options);
    assert!(!outcomes.is_empty(), "there is no such agent, scene or mode: {options:?}");
    let text = report::markdown(&tried, &outcomes);
    println!("{text}");
    if let Some(document) = &options.document {
        report::write(document, &text);
    }
    let bad = outcomes.iter().filter(|outcome| outcome.verdict() > ConformanceVerdict::Unknown).count();
    assert_eq!(bad, 0, "scenes that are wrong, drifted or could not be tried");
}
