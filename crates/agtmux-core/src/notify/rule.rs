//! The rules of notifications.

use jiff::SignedDuration;

use super::episode::AgentSight;
use super::pattern::NamePattern;
use super::quiet_hours::QuietHours;
use crate::state::State;
use crate::wire_enum::wire_enum;

wire_enum!(
    /// The way in which a notice reaches a person.
    NotifyChannel {
        /// A notification of the desktop.
        Desktop => "desktop",
        /// A message in the status line of every attached tmux client.
        Tmux => "tmux",
        /// The bell of the terminal of every attached tmux client.
        Bell => "bell",
        /// An escape sequence with which terminals show notifications.
        Osc => "osc",
        /// A program that gets the notice as JSON on stdin.
        Command => "command",
        /// A URL to which the notice is posted as JSON.
        Webhook => "webhook",
        /// A topic of an ntfy server.
        Ntfy => "ntfy",
    }
);

impl NotifyChannel {
    /// Whether a notice can be withdrawn after it was sent.
    pub fn can_withdraw(self) -> bool {
        matches!(self, Self::Desktop | Self::Command | Self::Webhook | Self::Ntfy)
    }
}

/// Which changes of which agents are told, when, and through which channels. An empty list of names matches all names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyRule {
    pub states: Vec<State>,
    pub agents: Vec<NamePattern>,
    pub targets: Vec<NamePattern>,
    pub sessions: Vec<NamePattern>,
    pub channels: Vec<NotifyChannel>,
    /// How long the state must last before the notice is sent.
    pub dwell: SignedDuration,
    /// The shortest time between two notices about one agent.
    pub cooldown: SignedDuration,
    pub quiet_hours: Option<QuietHours>,
    pub escalation: Option<Escalation>,
}

/// Further channels for a notice that stays without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    pub after: SignedDuration,
    pub channels: Vec<NotifyChannel>,
}

impl NotifyRule {
    pub(super) fn matches(&self, sight: &AgentSight) -> bool {
        let is_in = |patterns: &[NamePattern], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
        };
        self.states.contains(&sight.state)
            && is_in(&self.agents, &sight.agent_type)
            && is_in(&self.targets, &sight.target)
            && (self.sessions.is_empty() || sight.sessions.iter().any(|session| is_in(&self.sessions, session)))
    }
}
