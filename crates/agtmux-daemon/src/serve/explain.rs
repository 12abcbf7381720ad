//! `/v1/explain` and `/v1/history`: how a state was decided, and which states came before.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::wire::{EndedAgentList, EndedAgentQuery, Explanation, RuntimeEvents, StateHistory, StateHistoryItem};
use agtmux_core::refs::{PaneRef, RefError};
use axum::Json;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ServeContext;
use super::extract::{ErrorResponse, JsonResult, StrictQuery};
use super::openapi::Error;
use crate::engine::ref_error;
use crate::store::events;
use crate::store::log::{self, StoredTransition};

/// The most events per response: enough to see what led to a state.
const MAX_EVENTS: u32 = 50;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// `runtime:ID`, `%12`, an agent's name, or `pane:TARGET/SESSION/@W/%P`.
    r#ref: String,
    /// History only: entries at or after this time.
    since: Option<Timestamp>,
}

/// Explain the state of an agent, with every observation behind it.
#[utoipa::path(get, path = "/v1/explain", params(HistoryQuery), responses(
    (status = 200, body = Explanation), Error<400>, Error<404>, Error<409>))]
pub(super) async fn get_explain(
    context: ServeContext,
    StrictQuery(query): StrictQuery<HistoryQuery>,
) -> JsonResult<Explanation> {
    let reference = parse(&query.r#ref)?;
    let mut explanation = context.engine.explain(reference).await?;
    let id = explanation.runtime_id.clone();
    explanation.last_events = context.store.read(move |connection| events::newest_by_source(connection, &id)).await?;
    Ok(Json(explanation))
}

/// List the state changes of an agent, with the duration of each state.
///
/// If no running agent matches, `ref` names the last agent that ended in the pane, or an ended agent by its name, type
/// or session.
#[utoipa::path(get, path = "/v1/history", params(HistoryQuery), responses(
    (status = 200, body = StateHistory), Error<400>, Error<404>, Error<409>))]
pub(super) async fn get_history(
    context: ServeContext,
    StrictQuery(query): StrictQuery<HistoryQuery>,
) -> JsonResult<StateHistory> {
    let runtime = context.actions.runtime_or_ended(&query.r#ref).await?;
    let id = runtime.clone();
    let rows = context.store.read(move |connection| log::history(connection, &id)).await?;
    if rows.is_empty() {
        return Err(ref_error(&RefError::NotFound(query.r#ref.clone())).into());
    }
    let items =
        past_states(&rows).into_iter().filter(|item| query.since.is_none_or(|since| item.at >= since)).collect();
    Ok(Json(StateHistory { schema_version: SCHEMA_VERSION, runtime_id: runtime, items }))
}

/// List the last events about an agent, redacted, oldest first.
#[utoipa::path(get, path = "/v1/history/events", params(HistoryQuery), responses(
    (status = 200, body = RuntimeEvents), Error<400>, Error<404>, Error<409>))]
pub(super) async fn get_past_events(
    context: ServeContext,
    StrictQuery(query): StrictQuery<HistoryQuery>,
) -> JsonResult<RuntimeEvents> {
    let runtime = context.engine.explain(parse(&query.r#ref)?).await?.runtime_id;
    let id = runtime.clone();
    let mut items = context.store.read(move |connection| events::last_events(connection, &id, MAX_EVENTS)).await?;
    items.retain(|item| query.since.is_none_or(|since| item.ingested_at >= since));
    Ok(Json(RuntimeEvents { schema_version: SCHEMA_VERSION, runtime_id: runtime, items }))
}

/// List the agents of this machine that have ended, the newest end first.
///
/// `POST /v1/actions/resume` with `runtime:ID` starts one again, also if its pane or its tmux server is gone.
#[utoipa::path(get, path = "/v1/agents/ended", params(EndedAgentQuery), responses(
    (status = 200, body = EndedAgentList), Error<400>))]
pub(super) async fn get_ended_agents(
    context: ServeContext,
    StrictQuery(query): StrictQuery<EndedAgentQuery>,
) -> JsonResult<EndedAgentList> {
    Ok(Json(context.actions.ended_agents(&query).await?))
}

fn parse(reference: &str) -> Result<PaneRef, ErrorResponse> {
    reference.parse().map_err(|error| ref_error(&error).into())
}

fn past_states(rows: &[StoredTransition]) -> Vec<StateHistoryItem> {
    let ends = rows.iter().skip(1).map(|next| Some(next.at)).chain([None]);
    let item = |(row, end): (&StoredTransition, Option<Timestamp>)| StateHistoryItem {
        seq: row.seq,
        at: row.at,
        from: row.from,
        state: row.state,
        reason_code: row.reason,
        confidence: row.confidence,
        state_version: row.version,
        // If the clock was set back meanwhile, the end has an earlier time than the beginning.
        duration_ms: end.map(|end| i64::try_from(end.duration_since(row.at).as_millis()).unwrap_or(i64::MAX).max(0)),
    };
    rows.iter().zip(ends).map(item).collect()
}
