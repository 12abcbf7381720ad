//! Sends the requests of the effects. Each runs by itself, so that keys never wait for the daemon.

use agtmux_api::wire::{ActionOutcome, Explanation, OutputReport, StateHistory};
use agtmux_client::{ClientError, DaemonClient, parse};
use jiff::tz::TimeZone;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::reports;
use crate::model::ReaderSubject;
use crate::update::{RequestFailure, TuiEffect, TuiOutcome};

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
        TuiEffect::Kill { agent, action } => TuiOutcome::Killed { agent, result: act(daemon, "kill", &action).await },
        TuiEffect::Resume { agent, action } => {
            TuiOutcome::Resumed { agent, result: act(daemon, "resume", &action).await }
        }
        TuiEffect::ReadPreview { key, action } => {
            TuiOutcome::Preview { key, result: act(daemon, "view-output", &action).await }
        }
        TuiEffect::ReadOutput { key, action } => {
            let result: Result<OutputReport, _> = act(daemon, "view-output", &action).await;
            let result = result.map(|report| reports::without_blank_end(report.lines));
            TuiOutcome::Read { key, subject: ReaderSubject::Output, result }
        }
        TuiEffect::Explain { key, reference } => {
            let why: Result<Explanation, _> = get(daemon, "/v1/explain", reference).await;
            let result = why.map(|why| reports::explanation_lines(&why, &TimeZone::system()));
            TuiOutcome::Read { key, subject: ReaderSubject::Explanation, result }
        }
        TuiEffect::History { key, reference } => {
            let history: Result<StateHistory, _> = get(daemon, "/v1/history", reference).await;
            let result = history.map(|history| reports::history_lines(&history, &TimeZone::system()));
            TuiOutcome::Read { key, subject: ReaderSubject::History, result }
        }
        TuiEffect::WatchTerminal(_) | TuiEffect::Attach(_) | TuiEffect::Connect | TuiEffect::Quit => return None,
    })
}

async fn act<T: DeserializeOwned>(
    daemon: &DaemonClient,
    action: &str,
    request: &impl Serialize,
) -> Result<T, RequestFailure> {
    let answer = daemon.act(&format!("/v1/actions/{action}"), request).await.map_err(failure)?;
    let outcome: ActionOutcome<T> = parse(&answer).map_err(failure)?;
    Ok(outcome.report)
}

async fn get<T: DeserializeOwned>(daemon: &DaemonClient, path: &str, reference: String) -> Result<T, RequestFailure> {
    daemon.get(path, &AgentQuery { r#ref: reference }).await.map_err(failure)
}

fn failure(error: ClientError) -> RequestFailure {
    let (code, message) = (error.code(), error.to_string());
    let hint = match error {
        ClientError::Refused(refusal) => refusal.hint,
        _ => None,
    };
    RequestFailure { code, message, hint }
}
