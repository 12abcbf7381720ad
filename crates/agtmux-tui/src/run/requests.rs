//! Sends the requests of the effects. Each runs by itself, so that keys never wait for the daemon.

use agtmux_api::wire::{
    ActionOutcome, AuditLog, AuditQuery, Explanation, OutputReport, SeenReport, StateHistory, TargetItem, TargetList,
    TaskEvents, TaskEventsQuery, TaskLogs, TaskLogsQuery,
};
use agtmux_client::{ClientError, DaemonClient, parse};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{audit, reports};
use crate::model::ReaderSubject;
use crate::update::{RequestFailure, TuiEffect, TuiOutcome};

/// How many actions the audit log shows.
const AUDIT_RECORDS: u32 = 500;

/// How many events are searched for the newest one of each task.
const TASK_EVENTS: u32 = 1000;
/// How many lines of the log of a task are shown.
const LOG_LINES: u32 = 5000;

/// A request without fields.
#[derive(Serialize)]
struct EmptyRequest {}

/// The query of `/v1/explain` and `/v1/history`.
#[derive(Serialize)]
struct AgentQuery {
    r#ref: String,
}

/// Starts the request of an effect. Its outcome is sent when it has one.
pub(super) fn spawn(daemon: &DaemonClient, effect: TuiEffect, outcomes: &mpsc::UnboundedSender<TuiOutcome>) {
    let (daemon, outcomes) = (daemon.clone(), outcomes.clone());
    tokio::spawn(async move {
        if let Some(outcome) = request(&daemon, effect).await {
            // The receiver is gone when the interface has ended.
            let _ = outcomes.send(outcome);
        }
    });
}

async fn request(daemon: &DaemonClient, effect: TuiEffect) -> Option<TuiOutcome> {
    Some(match effect {
        TuiEffect::Respond { key, action } => {
            TuiOutcome::Responded { key, result: act(daemon, "respond", &action).await }
        }
        TuiEffect::Send { agent, action } => TuiOutcome::Sent { agent, result: act(daemon, "send", &action).await },
        TuiEffect::TypeKey { key, action } => TuiOutcome::Typed { key, result: act(daemon, "send", &action).await },
        TuiEffect::Kill { agent, action } => TuiOutcome::Killed { agent, result: act(daemon, "kill", &action).await },
        TuiEffect::Resume { agent, action } => {
            TuiOutcome::Resumed { agent, result: act(daemon, "resume", &action).await }
        }
        TuiEffect::MarkSeen { agent, action } => {
            let result: Result<SeenReport, _> = post(daemon, "seen", &action).await;
            TuiOutcome::MarkedSeen { agent, result: result.map(drop) }
        }
        TuiEffect::ReadPreview { key, action } => TuiOutcome::Preview {
            key,
            has_history: action.lines.is_some(),
            result: act(daemon, "view-output", &action).await,
        },
        TuiEffect::Audit => {
            let query = AuditQuery { limit: Some(AUDIT_RECORDS), ..AuditQuery::default() };
            let audit: Result<AuditLog, _> = daemon.get("/v1/audit", &query).await.map_err(failure);
            let result = audit.map(|audit| audit::lines(&audit.items, &TimeZone::system()));
            TuiOutcome::Read { key: None, subject: ReaderSubject::Audit, result }
        }
        TuiEffect::ReadTasks => {
            let query = TaskEventsQuery { limit: Some(TASK_EVENTS), ..TaskEventsQuery::default() };
            let events: Result<TaskEvents, _> = daemon.get("/v1/tasks/events", &query).await.map_err(failure);
            TuiOutcome::Tasks(events.map(|events| events.items))
        }
        TuiEffect::ReadTaskLog { session, task } => {
            let query = TaskLogsQuery { session, task, lines: Some(LOG_LINES), ..TaskLogsQuery::default() };
            let logs: Result<TaskLogs, _> = daemon.get("/v1/tasks/logs", &query).await.map_err(failure);
            let result = logs.map(|logs| logs.lines);
            TuiOutcome::Read { key: None, subject: ReaderSubject::Output, result }
        }
        TuiEffect::ReadTargets => {
            let targets: Result<TargetList, _> = daemon.get("/v1/targets", &()).await.map_err(failure);
            TuiOutcome::Targets(targets.map(|targets| targets.items))
        }
        TuiEffect::ConnectTarget(name) => {
            // A connection attempt may take seconds, like an action.
            let result: Result<TargetItem, _> = async {
                let answer = daemon.act(&format!("/v1/targets/{name}/connect"), &EmptyRequest {}).await;
                parse(&answer.map_err(failure)?).map_err(failure)
            }
            .await;
            TuiOutcome::Connected { name, result }
        }
        TuiEffect::ReadOutput { key, action } => {
            let result: Result<OutputReport, _> = act(daemon, "view-output", &action).await;
            let result = result.map(|report| reports::without_blank_end(report.lines));
            TuiOutcome::Read { key: Some(key), subject: ReaderSubject::Output, result }
        }
        TuiEffect::Explain { key, reference } => {
            let why: Result<Explanation, _> = get(daemon, "/v1/explain", reference).await;
            let result = why.map(|why| reports::explanation_lines(&why, &TimeZone::system()));
            TuiOutcome::Read { key: Some(key), subject: ReaderSubject::Explanation, result }
        }
        TuiEffect::History { key, reference } => {
            let history: Result<StateHistory, _> = get(daemon, "/v1/history", reference).await;
            let result = history.map(|history| reports::history_lines(&history, &TimeZone::system()));
            TuiOutcome::Read { key: Some(key), subject: ReaderSubject::History, result }
        }
        TuiEffect::WatchTerminal(_)
        | TuiEffect::Attach(_)
        | TuiEffect::RunProgram(_)
        | TuiEffect::Copy(_)
        | TuiEffect::Connect
        | TuiEffect::Quit => return None,
    })
}

async fn act<T: DeserializeOwned>(
    daemon: &DaemonClient,
    action: &str,
    request: &impl Serialize,
) -> Result<T, RequestFailure> {
    let outcome: ActionOutcome<T> = post(daemon, action, request).await?;
    Ok(outcome.report)
}

async fn post<T: DeserializeOwned>(
    daemon: &DaemonClient,
    action: &str,
    request: &impl Serialize,
) -> Result<T, RequestFailure> {
    let answer = daemon.act(&format!("/v1/actions/{action}"), request).await.map_err(failure)?;
    parse(&answer).map_err(failure)
}

async fn get<T: DeserializeOwned>(daemon: &DaemonClient, path: &str, reference: String) -> Result<T, RequestFailure> {
    daemon.get(path, &AgentQuery { r#ref: reference }).await.map_err(failure)
}

fn failure(error: ClientError) -> RequestFailure {
    let (code, message, is_cut_off) = (error.code(), error.to_string(), error.is_cut_off());
    let (hint, may_have_acted) = match error {
        ClientError::Refused(refusal) => (refusal.hint, refusal.done_something),
        _ => (None, is_cut_off),
    };
    RequestFailure { code, message, hint, may_have_acted }
}
