//! Texts of every sort, sent to the real agents: each arrives once, and is what was sent.

mod round;
mod stopped;
mod tally;
mod texts;

use super::agents::{self, Agent};
use super::options::Version;
use super::run::{provide, say};
use super::words::Mode;
use round::Round;
use tally::Tally;
use texts::ROUND;

/// A fresh session after so many.
const SESSION: usize = 20;

/// The whole of it takes three to six minutes for each agent.
fn is_soak() -> bool {
    std::env::var_os("AGTMUX_SOAK").is_some_and(|value| !value.is_empty())
}

/// These numbers of texts to this agent. Everything that went wrong fails the test, at its end.
#[track_caller]
fn check(agent: &str, mode: Mode, numbers: std::ops::Range<usize>) {
    let agent: &'static dyn Agent = agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let name = format!("{} {}", agent.name(), mode.word());
    let installed = match provide(agent, Version::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return say(&format!("skipped {} sends to {name}: {why}", numbers.len())),
    };
    let mut tally = Tally::default();
    let all: Vec<usize> = numbers.collect();
    for session in all.chunks(SESSION) {
        Round { agent, programs: &installed.programs, mode }.play(session, &mut tally);
        say(&format!("{name}, {}", tally));
    }
    assert!(tally.faults.is_empty(), "{name}: {tally}\n{}", tally.faults.join("\n"));
    assert_eq!(tally.confirmed(), all.len(), "{name}: {tally}");
    if mode == Mode::Hooks {
        // Others have no such event, or are slow to tell.
        let tells = matches!(agent.name(), "claude" | "codex" | "gemini");
        assert!(
            !tells || tally.confirmed_by_event() * 2 > all.len(),
            "the agent's own word comes first: {name}: {tally}"
        );
    }
}

/// The first half with hooks, the rest without; each sort of text is met in both forms.
fn share(mode: Mode) -> std::ops::Range<usize> {
    match (is_soak(), mode) {
        (false, Mode::Hooks) => 0..8,
        (false, Mode::Bare) => 8..ROUND,
        (true, Mode::Hooks) => 0..100,
        (true, Mode::Bare) => 100..200,
    }
}

/// Those whom fewer people use get fewer, and only in the long form.
#[track_caller]
fn check_some(agent: &str, mode: Mode) {
    match is_soak() {
        true => check(agent, mode, 0..ROUND),
        false => say(&format!("skipped {ROUND} sends to {agent} {}: AGTMUX_SOAK is not set", mode.word())),
    }
}

mod sends {
    use super::*;

    #[test]
    fn copilot_with_hooks() {
        check_some("copilot", Mode::Hooks);
    }

    #[test]
    fn copilot_bare() {
        check_some("copilot", Mode::Bare);
    }

    #[test]
    fn opencode_with_hooks() {
        check_some("opencode", Mode::Hooks);
    }

    #[test]
    fn opencode_bare() {
        check_some("opencode", Mode::Bare);
    }

    #[test]
    fn pi_with_hooks() {
        check_some("pi", Mode::Hooks);
    }

    #[test]
    fn pi_bare() {
        check_some("pi", Mode::Bare);
    }

    #[test]
    fn qwen_with_hooks() {
        check_some("qwen", Mode::Hooks);
    }

    #[test]
    fn qwen_bare() {
        check_some("qwen", Mode::Bare);
    }

    #[test]
    fn aider_bare() {
        check_some("aider", Mode::Bare);
    }

    #[test]
    fn claude_with_hooks() {
        check("claude", Mode::Hooks, share(Mode::Hooks));
    }

    #[test]
    fn claude_bare() {
        check("claude", Mode::Bare, share(Mode::Bare));
    }

    #[test]
    fn codex_with_hooks() {
        check("codex", Mode::Hooks, share(Mode::Hooks));
    }

    #[test]
    fn codex_bare() {
        check("codex", Mode::Bare, share(Mode::Bare));
    }

    #[test]
    fn gemini_with_hooks() {
        check("gemini", Mode::Hooks, share(Mode::Hooks));
    }

    #[test]
    fn gemini_bare() {
        check("gemini", Mode::Bare, share(Mode::Bare));
    }
}
