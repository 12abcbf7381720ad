//! Sends many kinds of text to the real agents. Each text must arrive once and unchanged.

mod sample_texts;
mod send_session;
mod stopped_agent;
mod tally;

pub(super) use sample_texts::arrived_unchanged;

use agtmux_testkit::agtmux::soak;
use agtmux_testkit::real_agents::options::AgentVersionChoice;
use agtmux_testkit::real_agents::states::EvidenceMode;
use agtmux_testkit::real_agents::{self, ConformanceAgent};
use agtmux_testkit::{skip, skip_outside_soak};
use sample_texts::SAMPLE_KINDS;
use send_session::SendSession;
use tally::SendTally;

use super::run::{install_agent, print_line};

/// A new agent session starts after this many texts.
const TEXTS_PER_SESSION: usize = 20;

/// Sends the texts with these numbers to the agent. Problems are collected and fail the test at its end.
#[track_caller]
fn check(agent: &str, mode: EvidenceMode, numbers: std::ops::Range<usize>) {
    let agent: &'static dyn ConformanceAgent =
        real_agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let name = format!("{} {}", agent.name(), mode.as_str());
    let installed = match install_agent(agent, AgentVersionChoice::Pinned) {
        Ok((installed, _)) => installed,
        Err(why) => return skip(&format!("{} sends: {why}", numbers.len())),
    };
    let mut tally = SendTally::default();
    let all: Vec<usize> = numbers.collect();
    for session in all.chunks(TEXTS_PER_SESSION) {
        SendSession { agent, program_dirs: &installed.program_dirs, mode }.send_all(session, &mut tally);
        print_line(&format!("{name}, {}", tally));
    }
    assert!(tally.faults.is_empty(), "{name}: {tally}\n{}", tally.faults.join("\n"));
    assert_eq!(tally.confirmed(), all.len(), "{name}: {tally}");
    if mode == EvidenceMode::Hooks {
        // Other agents have no prompt event or send it late.
        let has_prompt_event = matches!(agent.name(), "claude" | "codex" | "gemini");
        assert!(
            !has_prompt_event || tally.event_confirmations() * 2 > all.len(),
            "most sends should be confirmed by the agent's own event: {name}: {tally}"
        );
    }
}

/// The numbers of the texts to send in this mode. The first half is sent with hooks, the rest without. A soak run sends
/// every kind of text in both modes, which takes three to six minutes per agent.
fn sample_numbers(mode: EvidenceMode) -> std::ops::Range<usize> {
    match (soak(), mode) {
        (false, EvidenceMode::Hooks) => 0..8,
        (false, EvidenceMode::NoHooks) => 8..SAMPLE_KINDS,
        (true, EvidenceMode::Hooks) => 0..100,
        (true, EvidenceMode::NoHooks) => 100..200,
    }
}

/// Sends fewer texts to less common agents, and only when AGTMUX_SOAK is set.
#[track_caller]
fn check_in_soak_run(agent: &str, mode: EvidenceMode) {
    if !skip_outside_soak() {
        check(agent, mode, 0..SAMPLE_KINDS);
    }
}

mod sends {
    use super::*;

    #[test]
    fn copilot_with_hooks() {
        check_in_soak_run("copilot", EvidenceMode::Hooks);
    }

    #[test]
    fn copilot_without_hooks() {
        check_in_soak_run("copilot", EvidenceMode::NoHooks);
    }

    #[test]
    fn opencode_with_hooks() {
        check_in_soak_run("opencode", EvidenceMode::Hooks);
    }

    #[test]
    fn opencode_without_hooks() {
        check_in_soak_run("opencode", EvidenceMode::NoHooks);
    }

    #[test]
    fn pi_with_hooks() {
        check_in_soak_run("pi", EvidenceMode::Hooks);
    }

    #[test]
    fn pi_without_hooks() {
        check_in_soak_run("pi", EvidenceMode::NoHooks);
    }

    #[test]
    fn qwen_with_hooks() {
        check_in_soak_run("qwen", EvidenceMode::Hooks);
    }

    #[test]
    fn qwen_without_hooks() {
        check_in_soak_run("qwen", EvidenceMode::NoHooks);
    }

    #[test]
    fn aider_without_hooks() {
        check_in_soak_run("aider", EvidenceMode::NoHooks);
    }

    #[test]
    fn claude_with_hooks() {
        check("claude", EvidenceMode::Hooks, sample_numbers(EvidenceMode::Hooks));
    }

    #[test]
    fn claude_without_hooks() {
        check("claude", EvidenceMode::NoHooks, sample_numbers(EvidenceMode::NoHooks));
    }

    #[test]
    fn codex_with_hooks() {
        check("codex", EvidenceMode::Hooks, sample_numbers(EvidenceMode::Hooks));
    }

    #[test]
    fn codex_without_hooks() {
        check("codex", EvidenceMode::NoHooks, sample_numbers(EvidenceMode::NoHooks));
    }

    #[test]
    fn gemini_with_hooks() {
        check("gemini", EvidenceMode::Hooks, sample_numbers(EvidenceMode::Hooks));
    }

    #[test]
    fn gemini_without_hooks() {
        check("gemini", EvidenceMode::NoHooks, sample_numbers(EvidenceMode::NoHooks));
    }
}
