//! Checks the states that agtmux reports for the real agents. Each agent is installed from npm or PyPI, talks to a
//! mock model and runs through scenarios. The test compares the output of `agtmux watch` with the agent's actual
//! state.
//!
//! `make test` runs the core scenarios. `make conformance` runs all of them and writes `docs/conformance.md`.

mod driver;
mod failure_scenarios;
mod last;
mod mcp;
mod new;
mod outcomes;
mod record;
mod report;
mod respond;
mod resume;
mod run;
mod scenario;
mod send;
mod send_wait;
mod sleep;
mod step_verdict;

use agtmux_testkit::real_agents;
use agtmux_testkit::real_agents::options::{AgentVersionChoice, ConformanceOptions};
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::{skip, skip_outside_soak};
use outcomes::ConformanceVerdict;

mod core_scenarios {
    use super::*;

    #[track_caller]
    fn check(agent: &str, mode: EvidenceMode) {
        check_version(agent, AgentVersionChoice::Pinned, mode);
    }

    #[track_caller]
    fn check_version(agent: &str, version: AgentVersionChoice<'_>, mode: EvidenceMode) {
        let outcomes = match run::run_core(agent, version, mode) {
            Ok(outcomes) => outcomes,
            Err(why) => {
                let count = scenario::all().iter().filter(|scenario| scenario.in_core).count();
                return skip(&format!("{count} scenarios: {why}"));
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
    fn claude_without_hooks() {
        check("claude", EvidenceMode::NoHooks);
    }

    #[test]
    fn codex_with_hooks() {
        check("codex", EvidenceMode::Hooks);
    }

    #[test]
    fn codex_without_hooks() {
        check("codex", EvidenceMode::NoHooks);
    }

    #[test]
    fn gemini_with_hooks() {
        check("gemini", EvidenceMode::Hooks);
    }

    #[test]
    fn gemini_without_hooks() {
        check("gemini", EvidenceMode::NoHooks);
    }

    #[test]
    fn other_versions_with_and_without_hooks() {
        if skip_outside_soak() {
            return;
        }
        for agent in real_agents::ALL {
            for version in agent.other_versions() {
                for mode in agent.modes() {
                    check_version(agent.name(), AgentVersionChoice::Exact(version), *mode);
                }
            }
        }
    }

    #[test]
    fn pi_with_hooks() {
        check("pi", EvidenceMode::Hooks);
    }

    #[test]
    fn pi_without_hooks() {
        check("pi", EvidenceMode::NoHooks);
    }
}

mod resumed_sessions {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        match resume::check_resume(agent) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => panic!("{agent}: {why}"),
            Err(why) => skip(&why),
        }
    }

    /// Runs the slower agents only when AGTMUX_SOAK is set.
    fn check_in_soak_run(agent: &str) {
        if !skip_outside_soak() {
            check(agent);
        }
    }

    #[test]
    fn claude_session_is_resumed() {
        check("claude");
    }

    #[test]
    fn codex_session_is_resumed() {
        check("codex");
    }

    #[test]
    fn gemini_session_is_resumed() {
        check_in_soak_run("gemini");
    }

    #[test]
    fn copilot_session_is_resumed() {
        check_in_soak_run("copilot");
    }

    #[test]
    fn opencode_session_is_resumed() {
        check_in_soak_run("opencode");
    }

    #[test]
    fn pi_session_is_resumed() {
        check_in_soak_run("pi");
    }

    #[test]
    fn qwen_session_is_resumed() {
        check_in_soak_run("qwen");
    }
}

mod answered_dialogs {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        if let Err(why) = respond::check(agent) {
            skip(&format!("{agent}: {why}"));
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

    /// Answers through the HTTP paths of the tmux-bridge document.
    #[test]
    fn claude_over_the_bridge() {
        if let Err(why) = respond::check_bridge() {
            skip(&why);
        }
    }

    /// Answers in a browser with the size of a phone.
    #[test]
    fn claude_on_the_phone() {
        if let Err(why) = respond::check_web() {
            skip(&why);
        }
    }

    /// Dialogs that are swapped at random moments: 5 of them, 200 when AGTMUX_SOAK is set.
    #[test]
    fn claude_with_swapped_dialogs() {
        if let Err(why) = respond::check_swaps() {
            skip(&why);
        }
    }

    #[test]
    fn codex_in_the_interface() {
        if let Err(why) = respond::check_in_the_interface("codex") {
            skip(&why);
        }
    }

    #[test]
    fn claude_in_the_interface() {
        if let Err(why) = respond::check_in_the_interface("claude") {
            skip(&why);
        }
    }

    /// Dialogs that are swapped before a key of the interface: 2 of them, 100 when AGTMUX_SOAK is set.
    #[test]
    fn claude_with_swapped_dialogs_in_the_interface() {
        if let Err(why) = respond::check_swaps_in_the_interface() {
            skip(&why);
        }
    }

    /// Only the screen shows these questions: 3 of them, 20 when AGTMUX_SOAK is set.
    #[test]
    fn claude_questions_without_hooks() {
        if let Err(why) = respond::check_questions_without_hooks() {
            skip(&why);
        }
    }

    /// The other agents run only when AGTMUX_SOAK is set.
    #[test]
    fn agents_of_the_soak_run() {
        if !skip_outside_soak() {
            respond::SOAK_ONLY_AGENTS.into_iter().for_each(check);
        }
    }
}

/// `make conformance` runs this test.
#[test]
#[ignore = "takes half an hour; `make conformance` runs it"]
fn every_agent_in_every_scenario() {
    let options = ConformanceOptions::from_environment();
    let (tried, outcomes) = run::run_all(&options);
    assert!(!outcomes.is_empty(), "no agent, scenario or mode matches {options:?}");
    let text = report::markdown(&tried, &outcomes);
    println!("{text}");
    if let Some(document) = &options.document {
        report::write(document, &text);
    }
    let bad = outcomes.iter().filter(|outcome| outcome.verdict() > ConformanceVerdict::Unknown).count();
    assert_eq!(bad, 0, "scenarios that are wrong, drifted or skipped");
}

/// Real agents use the MCP server.
mod mcp_clients {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        if let Err(why) = mcp::check(agent) {
            skip(&why);
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
}
