//! The end of a turn, as the status file and the screens of Claude Code show it to an agtmux without hooks.

use agtmux_core::ledger::Ledger;
use agtmux_core::ordering::OrderKey;
use agtmux_core::state::State;

use super::*;
use crate::CapturedScreen;

/// The longest time from a change of the status file until the observer captures the screen, in milliseconds.
const CAPTURE_DELAY: i64 = 400;
/// An observation from a screen counts from this many milliseconds before the capture.
const DRAW_LAG: i64 = 250;

/// The states that agtmux reports during one turn, each listed only when it changes.
struct TurnTimeline {
    claude: AdapterTest,
    ledger: Ledger,
    states: Vec<State>,
}

impl TurnTimeline {
    fn new() -> Self {
        Self { claude: AdapterTest::new("claude"), ledger: Ledger::default(), states: Vec::new() }
    }

    fn record(&mut self, observations: Vec<Observation>) {
        let now = self.claude.now;
        for observation in observations {
            let order = OrderKey { event_time: observation.as_of, ingested_at: now, ..OrderKey::default() };
            self.ledger.record(Observation { order, ..observation }, now);
        }
        let state = self.ledger.verdict(now).state;
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
    }

    fn status(&mut self, status: &str) {
        let now = self.claude.now;
        let payload = json!({"status": status, "statusUpdatedAt": now.as_millisecond()});
        let event = NativeEvent { source: Source::File, event_type: "status", payload: &payload, at: now };
        let observations = reduce("claude", &mut self.claude.memory, Evidence::Event(event), now);
        self.record(observations);
    }

    fn screen(&mut self, name: &str) {
        let path = format!("{}/evidence/screens/claude/{name}.ansi", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let reading = builtin("claude").read_screen(&CapturedScreen::parse(&text), Some("✳ Claude Code"));
        let as_of = self.claude.now - SignedDuration::from_millis(DRAW_LAG);
        self.record(reading.observations.into_iter().map(|seen| Observation { as_of, ..seen }).collect());
    }

    fn wait(&mut self, millis: i64) {
        for _ in 0..millis {
            self.claude.now += SignedDuration::from_millis(1);
            let released = reduce("claude", &mut self.claude.memory, Evidence::TimePassed, self.claude.now);
            self.record(released);
        }
    }
}

/// The states that agtmux reports during a turn that ends with this screen.
fn states_until(last_screen: &str) -> Vec<State> {
    let mut turn = TurnTimeline::new();
    turn.status("busy");
    turn.wait(1_000);
    turn.screen("claude-running-slow2");
    turn.wait(2_000);
    turn.status("idle");
    turn.wait(CAPTURE_DELAY);
    turn.screen(last_screen);
    turn.wait(5_000);
    turn.states
}

#[test]
fn a_turn_is_not_idle_before_its_end_is_on_the_screen() {
    assert_eq!(states_until("claude-slow-complete"), [State::Running, State::Completed]);
    assert_eq!(states_until("claude-api-error-401"), [State::Running, State::Error]);
}

#[test]
fn a_turn_whose_end_is_not_on_the_screen_is_idle() {
    let mut turn = TurnTimeline::new();
    turn.status("busy");
    turn.wait(1_000);
    turn.status("idle");
    turn.wait(2_500);
    assert_eq!(turn.states, [State::Running, State::Idle]);
}
