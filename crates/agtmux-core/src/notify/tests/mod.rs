//! Tests of the state machine.

mod cases;
mod properties;

use std::collections::BTreeSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::{AgentSight, NotifyChannel, NotifyEffect, NotifyMachine, NotifyRule};
use crate::state::State;

/// 12:00 in UTC.
const START: i64 = 1_790_942_400;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(START * 1000 + millis).expect("a time")
}

fn rule(channels: &[NotifyChannel]) -> NotifyRule {
    NotifyRule {
        states: vec![State::WaitingApproval, State::WaitingInput, State::Error, State::Completed],
        agents: Vec::new(),
        targets: Vec::new(),
        sessions: Vec::new(),
        channels: channels.to_vec(),
        dwell: SignedDuration::from_secs(2),
        cooldown: SignedDuration::ZERO,
        quiet_hours: None,
        escalation: None,
    }
}

fn sight(state: State, fingerprint: Option<&str>) -> AgentSight {
    AgentSight {
        agent_type: "claude".into(),
        target: "host".into(),
        sessions: BTreeSet::from(["work".into()]),
        state,
        reason: None,
        unseen: state == State::Completed,
        fingerprint: fingerprint.map(str::to_owned),
        since: at(0),
    }
}

/// A machine with the time of a test. The daemon's part is played by [`Self::settle`].
struct Stage {
    machine: NotifyMachine,
    now: i64,
    /// When a key was last pressed in a client that shows the pane.
    last_key: Option<i64>,
    log: Vec<String>,
}

impl Stage {
    /// A machine that has watched its host for a while.
    fn new(rules: Vec<NotifyRule>) -> Self {
        let mut stage = Self::at_start(rules);
        stage.machine.see_target("host", at(0));
        stage.pass(10_000);
        stage
    }

    fn at_start(rules: Vec<NotifyRule>) -> Self {
        let machine = NotifyMachine::new(rules, TimeZone::UTC, SignedDuration::from_secs(30), at(0));
        Self { machine, now: 0, last_key: None, log: Vec::new() }
    }

    fn see(&mut self, runtime: &str, state: State, fingerprint: Option<&str>) {
        self.see_as(runtime, sight(state, fingerprint));
    }

    fn see_as(&mut self, runtime: &str, sight: AgentSight) {
        let sight = AgentSight { since: at(self.now), ..sight };
        self.machine.see(runtime, &sight, at(self.now));
        self.settle();
    }

    fn gone(&mut self, runtime: &str) {
        self.machine.gone(runtime);
        self.settle();
    }

    /// Lets time pass. Wakes the machine whenever it is due.
    fn pass(&mut self, millis: i64) {
        let end = self.now + millis;
        while let Some(due) = self.machine.next_due(at(self.now)).filter(|due| *due <= at(end)) {
            self.now = (due.as_millisecond() - START * 1000).max(self.now);
            let before = self.log.len();
            self.settle();
            let is_busy = self.machine.next_due(at(self.now)).is_some_and(|due| due <= at(self.now));
            assert!(!is_busy, "it stays due at {}: {:?}", self.now, &self.log[before..]);
        }
        self.now = end;
        self.settle();
    }

    /// Carries out all effects.
    fn settle(&mut self) {
        let now = at(self.now);
        self.machine.advance(now);
        loop {
            let effects = self.machine.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.carry_out(effect);
            }
        }
    }

    fn carry_out(&mut self, effect: NotifyEffect) {
        let line = match effect {
            NotifyEffect::Look { runtime, notice } => {
                self.machine.looked(&runtime, &notice, self.last_key.map(at), at(self.now));
                return;
            }
            NotifyEffect::Send { channel, runtime, escalated, .. } => {
                format!("send {channel} {runtime}{}", if escalated { " escalated" } else { "" })
            }
            NotifyEffect::Withdraw { channel, runtime, .. } => format!("withdraw {channel} {runtime}"),
            NotifyEffect::Digest { channel, notices } => {
                let runtimes: Vec<&str> = notices.iter().map(|(runtime, _)| runtime.as_str()).collect();
                format!("digest {channel} {}", runtimes.join(","))
            }
            NotifyEffect::Hold { runtime, reason, .. } => format!("hold {runtime} {reason}"),
        };
        self.log.push(line);
    }

    /// What has happened since the last call.
    fn happened(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}
