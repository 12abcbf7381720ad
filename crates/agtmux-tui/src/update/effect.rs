//! What the update asks the program to do, and what comes back.

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    KillAction, KillReport, OutputAction, OutputReport, RespondAction, RespondReport, ResumeAction, ResumeReport,
    SeenAction, SendAction, SendReport, TargetItem, WatchEvent,
};
use agtmux_client::StreamSignal;
use agtmux_core::task::TaskEvent;
use crossterm::event::{KeyEvent, MouseEvent};

use crate::model::{AgentKey, AgentTarget, ReaderSubject, TuiNotice};

/// What happened.
#[derive(Debug)]
pub enum TuiMessage {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resized,
    Stream(Result<StreamSignal<WatchEvent>, TuiNotice>),
    /// A moment that `next_due` named has come.
    Due,
    /// The program in the watched pane wrote to its terminal.
    PaneWrote,
    Done(TuiOutcome),
}

/// What the program must do. Each request carries its guards.
#[derive(Debug, PartialEq, Eq)]
pub enum TuiEffect {
    Respond {
        key: AgentKey,
        action: RespondAction,
    },
    Send {
        agent: AgentTarget,
        action: SendAction,
    },
    /// Type one key into the pane of an agent.
    TypeKey {
        key: AgentKey,
        action: SendAction,
    },
    Kill {
        agent: AgentTarget,
        action: KillAction,
    },
    Resume {
        agent: AgentTarget,
        action: ResumeAction,
    },
    MarkSeen {
        agent: AgentTarget,
        action: SeenAction,
    },
    Explain {
        key: AgentKey,
        reference: String,
    },
    History {
        key: AgentKey,
        reference: String,
    },
    ReadOutput {
        key: AgentKey,
        action: OutputAction,
    },
    ReadPreview {
        key: AgentKey,
        action: OutputAction,
    },
    Audit,
    /// Read the newest events of all tasks.
    ReadTasks,
    ReadTaskLog {
        session: String,
        task: String,
    },
    ReadTargets,
    ConnectTarget(String),
    /// Report writes to this terminal, instead of the one before.
    WatchTerminal(Option<String>),
    /// Put this text into the clipboard of the terminal.
    Copy(String),
    Attach(AgentTarget),
    /// Give the terminal to this program until it ends.
    RunProgram(ProgramCall),
    /// Open the event stream again.
    Connect,
    Quit,
}

/// A program of the person, with its arguments and additional environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramCall {
    pub name: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// The result of an effect.
#[derive(Debug)]
pub enum TuiOutcome {
    Responded {
        key: AgentKey,
        result: Result<RespondReport, RequestFailure>,
    },
    Sent {
        agent: AgentTarget,
        result: Result<SendReport, RequestFailure>,
    },
    Typed {
        key: AgentKey,
        result: Result<SendReport, RequestFailure>,
    },
    Killed {
        agent: AgentTarget,
        result: Result<KillReport, RequestFailure>,
    },
    Resumed {
        agent: AgentTarget,
        result: Result<ResumeReport, RequestFailure>,
    },
    MarkedSeen {
        agent: AgentTarget,
        result: Result<(), RequestFailure>,
    },
    /// `key` is the agent that the text is about, if any.
    Read {
        key: Option<AgentKey>,
        subject: ReaderSubject,
        result: Result<Vec<String>, RequestFailure>,
    },
    Preview {
        key: AgentKey,
        /// Whether the lines start with the history of the pane.
        has_history: bool,
        result: Result<OutputReport, RequestFailure>,
    },
    /// The newest events of all tasks, the newest last.
    Tasks(Result<Vec<TaskEvent>, RequestFailure>),
    Targets(Result<Vec<TargetItem>, RequestFailure>),
    Connected {
        name: String,
        result: Result<TargetItem, RequestFailure>,
    },
    Attached {
        agent: AgentTarget,
        result: Result<(), String>,
    },
    /// A program of the person has ended.
    Ran {
        name: String,
        result: Result<(), String>,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    pub code: Option<ErrorCode>,
    pub message: String,
    pub hint: Option<String>,
    /// The daemon may have acted: it failed after it had typed something, or its answer did not arrive.
    pub may_have_acted: bool,
}

impl RequestFailure {
    pub fn notice(self, what: &str) -> TuiNotice {
        let perhaps = if self.may_have_acted { "perhaps " } else { "" };
        TuiNotice::error(format!("{perhaps}{what}: {}", self.message), self.hint)
    }
}
