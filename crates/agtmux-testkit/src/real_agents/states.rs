//! The states and modes of a conformance run.

use std::fmt;

/// The state that `agtmux watch` reports for a pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportedState {
    Idle,
    Running,
    Approval,
    Input,
    Completed,
    Error,
    /// There is an agent, but agtmux does not know its state.
    Unknown,
    /// There is no agent.
    NoAgent,
}

impl ReportedState {
    pub fn parse(state: &str) -> Self {
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

    pub fn as_str(self) -> &'static str {
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

/// The evidence that agtmux gets. With `Hooks`, the agent's settings contain agtmux's hooks. With `NoHooks`, agtmux
/// sees only screens, files and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvidenceMode {
    Hooks,
    NoHooks,
}

impl EvidenceMode {
    pub const ALL: [Self; 2] = [Self::Hooks, Self::NoHooks];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::NoHooks => "no-hooks",
        }
    }
}

/// A state that an agent's screen can show. Each agent defines the pattern that recognises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenState {
    /// The agent is ready for its first prompt.
    Ready,
    /// Like `Ready`, but in plan mode.
    ReadyToPlan,
    /// The agent asks whether to trust the directory.
    Trust,
    /// The agent asks for permission to run a command.
    Approval,
    /// The agent shows a question from the model.
    Question,
    /// The agent asks for approval of its plan.
    Plan,
    /// The agent has ended its turn.
    Done,
    /// The agent has ended its turn, and its answer quotes text that other states show.
    Quoted,
    /// The user has denied a request of the agent.
    Denied,
    /// The model has failed, and the agent tries again.
    Retrying,
    /// The turn has ended because the model failed.
    Failed,
    /// The agent asks how to continue after a failure of the model.
    FailureDialog,
    /// The user has interrupted the turn.
    Interrupted,
    /// The agent has replaced the conversation by a summary.
    Compacted,
    /// The agent has ended its turn, but a shell that it started in the background still runs.
    Background,
    /// A subagent is working.
    Subagent,
    /// A turn is running, and the user has queued another prompt.
    Queued,
}

/// What an agent does after a failure of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// The turn ends with an error, at once or after a few retries.
    Fails,
    /// The agent keeps retrying. A scenario ends before the agent gives up.
    Retries,
    /// The agent requests the answer in another way, and the turn ends normally.
    Recovers,
    /// The agent asks the user how to continue.
    Asks,
}

impl AfterFailure {
    pub const ALL: [Self; 4] = [Self::Fails, Self::Retries, Self::Recovers, Self::Asks];
}
