//! Properties of every history of agents.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::notify::{Escalation, HeldReason};

/// One step of a history.
#[derive(Debug, Clone)]
enum Happening {
    See { agent: usize, state: State, dialog: Option<usize>, unseen: bool },
    Gone { agent: usize },
    Pass { millis: i64 },
    KeyPress,
}

fn happening() -> impl Strategy<Value = Happening> {
    let states = proptest::sample::select(State::ALL.to_vec());
    let see = (0..3_usize, states, proptest::option::of(0..3_usize), any::<bool>())
        .prop_map(|(agent, state, dialog, unseen)| Happening::See { agent, state, dialog, unseen });
    prop_oneof![
        6 => see,
        1 => (0..3_usize).prop_map(|agent| Happening::Gone { agent }),
        5 => prop_oneof![0..3_000_i64, 0..60_000_i64, 0..4_000_000_i64].prop_map(|millis| Happening::Pass { millis }),
        1 => Just(Happening::KeyPress),
    ]
}

fn rules() -> Vec<NotifyRule> {
    let escalation = Escalation { after: SignedDuration::from_mins(5), channels: vec![NotifyChannel::Ntfy] };
    let cooldown = SignedDuration::from_secs(COOLDOWN);
    let quiet_hours = Some("12:30-13:10".parse().expect("valid"));
    vec![
        NotifyRule { cooldown, quiet_hours, escalation: Some(escalation), ..rule(&[NotifyChannel::Desktop]) },
        NotifyRule { states: vec![State::Error], ..rule(&[NotifyChannel::Webhook, NotifyChannel::Desktop]) },
    ]
}

const COOLDOWN: i64 = 15;

/// Checks the effects of a machine against what the test knows.
struct Checker {
    machine: NotifyMachine,
    now: i64,
    last_key: Option<i64>,
    /// The last state of each agent, and since when the agent has been in it without a break.
    states: BTreeMap<String, (State, i64)>,
    /// Since when each agent has had an unseen result without a break: completed, or idle after that.
    results: BTreeMap<String, i64>,
    sent: BTreeSet<(NotifyChannel, String)>,
    open: BTreeMap<(NotifyChannel, String), String>,
    first_sent_at: BTreeMap<String, i64>,
}

impl Checker {
    fn see(&mut self, runtime: String, state: State, dialog: Option<usize>, unseen: bool) {
        let before = self.states.get(&runtime).copied();
        let since = before.filter(|(before, _)| *before == state).map_or(self.now, |(_, since)| since);
        let since = self.note_result(&runtime, before.map(|(before, _)| before), state, unseen).unwrap_or(since);
        self.states.insert(runtime.clone(), (state, since));
        let fingerprint = dialog.filter(|_| state.is_waiting()).map(|n| format!("f{n}"));
        let sight = AgentSight { unseen, since: at(since), ..sight(state, fingerprint.as_deref()) };
        self.machine.see(&runtime, &sight, at(self.now));
        self.settle();
    }

    /// Returns since when a completed agent has had its unseen result.
    fn note_result(&mut self, runtime: &str, before: Option<State>, state: State, unseen: bool) -> Option<i64> {
        match state {
            State::Unknown => return None,
            State::Completed if unseen => {
                self.results.entry(runtime.to_owned()).or_insert(self.now);
            }
            State::Idle if unseen => {}
            _ => {
                self.results.remove(runtime);
            }
        }
        let since = self.results.get_mut(runtime)?;
        if before == Some(State::Unknown) {
            *since = self.now;
        }
        (state == State::Completed).then_some(*since)
    }

    fn pass(&mut self, millis: i64) {
        let end = self.now + millis;
        while let Some(due) = self.machine.next_due(at(self.now)).filter(|due| *due <= at(end)) {
            self.now = (due.as_millisecond() - START * 1000).max(self.now);
            self.settle();
            let next = self.machine.next_due(at(self.now));
            assert!(next.is_none_or(|next| next > at(self.now)), "the machine stays due, so the daemon never sleeps");
        }
        self.now = end;
        self.settle();
    }

    fn settle(&mut self) {
        self.machine.advance(at(self.now));
        loop {
            let effects = self.machine.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.check(effect);
            }
        }
    }

    fn check(&mut self, effect: NotifyEffect) {
        match effect {
            NotifyEffect::Look { runtime, notice } => {
                self.machine.looked(&runtime, &notice, self.last_key.map(at), at(self.now));
            }
            NotifyEffect::Send { channel, runtime, notice, escalated } => {
                self.check_told(channel, &runtime, &notice);
                let key_ago = self.last_key.map_or(i64::MAX, |key| self.now - key);
                assert!(key_ago >= 30_000, "{runtime} is in view");
                // The second rule, which is about errors, has no cooldown.
                if channel == NotifyChannel::Desktop && !escalated && self.states[&runtime].0 != State::Error {
                    let last = self.first_sent_at.insert(runtime.clone(), self.now);
                    let is_cool = last.is_none_or(|last| self.now - last >= COOLDOWN * 1000);
                    assert!(is_cool, "{runtime} was told too soon again");
                }
                self.open.insert((channel, notice), runtime);
            }
            NotifyEffect::Digest { channel, notices } => {
                assert!(!notices.is_empty());
                for (runtime, notice) in &notices {
                    self.check_told(channel, runtime, notice);
                }
            }
            NotifyEffect::Withdraw { channel, runtime, notice } => {
                let open = self.open.remove(&(channel, notice));
                assert_eq!(open.as_ref(), Some(&runtime), "only an open notice is withdrawn, once");
            }
            NotifyEffect::Hold { reason: HeldReason::ExistedBefore, runtime, .. } => {
                assert!(self.now < 3_000, "{runtime} changed while agtmux looked");
            }
            NotifyEffect::Hold { .. } => {}
        }
    }

    /// Whether a notice about this agent can be withdrawn and was not.
    fn has_open(&self, runtime: &str) -> bool {
        self.open.iter().any(|((channel, _), open)| open == runtime && channel.can_withdraw())
    }

    /// Checks that a person may be told this now.
    fn check_told(&mut self, channel: NotifyChannel, runtime: &str, notice: &str) {
        assert!(self.sent.insert((channel, notice.to_owned())), "each channel tells an episode once");
        let (state, since) = self.states[runtime];
        assert!(state.needs_action() || matches!(state, State::Completed | State::Idle), "{runtime} is {state}");
        let lasted = self.now - since;
        assert!(lasted >= 2_000 || state == State::Idle, "{runtime} is {state} for {lasted} ms only");
        let minute = self.now / 60_000 % (24 * 60);
        let is_quiet = (30..70).contains(&minute);
        assert!(!is_quiet || channel != NotifyChannel::Ntfy, "quiet hours");
        assert!(!is_quiet || state == State::Error, "quiet hours");
    }
}

proptest! {
    #[test]
    fn every_history_keeps_the_promises(history in proptest::collection::vec(happening(), 1..60)) {
        let machine = NotifyMachine::new(rules(), TimeZone::UTC, SignedDuration::from_secs(30), at(0));
        let mut checker = Checker {
            machine,
            now: 0,
            last_key: None,
            states: BTreeMap::new(),
            results: BTreeMap::new(),
            sent: BTreeSet::new(),
            open: BTreeMap::new(),
            first_sent_at: BTreeMap::new(),
        };
        checker.machine.see_target("host", at(0));
        for step in history {
            match step {
                Happening::See { agent, state, dialog, unseen } => {
                    checker.see(format!("agent{agent}"), state, dialog, unseen);
                }
                Happening::Gone { agent } => {
                    let runtime = format!("agent{agent}");
                    checker.machine.gone(&runtime);
                    checker.states.remove(&runtime);
                    checker.first_sent_at.remove(&runtime);
                    checker.settle();
                    prop_assert!(!checker.has_open(&runtime), "an agent that has ended leaves no notice behind");
                }
                Happening::Pass { millis } => checker.pass(millis),
                Happening::KeyPress => checker.last_key = Some(checker.now),
            }
        }
        // When all agents have ended, every notice that can be withdrawn is withdrawn.
        for agent in 0..3 {
            checker.machine.gone(&format!("agent{agent}"));
        }
        checker.settle();
        checker.open.retain(|(channel, _), _| channel.can_withdraw());
        prop_assert!(checker.open.is_empty(), "{:?}", checker.open);
        prop_assert_eq!(checker.machine.next_due(at(checker.now)), None, "nothing is pending");
    }
}
