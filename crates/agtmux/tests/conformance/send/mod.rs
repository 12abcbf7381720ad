//! Texts of every sort, sent to the real agents: each arrives once, and is what was sent.

mod round;
mod tally;
mod texts;

use super::agents::{self, Agent};
use super::run::{provide, say};
use super::words::Mode;
use round::Round;
use tally::Tally;
use texts::ROUND;

/// A fresh session after so many.
const SESSION: usize = 20;

/// The whole of it takes half an hour for each agent.
fn is_soak() -> bool {
    std::env::var_os("AGTMUX_SOAK").is_some_and(|value| !value.is_empty())
}

/// These numbers of texts to this agent. Everything that went wrong fails the test, at its end.
#[track_caller]
fn check(agent: &str, mode: Mode, numbers: std::ops::Range<usize>) {
    let agent: &'static dyn Agent = agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let name = format!("{} {}", agent.name(), mode.word());
    let installed = match provide(agent, false) {
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
        assert!(tally.confirmed_by_event() * 2 > all.len(), "the agent's own word comes first: {name}: {tally}");
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

mod sends {
    use super::*;

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

#[test]
#[ignore = "lab"]
fn lab() {
    let agent = std::env::var("LAB_AGENT").unwrap();
    let mode = if std::env::var_os("LAB_HOOKS").is_some() { Mode::Hooks } else { Mode::Bare };
    let agent: &'static dyn Agent = agents::ALL.into_iter().find(|known| known.name() == agent).expect("a known agent");
    let (installed, _) = provide(agent, false).unwrap();
    let plan = crate::room::Plan {
        agent,
        programs: &installed.programs,
        mode,
        trusted: true,
        size: crate::options::Size(120, 40),
        keeps: false,
    };
    let room = crate::room::Room::open(&plan);
    room.launch(agent, &crate::agents::Launch::Plain);
    let dir = room.place.project.parent().unwrap().display().to_string();
    std::fs::write(format!("/tmp/wt/lab-{}", agent.name()), format!("{dir}\n")).unwrap();
    let stop = format!("/tmp/wt/lab-{}.stop", agent.name());
    while !std::path::Path::new(&stop).exists() {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::fs::remove_file(stop).unwrap();
    for request in room.model.requests().into_iter().filter(|r| !r.side) {
        println!("REQUEST {:?}", request.said.last());
    }
}
