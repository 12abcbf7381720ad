//! The proof that agtmux is right about the real agents: each is installed from npm or PyPI, pointed at a mock model, led through
//! the scenes that matter, and what `agtmux watch` says meanwhile is compared with what really is so.
//!
//! `make test` plays the core; `make conformance` plays everything and writes `docs/conformance.md`.

mod agents;
#[path = "../support/trial_agtmux.rs"]
mod agtmux;
#[path = "../support/trial_bridge.rs"]
mod bridge;
mod drive;
mod hooks;
#[path = "../support/trial_http.rs"]
mod http;
mod install;
mod judge;
mod mark;
mod options;
mod outcome;
mod patience;
mod record;
mod report;
mod respond;
mod resume;
mod room;
mod run;
mod scenario;
mod send;
mod watch;
mod words;

use options::Options;
use outcome::Verdict;
use patience::until;
use words::Mode;

mod conformance_core {
    use super::*;

    #[track_caller]
    fn check(agent: &str, mode: Mode) {
        let outcomes = match run::core(agent, mode) {
            Ok(outcomes) => outcomes,
            Err(why) => {
                let count = scenario::all().iter().filter(|scenario| scenario.core).count();
                return run::say(&format!("skipped {count} scenes of {agent} {}: {why}", mode.word()));
            }
        };
        let bad: Vec<_> = outcomes.iter().filter(|outcome| outcome.verdict() != Verdict::Ok).collect();
        let lines: Vec<String> = bad.iter().map(|o| format!("{}: {}", o.scenario, o.complaints().join("; "))).collect();
        assert!(lines.is_empty(), "{agent} {}:\n{}", mode.word(), lines.join("\n"));
    }

    #[test]
    fn claude_with_hooks() {
        check("claude", Mode::Hooks);
    }

    #[test]
    fn claude_bare() {
        check("claude", Mode::Bare);
    }

    #[test]
    fn codex_with_hooks() {
        check("codex", Mode::Hooks);
    }

    #[test]
    fn codex_bare() {
        check("codex", Mode::Bare);
    }

    #[test]
    fn gemini_with_hooks() {
        check("gemini", Mode::Hooks);
    }

    #[test]
    fn gemini_bare() {
        check("gemini", Mode::Bare);
    }

    #[test]
    fn pi_with_hooks() {
        check("pi", Mode::Hooks);
    }

    #[test]
    fn pi_bare() {
        check("pi", Mode::Bare);
    }
}

mod conformance_resume {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        match resume::play(agent) {
            Ok(Ok(())) => {}
            Ok(Err(why)) => panic!("{agent}: {why}"),
            Err(why) => run::say(&format!("skipped the resuming of {agent}: {why}")),
        }
    }

    /// The others take their time.
    fn check_thoroughly(agent: &str) {
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
        check_thoroughly("gemini");
    }

    #[test]
    fn copilot_goes_on() {
        check_thoroughly("copilot");
    }

    #[test]
    fn opencode_goes_on() {
        check_thoroughly("opencode");
    }

    #[test]
    fn pi_goes_on() {
        check_thoroughly("pi");
    }

    #[test]
    fn qwen_goes_on() {
        check_thoroughly("qwen");
    }
}

mod conformance_respond {
    use super::*;

    #[track_caller]
    fn check(agent: &str) {
        if let Err(why) = respond::check(agent) {
            run::say(&format!("skipped the answers to {agent}: {why}"));
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
            run::say(&format!("skipped the answers to claude over the bridge: {why}"));
        }
    }

    /// In their long form the other agents, too.
    #[test]
    fn others() {
        if std::env::var_os("AGTMUX_SOAK").is_some() {
            respond::OTHERS.into_iter().for_each(check);
        }
    }
}

/// What `make conformance` runs.
#[test]
#[ignore = "takes half an hour; `make conformance` runs it"]
fn everything() {
    let options = Options::from_environment();
    let (tried, outcomes) = run::everything(&options);
    assert!(!outcomes.is_empty(), "there is no such agent, scene or mode: {options:?}");
    let text = report::text(&tried, &outcomes);
    println!("{text}");
    if let Some(document) = &options.document {
        report::write(document, &text);
    }
    let bad = outcomes.iter().filter(|outcome| outcome.verdict() > Verdict::Unknown).count();
    assert_eq!(bad, 0, "scenes that are wrong, drifted or could not be tried");
}
