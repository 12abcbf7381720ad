//! The wire types of the API. If the value of a field is unknown, the field is null. It is never left out.

mod action;
mod adapters;
mod bridge;
mod caller;
mod ended;
mod event;
mod explain;
mod health;
mod ingest;
mod items;
mod listing;
mod mirror;
mod notify;
mod screen;
mod state_set;
mod targets;
mod task;
mod web;
mod worktree;

pub use action::{
    ActionGuards, ActionKind, ActionOutcome, ActionRecord, ActionSnapshot, ActionStatus, AnswerEnding, AnswerSource,
    AnsweredTurn, AttachAction, AttachPlan, AttachSession, AuditCaller, AuditLog, AuditQuery, DialogAnswer,
    InputProfile, KillAction, KillReport, KillSignal, LastAction, LastReport, NewAction, NewPlace, NewReport,
    OutputAction, OutputReport, PaneHealth, PaneIdentityGuard, PromptDelivery, PromptStatus, RenameAction,
    RenameReport, RespondAction, RespondReport, ResumeAction, ResumeReport, SeenAction, SeenReport, SendAction,
    SendReport, SnapshotAction, SshDestination, Verification, VerifiedBy,
};
pub use adapters::{
    AdapterCapabilities, AdapterHealth, AdapterItem, AdapterList, AdapterOrigin, AdapterSwitch, BrokenManifest,
};
pub use agtmux_core::task::TaskEvent;
pub use bridge::{
    BridgeAnswers, BridgeAvailability, BridgeChoice, BridgeError, BridgeHookEvent, BridgeHookReply, BridgeMode,
    BridgeRespondReply, BridgeRespondRequest,
};
pub use caller::CallerReport;
pub use ended::{EndedAgentItem, EndedAgentList, EndedAgentQuery};
pub use event::{EventSubject, ItemIdentity, TaskWatchEvent, WatchEvent, WatchEventKind, WatchItem};
pub use explain::{
    ExplainCandidate, ExplainEvent, Explanation, RuntimeEvent, RuntimeEvents, StateHistory, StateHistoryItem,
};
pub use health::{ComponentHealth, DaemonHealth, ServerHealth, StoreHealth};
pub use ingest::{EventReceipt, EventReceiptStatus, EventSender, EventSubmission};
pub use items::{
    DeadPane, PaneIdentity, PaneItem, SessionIdentity, SessionItem, StateTally, TargetCounts, WindowIdentity,
    WindowItem,
};
pub use listing::{ListFilters, ListQuery, ListResponse, ListScope, ListSummary, SessionGrouping, TargetError};
pub use mirror::{
    MirrorActivity, MirrorActivityItem, MirrorActivityQuery, MirrorCancelRequest, MirrorCommand, MirrorCommandQuery,
    MirrorCommandStatus, MirrorExecRequest, MirrorItem, MirrorList, MirrorQuery, MirrorRunningItem, MirrorScreen,
    MirrorScreenQuery, MirrorStartRequest, MirrorStatus, MirrorStreamItem,
};
pub use notify::{
    Notice, NoticeAgent, NoticeKind, NotifyLog, NotifyLogEvent, NotifyLogItem, NotifyLogQuery, NotifyTestItem,
    NotifyTestReport, NotifyTestRequest,
};
pub use screen::{ScreenCursor, ScreenEnd, ScreenQuery, ScreenRowUpdate, ScreenUpdate, SpanColour, StyledSpan};
pub use state_set::StateSet;
pub use targets::{EvidenceKind, NewTarget, TargetCheck, TargetCheckReport, TargetItem, TargetList, TargetStatus};
pub use task::{
    ActiveLeftoverSession, EndedTask, TaskCleanupRequest, TaskEndReport, TaskEvents, TaskEventsQuery, TaskInputAction,
    TaskList, TaskLogs, TaskLogsQuery, TaskRestartRequest, TaskRunRequest, TaskSessionQuery, TaskStarted,
    TaskStartupReport, TaskStartupRequest, TaskStopRequest, TaskStreamItem,
};
pub use web::{
    WebLink, WebLinkRequest, WebLogin, WebLoginItem, WebLoginList, WebOpenRequest, WebRevokeRequest, WebSession,
};
pub use worktree::{
    WorktreeAddRequest, WorktreeAdded, WorktreeAgent, WorktreeItem, WorktreeList, WorktreeQuery, WorktreeRemoveRequest,
    WorktreeRemoved,
};
