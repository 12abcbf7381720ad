//! `POST /hook/<event>`: what scripts in any language tell of an agent.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{EventIn, HookAnswer, HookIn, Receipt, ReceiptStatus};
use agtmux_core::ids::AgentType;
use agtmux_core::redact;
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use http_body_util::LengthLimitError;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::engine::agent_id;
use crate::serve::Context;
use crate::serve::ingest::read_event;
use crate::serve::query::{InPath, Refusal};
use crate::store::{Change, SeenAgent};

const LARGEST_BODY: usize = 1 << 20;
const LONGEST_WORD: usize = 256;

/// Names as the document has them, and as the agent has them.
const EVENTS: [(&str, &str); 8] = [
    ("session-start", "SessionStart"),
    ("session-end", "SessionEnd"),
    ("stop", "Stop"),
    ("notification", "Notification"),
    ("user-prompt-submit", "UserPromptSubmit"),
    ("pre-tool-use", "PreToolUse"),
    ("post-tool-use", "PostToolUse"),
    ("permission-request", "PermissionRequest"),
];

/// Tells that something happened to an agent. Fields beyond those named are passed on to whoever reads its events.
#[utoipa::path(post, path = "/hook/{event}", params(("event" = String, Path)), request_body = HookIn, responses(
    (status = 200, body = HookAnswer), (status = 400, body = ApiError), (status = 404, body = ApiError),
    (status = 409, body = ApiError), (status = 413, body = ApiError), (status = 503, body = ApiError)))]
pub(crate) async fn post_hook(
    State(context): State<Context>,
    InPath(event): InPath,
    body: Body,
) -> Result<Json<HookAnswer>, Refusal> {
    let Some((_, event_type)) = EVENTS.iter().find(|(name, _)| *name == event) else {
        let names = EVENTS.map(|(name, _)| name).join(", ");
        let error = ApiError::new(ErrorCode::NotFound, "there is no such hook");
        return Err(error.with_hint(format!("one of {names}")).into());
    };
    let bytes = to_bytes(body, LARGEST_BODY).await.map_err(|error| unread(&error))?;
    let (hook, payload) = read(&bytes, event_type)?;
    let agent_type = AgentType::new(hook.agent_type.clone().unwrap_or_else(|| "claude".into()));
    let agent_id = agent_id(&agent_type, &hook.session_id);
    let event = located(&context, &hook, &agent_type, &agent_id, event_type, payload);
    // All of it is read before any of it is kept.
    let incoming = match &event {
        Some(event) => Some(read_event(written(event).into()).await?),
        // An agent outside of tmux, or in a pane that no hook has named yet.
        None => None,
    };
    see(&context, &hook, &agent_type, &agent_id).await?;
    let receipt = match incoming {
        Some(incoming) => Some(context.engine.event(incoming).await?),
        None => None,
    };
    follow(&context, &agent_id, event_type, receipt.as_ref());
    let bound = receipt.as_ref().is_some_and(|receipt| receipt.status != ReceiptStatus::PendingBind);
    let event_id = receipt.map(|receipt| receipt.event_id);
    Ok(Json(HookAnswer { status: "ok".into(), agent_id, bound, event_id }))
}

/// Whose session ends is followed no longer; the process may need a moment to end as well.
fn follow(context: &Context, agent_id: &str, event_type: &str, receipt: Option<&Receipt>) {
    if receipt.is_some_and(|receipt| receipt.status == ReceiptStatus::Duplicate) {
        // It was told before, and may have come back since.
        return;
    }
    match event_type {
        "SessionEnd" => context.bridge.leave(agent_id, receipt.and_then(|receipt| receipt.runtime_id.as_deref())),
        "SessionStart" | "UserPromptSubmit" => context.bridge.come_back(agent_id),
        _ => {}
    }
}

fn written(event: &EventIn) -> Vec<u8> {
    serde_json::to_vec(event).unwrap_or_else(|error| unreachable!("a wire type serialises: {error}"))
}

fn unread(error: &axum::Error) -> ApiError {
    if std::error::Error::source(error).is_some_and(|source| source.is::<LengthLimitError>()) {
        let error = ApiError::new(ErrorCode::TooLarge, "a hook may bring 1 MiB at the most");
        return error.with_hint("leave out what is not needed");
    }
    ApiError::new(ErrorCode::BadRequest, "the body did not arrive whole").with_hint("send it again")
}

fn read(bytes: &[u8], event_type: &str) -> Result<(HookIn, Value), ApiError> {
    let bad = |message: String| {
        ApiError::new(ErrorCode::BadRequest, message)
            .with_hint("send JSON with session_id, working_directory, tmux_pane and tmux")
    };
    let mut payload: Value =
        serde_json::from_slice(bytes).map_err(|error| bad(format!("the body is no JSON: {error}")))?;
    if !payload.is_object() {
        return Err(bad("the body is not a JSON object".into()));
    }
    let mut hook = HookIn::deserialize(&payload).map_err(|error| bad(format!("the body cannot be read: {error}")))?;
    let words =
        [Some(&hook.session_id), hook.agent_type.as_ref(), hook.tmux_pane.as_ref(), hook.iterm_pane_id.as_ref()];
    if hook.session_id.is_empty() {
        return Err(bad("session_id is missing".into()));
    }
    if words.into_iter().flatten().any(|word| word.len() > LONGEST_WORD) {
        return Err(bad(format!("an id has more than {LONGEST_WORD} bytes")));
    }
    if let Some(fields) = payload.as_object_mut() {
        fields.insert("hook_event_name".into(), json!(event_type));
    }
    // What becomes of the event is kept without its secrets as well: both have to mean the same session.
    hook.session_id = redact::text(&hook.session_id).into_owned();
    hook.agent_type = hook.agent_type.map(|kind| redact::text(&kind).into_owned());
    hook.iterm_pane_id = hook.iterm_pane_id.map(|pane| redact::text(&pane).into_owned());
    Ok((hook, payload))
}

/// Keeps what is known of the agent; what this hook does not tell stays.
async fn see(context: &Context, hook: &HookIn, agent_type: &AgentType, agent_id: &str) -> Result<(), ApiError> {
    let seen = SeenAgent {
        agent_id: agent_id.to_owned(),
        agent_type: agent_type.clone(),
        session: hook.session_id.clone(),
        tmux_pane_id: hook.tmux_pane.clone(),
        iterm_pane_id: hook.iterm_pane_id.clone(),
        at: context.actions.now(),
    };
    context.store.commit(vec![Change::SeeAgent(Box::new(seen))]).await.map_err(|error| {
        let error = ApiError::new(ErrorCode::NotStored, format!("it could not be stored: {error}"));
        error.with_hint("agtmux daemon status")
    })
}

fn located(
    context: &Context,
    hook: &HookIn,
    agent_type: &AgentType,
    agent_id: &str,
    event_type: &str,
    payload: Value,
) -> Option<EventIn> {
    let runtime_id = match hook.tmux_pane {
        Some(_) => None,
        None => Some(only_runtime_of(context, agent_id)?),
    };
    let socket = hook.tmux.as_deref().and_then(|tmux| tmux.split(',').next()).map(str::to_owned);
    Some(EventIn {
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
        ..EventIn::default()
    })
}

/// Of a session that is open twice nobody knows which one speaks.
fn only_runtime_of(context: &Context, agent_id: &str) -> Option<String> {
    let mut runtimes = context.bridge.runtimes_of(agent_id).into_iter();
    runtimes.next().filter(|_| runtimes.next().is_none())
}
