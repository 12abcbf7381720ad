//! Screens that are cut, mixed or random: judging them never panics and never gives a wrong definite state.

use std::sync::LazyLock;

use agtmux_agents::{AgentRegistry, CapturedScreen, Judgement, SavedScreen, judge};
use agtmux_core::state::State;
use proptest::prelude::*;

use crate::builtin;
use crate::screen_cases::{ScreenCase, cases};

static CASES: LazyLock<Vec<ScreenCase>> = LazyLock::new(cases);

fn judged(case: &ScreenCase, text: &[u8]) -> Judgement {
    let saved = SavedScreen { text, title: Some(&case.title), command: Some(&case.command) };
    judge(builtin(&case.agent), &saved)
}

fn is_right_or_unknown(case: &ScreenCase, judgement: &Judgement) -> bool {
    judgement.state == State::Unknown || case.accepts(judgement.state)
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn captures_keep_their_state_below_rows_of_other_captures() {
    let mut problems = Vec::new();
    for case in CASES.iter() {
        for other in CASES.iter().filter(|other| other.agent == case.agent).step_by(3) {
            // The reset keeps the styles of the upper rows from continuing into the lower ones.
            let text = [other.plain.as_slice(), b"\n\x1b[0m", case.best()].concat();
            let judgement = judged(case, &text);
            if !is_right_or_unknown(case, &judgement) {
                problems.push(format!("{} below {}: {judgement:?}", case.name, other.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn captures_keep_their_state_when_upper_rows_are_cut_off() {
    let mut problems = Vec::new();
    for case in CASES.iter() {
        let all = lines(case.best());
        for cut in 0..all.len() {
            let judgement = judged(case, &all[cut..].concat());
            if !is_right_or_unknown(case, &judgement) {
                problems.push(format!("{} without {cut} rows: {judgement:?}", case.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_megabyte_of_any_bytes_is_judged() {
    let noise: Vec<u8> = (0u32..1 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let pieces = ["\u{1b}[38;5;", "❯ 1. Yes\n", "────────────\n", "│ │ ", "> ", "(((((", "\n\n", "1. 2. 3. "];
    let mut screens: Vec<Vec<u8>> =
        pieces.iter().map(|piece| piece.repeat((1 << 20) / piece.len()).into_bytes()).collect();
    screens.push(noise);
    for text in &screens {
        for agent in AgentRegistry::builtin().agents() {
            judge(agent, &SavedScreen { text, title: None, command: None });
        }
    }
}

/// Pieces of text that rules match, so that random screens come close to real ones.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        "\n",
        "  ",
        "❯ ",
        "› ",
        "> ",
        "● ",
        "✽ Baking… (2s)",
        "esc to interrupt",
        "────────────",
        "╭────────╮",
        "╰────────╯",
        "│ ",
        "┃ ",
        "╹▀▀▀▀▀▀▀▀▀",
        "1. Yes",
        "2. No",
        "Esc to cancel",
        "Do you want to proceed?",
        "\x1b[2m",
        "\x1b[0m",
        "\x1b[7m",
        "\x1b[38;5;8m",
        "\x1b]0;",
        "\x1b[",
        "Worked for 6s • 06:47",
        "? for shortcuts",
        "Allow once   Reject",
        "△ Permission required",
        "→ alpha",
        "é",
        "\u{a0}",
    ]);
    prop_oneof![4 => known.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..12)]
}

proptest! {
    #[test]
    fn random_screens_are_judged_without_panic(pieces in prop::collection::vec(piece(), 0..80), title in prop::option::of(".{0,20}")) {
        let text = pieces.concat();
        let screen = CapturedScreen::parse(&text);
        prop_assert!(screen.rows().last().is_none_or(|row| !row.is_blank()));
        for agent in AgentRegistry::builtin().agents() {
            let judgement = judge(agent, &SavedScreen { text: &text, title: title.as_deref(), command: None });
            prop_assert_eq!(judgement.dialog.is_some(), judgement.dialog.is_some() && judgement.state.is_waiting());
            prop_assert!(judgement.evidence.is_none_or(|line| !line.contains('\x1b') && !line.contains('\n')));
            agent.typed_text(&screen);
        }
    }

    #[test]
    fn a_part_of_a_capture_is_never_judged_wrongly(
        case in 0..CASES.len(), other in 0..CASES.len(), from in 0usize..60, until in 0usize..60,
    ) {
        let (case, other) = (&CASES[case], &CASES[other]);
        // Rows of the same agent above the screen would be read as its last transcript entry.
        prop_assume!(case.agent != other.agent);
        let own = lines(case.best().trim_ascii_end());
        let foreign = lines(&other.plain);
        let (from, until) = (from.min(foreign.len()), until.min(own.len().saturating_sub(20)));
        let text = [foreign[from..].concat(), b"\n\x1b[0m".to_vec(), own[until..].concat()].concat();
        let judgement = judged(case, &text);
        prop_assert!(is_right_or_unknown(case, &judgement), "{} below {}: {:?}", case.name, other.name, judgement);
    }
}
