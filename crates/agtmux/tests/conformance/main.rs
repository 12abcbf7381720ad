//! The proof that agtmux is right about the real agents: each is installed from npm or PyPI, pointed at a mock model, led through
//! the scenes that matter, and what `agtmux watch` says meanwhile is compared with what really is so.
//!
//! `make test` plays the core; `make conformance` plays everything and writes `docs/conformance.md`.

mod agents;
mod drive;
mod hooks;
mod install;
mod judge;
mod mark;
mod options;
mod outcome;
mod patience;
mod record;
mod report;
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

/// What `make conformance` runs.
#[test]
#[ignore = "takes half an hour; `make conformance` runs it"]
fn everything() {
    let options = Options::from_environment();
    let (tried, outcomes) = run::everything(&options);
    let text = report::text(&tried, &outcomes);
    println!("{text}");
    if let Some(document) = &options.document {
        report::write(document, &text);
    }
    let bad = outcomes.iter().filter(|outcome| outcome.verdict() > Verdict::Unknown).count();
    assert_eq!(bad, 0, "scenes that are wrong, drifted or could not be tried");
}
