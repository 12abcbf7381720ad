//! What goes over the wire, field by field. Absent facts are null, never left out.

mod action;
mod adapters;
mod bridge;
mod event;
mod explain;
mod health;
mod ingest;
mod items;
mod listing;
mod targets;
mod task;
mod web;

pub use action::{
    ActionKind, ActionOutcome, ActionRecord, ActionStatus, Answer, Answered, AttachAction, AttachPlan, Audit,
    AuditQuery, Caller, Guards, KillAction, KillReport, KillSignal, Output, OutputAction, PaneHealth, PlanSession,
    Profile, RespondAction, ResumeAction, ResumeReport, SamePane, SendAction, SendReport, Snapshot, SnapshotAction,
    SshWay, Verified, VerifiedBy,
};
pub use adapters::{
    AdapterCapabilities, AdapterHealth, AdapterItem, AdapterOrigin, AdapterSwitch, Adapters, BrokenManifest,
};
pub use agtmux_core::task::TaskEvent;
pub use bridge::{
    Availability, BridgeAnswers, BridgeChoice, BridgeError, BridgeMode, BridgeRespond, BridgeResponded, HookAnswer,
    HookIn,
};
pub use event::{EventKind, Item, TaskNews, WatchEvent};
pub use explain::{Candidate, Explanation, History, PastEvent, PastEvents, PastState};
pub use health::{Component, Health, ServerHealth, StoreHealth};
pub use ingest::{EventIn, Receipt, ReceiptStatus};
pub use items::{
    DeadPane, PaneIdentity, PaneItem, SessionIdentity, SessionItem, StateTally, TargetCounts, WindowIdentity,
    WindowItem,
};
pub use listing::{Filters, GroupBy, ListQuery, Listing, Scope, Summary, TargetError};
pub use targets::{Check, Checkup, EvidenceKind, NewTarget, TargetItem, Targets};
pub use task::{
    EndedTask, LeftSession, TaskCleanup, TaskEnded, TaskEvents, TaskEventsQuery, TaskInputAction, TaskList, TaskLogs,
    TaskLogsQuery, TaskPlace, TaskRestart, TaskRun, TaskStarted, TaskStartup, TaskStartupReport, TaskStop, TaskTold,
};
pub use web::{WebLink, WebLinkRequest};
