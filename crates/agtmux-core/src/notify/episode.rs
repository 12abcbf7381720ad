//! Episodes: one agent in one state, with one dialog. A person is told about an episode once.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::machine::HeldReason;
use super::rule::NotifyChannel;
use crate::dialog;
use crate::state::{ReasonCode, State};

/// What is known about an agent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSight {
    pub agent_type: String,
    pub target: String,
    /// The sessions that show the agent's pane.
    pub sessions: BTreeSet<String>,
    pub state: State,
    pub reason: Option<ReasonCode>,
    /// Whether the agent has completed a turn that no person has seen.
    pub unseen: bool,
    /// The fingerprint of the open dialog.
    pub fingerprint: Option<String>,
    /// When the agent entered the state.
    pub since: Timestamp,
}

/// A notice that was sent and can still be withdrawn. The daemon stores these notices, so that the next daemon can
/// withdraw them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenNotice {
    pub notice: String,
    pub runtime: String,
    pub state: State,
    pub fingerprint: Option<String>,
    pub began: Timestamp,
    pub sent_at: Timestamp,
    pub channels: BTreeSet<NotifyChannel>,
}

#[derive(Debug, Clone)]
pub(super) struct Episode {
    pub(super) notice: String,
    pub(super) state: State,
    pub(super) fingerprint: Option<String>,
    pub(super) began: Timestamp,
    /// Whether the state of the agent is unknown now, so that the episode may be over.
    pub(super) suspended: bool,
    pub(super) progress: Vec<RuleProgress>,
    /// The channels on which the person was told.
    pub(super) sent: BTreeSet<NotifyChannel>,
    /// The channels on which only a digest named the episode.
    pub(super) in_digest: BTreeSet<NotifyChannel>,
    pub(super) sent_at: Option<Timestamp>,
    /// The reasons that were reported. Each is reported once.
    pub(super) held: Vec<HeldReason>,
}

/// How far one rule has come with an episode.
#[derive(Debug, Clone)]
pub(super) struct RuleProgress {
    pub(super) rule: usize,
    pub(super) phase: Phase,
    pub(super) step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    First,
    Escalation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The notice is due at this time.
    Due(Timestamp),
    /// The daemon looks whether a person views the pane.
    Looking,
    /// The notice waits for the end of the quiet hours.
    Quiet,
    Done,
}

/// What a new sight of the agent means for its episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    Continues,
    /// The state is unknown at the moment. The agent may return to the episode.
    Suspends,
    Ends,
}

impl Episode {
    pub(super) fn new(runtime: &str, sight: &AgentSight, now: Timestamp) -> Self {
        let (state, fingerprint) = (sight.state, sight.fingerprint.clone());
        let micros = now.as_microsecond();
        let name = format!("{runtime}|{state}|{}|{micros}", fingerprint.as_deref().unwrap_or_default());
        Self {
            notice: Uuid::new_v5(&dialog::NAMESPACE, name.as_bytes()).simple().to_string(),
            state,
            fingerprint,
            began: sight.since,
            suspended: false,
            progress: Vec::new(),
            sent: BTreeSet::new(),
            in_digest: BTreeSet::new(),
            sent_at: None,
            held: Vec::new(),
        }
    }

    pub(super) fn restored(open: OpenNotice) -> Self {
        let OpenNotice { notice, state, fingerprint, began, sent_at, channels, .. } = open;
        Self {
            notice,
            state,
            fingerprint,
            began,
            suspended: true,
            progress: Vec::new(),
            sent: channels,
            in_digest: BTreeSet::new(),
            sent_at: Some(sent_at),
            held: Vec::new(),
        }
    }

    /// Whether there is anything to tell about an agent.
    pub(super) fn is_worth_telling(sight: &AgentSight) -> bool {
        match sight.state {
            State::Unknown => false,
            State::Completed => sight.unseen,
            _ => true,
        }
    }

    pub(super) fn continuation(&self, sight: &AgentSight) -> Continuation {
        match sight.state {
            State::Unknown if sight.reason == Some(ReasonCode::ProcessGone) => Continuation::Ends,
            State::Unknown => Continuation::Suspends,
            // A completed agent is shown as idle after a while. The person still has to look at the result.
            State::Completed | State::Idle if self.state == State::Completed => match sight.unseen {
                true => Continuation::Continues,
                false => Continuation::Ends,
            },
            state if state == self.state && self.is_same_dialog(sight) => Continuation::Continues,
            _ => Continuation::Ends,
        }
    }

    /// A dialog may be reported before its content is known, and its content may be hidden for a moment.
    fn is_same_dialog(&self, sight: &AgentSight) -> bool {
        match (&self.fingerprint, &sight.fingerprint) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    pub(super) fn is_waiting_for(&self, step: Step) -> bool {
        self.progress.iter().any(|progress| progress.step == step)
    }

    pub(super) fn shift(&mut self, by: SignedDuration) {
        let moved = |at: Timestamp| at.checked_add(by).unwrap_or(at);
        self.began = moved(self.began);
        self.sent_at = self.sent_at.map(moved);
        for progress in &mut self.progress {
            if let Step::Due(at) = progress.step {
                progress.step = Step::Due(moved(at));
            }
        }
    }
}
