use agtmux_api::wire::{ListSummary, StateTally};
use agtmux_core::state::State;

use super::colour::Colour;

pub(super) fn total(tally: &StateTally) -> u32 {
    tally.0.values().sum()
}

/// The counts that are not zero, the most urgent first: `2 waiting · 1 running`. Empty if all counts are zero.
pub(crate) fn counts(tally: &StateTally, colour: bool) -> String {
    let waiting = tally.of(State::WaitingApproval) + tally.of(State::WaitingInput);
    let parts = [
        (waiting, "waiting", State::WaitingInput),
        (tally.of(State::Error), "error", State::Error),
        (tally.of(State::Running), "running", State::Running),
        (tally.of(State::Completed), "completed", State::Completed),
        (tally.of(State::Idle), "idle", State::Idle),
        (tally.of(State::Unknown), "unknown", State::Unknown),
    ];
    let present = parts.into_iter().filter(|(n, ..)| *n > 0);
    let part = |(n, word, state): (u32, &str, State)| {
        let text = format!("{n} {word}");
        if colour { Colour::for_state(state).paint(&text) } else { text }
    };
    present.map(part).collect::<Vec<_>>().join(" · ")
}

/// A line with the number of agents and their states.
pub(crate) fn summary_line(summary: &ListSummary, colour: bool) -> String {
    match total(&summary.by_state) {
        0 => "no agents".to_owned(),
        1 => format!("1 agent: {}", counts(&summary.by_state, colour)),
        n => format!("{n} agents: {}", counts(&summary.by_state, colour)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_items::tally;

    #[test]
    fn the_most_urgent_count_comes_first() {
        let tally =
            tally(&[(State::Idle, 3), (State::Running, 1), (State::WaitingInput, 1), (State::WaitingApproval, 1)]);
        assert_eq!(counts(&tally, false), "2 waiting · 1 running · 3 idle");
        assert!(counts(&tally, true).starts_with("\x1b[33m2 waiting\x1b[0m"));
        assert_eq!(counts(&StateTally::default(), false), "");
    }

    #[test]
    fn one_agent_is_singular() {
        let summary = |n| ListSummary { by_state: tally(&[(State::Idle, n)]), ..ListSummary::default() };
        assert_eq!(summary_line(&summary(0), false), "no agents");
        assert_eq!(summary_line(&summary(1), false), "1 agent: 1 idle");
        assert_eq!(summary_line(&summary(2), false), "2 agents: 2 idle");
    }
}
