//! The words in which a run is told.

use std::fmt;

/// What agtmux says about the pane, as its watch log has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReportedState {
    Idle,
    Running,
    Approval,
    Input,
    Completed,
    Error,
    /// There is an agent, and agtmux does not claim to know what it does.
    Unknown,
    /// There is no agent.
    NoAgent,
}

impl ReportedState {
    pub(crate) fn parse(state: &str) -> Self {
        match state {
            "idle" => Self::Idle,
            "running" => Self::Running,
            "waiting_approval" => Self::Approval,
            "waiting_input" => Self::Input,
            "completed" => Self::Completed,
            "error" => Self::Error,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Approval => "waiting_approval",
            Self::Input => "waiting_input",
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::NoAgent => "none",
        }
    }
}

impl fmt::Display for ReportedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where agtmux may learn from: its hooks in the agent's settings, or only what it can see from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvidenceMode {
    Hooks,
    NoHooks,
}

impl EvidenceMode {
    pub(crate) const ALL: [Self; 2] = [Self::Hooks, Self::NoHooks];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::NoHooks => "bare",
        }
    }
}

/// What an agent can be seen doing. Each agent says how it looks there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenState {
    /// It takes a prompt, and nothing has been asked of it yet.
    Ready,
    /// The same in the mode that only plans.
    ReadyToPlan,
    /// It asks whether this directory can be trusted.
    Trust,
    /// It asks whether it may run a command.
    Approval,
    /// It asks a question of the model's.
    Question,
    /// It asks whether its plan is good.
    Plan,
    /// A turn is over.
    Done,
    /// The same, and the answer quotes what other scenes show.
    Quoted,
    /// The user said no.
    Denied,
    /// It tries again after a failure of the model.
    Retrying,
    /// It gave up.
    Failed,
    /// The user stopped it.
    Interrupted,
    /// A turn is over, and a shell that it started goes on.
    Background,
    /// A subagent is at work.
    Subagent,
    /// A prompt waits for the turn to end.
    Queued,
}
