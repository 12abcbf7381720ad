//! `POST /hook/<event>`: hook events in the format of the tmux-bridge document.

use agtmux_agents::{BRIDGE_AGENT, BRIDGE_HOOKS, BridgeHook, SessionChange};
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{BridgeHookEvent, BridgeHookReply, EventReceipt, EventReceiptStatus, EventSubmission};
use agtmux_core::ids::AgentType;
use agtmux_core::redact;
use axum::Json;
use axum::body::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::actions::RequestCaller;
use crate::engine::agent_id;
use crate::serve::ServeContext;
use crate::serve::extract::{JsonResult, NameInPath, parse_object, read_body, shorten};
use crate::serve::ingest::{MAX_EVENT_BYTES, read_event};
use crate::serve::openapi::Error;
use crate::store::{ReportedAgentRow, StoreChange};

const MAX_ID_LEN: usize = 256;

/// Report a hook event of an agent.
///
/// Additional fields are stored and passed on in the agent's events.
#[utoipa::path(post, path = "/hook/{event}", params(("event" = String, Path)), request_body = BridgeHookEvent, responses(
    (status = 200, body = BridgeHookReply), Error<400>, Error<403>, Error<404>, Error<409>, Error<413>, Error<503>))]
pub(crate) async fn post_hook(
    context: ServeContext,
    caller: RequestCaller,
    NameInPath(event): NameInPath,
    body: Body,
) -> JsonResult<BridgeHookReply> {
    let Some(BridgeHook { event_type, session, .. }) = BRIDGE_HOOKS.into_iter().find(|known| known.name == event)
    else {
        let names = BRIDGE_HOOKS.map(|known| known.name).join(", ");
        let error = ApiError::new(ErrorCode::NotFound, "unknown hook event");
        return Err(error.with_hint(format!("use one of {names}")).into());
    };
    let bytes = read_body(body, MAX_EVENT_BYTES).await?;
    let (hook, payload) = read(parse_object(&bytes)?, event_type)?;
    let agent_type = AgentType::new(hook.agent_type.clone().unwrap_or_else(|| BRIDGE_AGENT.into()));
    let agent_id = agent_id(&agent_type, &hook.session_id);
    let event = to_event(&context, &hook, &agent_type, &agent_id, event_type, payload);
    // Read all of the request before storing any of it.
    let sender = Some((context.actions.clone(), caller));
    let incoming = match event {
        Some(event) => Some(read_event(bytes.len(), move || Ok(to_json(&event)), &context.discovery, sender).await?),
        // The agent runs outside tmux, or no hook has named its pane yet.
        None => None,
    };
    store_agent(&context, &hook, &agent_type, &agent_id).await?;
    let receipt = match incoming {
        Some(incoming) => Some(context.engine.ingest_event(incoming).await?),
        None => None,
    };
    update_tracking(&context, &agent_id, session, receipt.as_ref());
    let bound = receipt.as_ref().is_some_and(|receipt| receipt.status != EventReceiptStatus::PendingBind);
    let event_id = receipt.map(|receipt| receipt.event_id);
    Ok(Json(BridgeHookReply { status: "ok".into(), agent_id, bound, event_id }))
}

/// Stops tracking an agent whose session has ended, even if its process has not exited yet. Tracks the agent again if
/// its session is active again.
fn update_tracking(
    context: &ServeContext,
    agent_id: &str,
    session: Option<SessionChange>,
    receipt: Option<&EventReceipt>,
) {
    if receipt.is_some_and(|receipt| receipt.status == EventReceiptStatus::Duplicate) {
        // This event was delivered before. The agent may have come back since the first delivery, so the event is not
        // applied again.
        return;
    }
    match session {
        Some(SessionChange::Ended) => {
            context.bridge.session_ended(agent_id, receipt.and_then(|receipt| receipt.runtime_id.as_deref()))
        }
        Some(SessionChange::Active) => context.bridge.session_resumed(agent_id),
        None => {}
    }
}

fn to_json(event: &EventSubmission) -> Value {
    serde_json::to_value(event).unwrap_or_else(|error| unreachable!("a wire type serializes: {error}"))
}

fn read(mut payload: Value, event_type: &str) -> ApiResult<(BridgeHookEvent, Value)> {
    let bad = |message: String| {
        ApiError::new(ErrorCode::BadRequest, message)
            .with_hint("send JSON with the fields 'session_id', 'working_directory', 'tmux_pane' and 'tmux'")
    };
    let mut hook =
        BridgeHookEvent::deserialize(&payload).map_err(|error| bad(format!("invalid body: {}", shorten(&error))))?;
    let ids = [Some(&hook.session_id), hook.agent_type.as_ref(), hook.tmux_pane.as_ref(), hook.iterm_pane_id.as_ref()];
    if hook.session_id.is_empty() {
        return Err(bad("the field 'session_id' is missing".into()));
    }
    if ids.into_iter().flatten().any(|id| id.len() > MAX_ID_LEN) {
        return Err(bad(format!("an id has more than {MAX_ID_LEN} bytes")));
    }
    if let Some(fields) = payload.as_object_mut() {
        fields.insert("hook_event_name".into(), json!(event_type));
    }
    // Redact the ids as in the stored event, so that the stored agent and the event name the same session.
    hook.session_id = redact::text(&hook.session_id).into_owned();
    hook.agent_type = hook.agent_type.map(|kind| redact::text(&kind).into_owned());
    hook.iterm_pane_id = hook.iterm_pane_id.map(|pane| redact::text(&pane).into_owned());
    Ok((hook, payload))
}

/// Stores the agent. Fields that this hook does not contain keep their values.
async fn store_agent(
    context: &ServeContext,
    hook: &BridgeHookEvent,
    agent_type: &AgentType,
    agent_id: &str,
) -> ApiResult<()> {
    let row = ReportedAgentRow {
        agent_id: agent_id.to_owned(),
        agent_type: agent_type.clone(),
        session: hook.session_id.clone(),
        tmux_pane_id: hook.tmux_pane.clone(),
        iterm_pane_id: hook.iterm_pane_id.clone(),
        at: context.actions.now(),
    };
    Ok(context.store.commit(vec![StoreChange::PutReportedAgent(Box::new(row))]).await?)
}

fn to_event(
    context: &ServeContext,
    hook: &BridgeHookEvent,
    agent_type: &AgentType,
    agent_id: &str,
    event_type: &str,
    payload: Value,
) -> Option<EventSubmission> {
    let runtime_id = match hook.tmux_pane {
        Some(_) => None,
        None => Some(only_runtime_of(context, agent_id)?),
    };
    let socket = hook.tmux.as_deref().and_then(|tmux| tmux.split(',').next()).map(str::to_owned);
    Some(EventSubmission {
        runtime_id,
        pane: hook.tmux_pane.clone(),
        socket,
        agent_type: Some(agent_type.to_string()),
        pid: hook.pid,
        cwd: hook.working_directory.clone(),
        source: "hook".into(),
        event_type: event_type.to_owned(),
        dedupe_key: Some(hook.event_id.clone().unwrap_or_else(|| Uuid::now_v7().simple().to_string())),
        event_time: hook.timestamp,
        payload: Some(payload),
        ..EventSubmission::default()
    })
}

/// The runtime of the agent. `None` if the agent has no runtime. Also `None` if its session is open in several
/// runtimes, because any of them may have sent the event.
fn only_runtime_of(context: &ServeContext, agent_id: &str) -> Option<String> {
    let mut runtimes = context.bridge.runtimes_of(agent_id).into_iter();
    runtimes.next().filter(|_| runtimes.next().is_none())
}
