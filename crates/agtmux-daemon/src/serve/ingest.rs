//! `POST /v1/events`: parses and redacts an event, then passes it to the engine.

use std::borrow::Cow;
use std::path::Path;

use agtmux_agents::SESSION_FIELDS;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{ActionKind, EventReceipt, EventReceiptStatus, EventSubmission};
use agtmux_core::binding::EventOrigin;
use agtmux_core::evidence::Source;
use agtmux_core::ids::{AgentType, ProcessRef, ServerName, TargetName};
use agtmux_core::redact;
use agtmux_core::refs::is_agent_name;
use agtmux_core::runtime::RuntimeId;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::ServeContext;
use super::event_ancestors::add_ancestors;
use super::extract::{ErrorResponse, read_body};
use super::openapi::Error;
use crate::actions::{Actions, ChangeEntry, RequestCaller};
use crate::engine::{AGENT_STARTED, EventAddress, IncomingEvent};
use crate::observe::{self, AgentReport, Discovery};

pub(super) const MAX_EVENT_BYTES: usize = 1 << 20;
const MAX_WORD_LEN: usize = 512;
const MAX_PATH_LEN: usize = 4096;
/// The most process ids that are read from an event: the sender and its ancestors. Real processes have fewer ancestors
/// than this.
const MAX_PIDS: usize = 64;

/// A body larger than this counts as a large event. Smaller bodies are parsed and redacted within a few milliseconds.
const LARGE_EVENT_BYTES: usize = 16 << 10;

/// Limits how many large events are read at the same time. The redaction of each one needs additional memory.
static LARGE_EVENT_SLOTS: Semaphore = Semaphore::const_new(2);

/// Post an event about an agent.
///
/// The response is sent when the event is stored. Fails with `E_CALLER_IS_AGENT` if an agent sends an event about
/// another agent, unless `events.allow_from_other_agents` is set.
#[utoipa::path(post, path = "/v1/events", request_body = EventSubmission, responses(
    (status = 202, body = EventReceipt), Error<400>, Error<403>, Error<404>, Error<409>, Error<413>, Error<503>))]
pub(super) async fn post_event(
    context: ServeContext,
    caller: RequestCaller,
    body: Body,
) -> Result<(StatusCode, Json<EventReceipt>), ErrorResponse> {
    let bytes = read_body(body, MAX_EVENT_BYTES).await?;
    let sender = Some((context.actions.clone(), caller.clone()));
    let incoming = read_event(bytes.len(), move || parse(&bytes), &context.discovery, sender).await?;
    let origin = reported_origin(&incoming, &context.discovery);
    let receipt = match given_name(&incoming) {
        Some(name) => name_agent(&context, &caller, name, incoming).await?,
        None => context.engine.ingest_event(incoming).await?,
    };
    if receipt.status == EventReceiptStatus::PendingBind
        && let Some((origin, agent_type)) = origin
    {
        report_agent(&context, &caller, origin, agent_type).await;
    }
    Ok((StatusCode::ACCEPTED, Json(receipt)))
}

/// The origin and the agent type of an event, if an agent's own hook sent the event from a pane.
fn reported_origin(incoming: &IncomingEvent, discovery: &Discovery) -> Option<(EventOrigin, AgentType)> {
    let EventAddress::Origin(origin) = &incoming.address else { return None };
    let agent_type = origin.agent_type.clone()?;
    discovery.registry().agent(agent_type.as_str())?;
    (incoming.source == Source::Hook && origin.pane.is_some()).then(|| (origin.clone(), agent_type))
}

/// Tells the observer of the pane that an agent's hook sent an event from the pane. The observer can then find this
/// agent even if no manifest recognises it by its processes. The report counts only if its sender runs inside the pane.
async fn report_agent(context: &ServeContext, caller: &RequestCaller, origin: EventOrigin, agent_type: AgentType) {
    let senders = sender_processes(context, caller).await;
    if !senders.is_empty() {
        context.engine.report_agent(origin, AgentReport { agent_type, senders }).await;
    }
}

/// The process at the other end of the connection and its ancestors. The pids in an event are not trusted.
async fn sender_processes(context: &ServeContext, caller: &RequestCaller) -> Vec<ProcessRef> {
    let Some(pid) = caller.peer.and_then(|peer| peer.pid) else { return Vec::new() };
    let processes = context.discovery.processes();
    tokio::task::spawn_blocking(move || senders(&*processes, pid)).await.unwrap_or_default()
}

/// The process with this pid and its ancestors, without the programs of agtmux.
fn senders(processes: &dyn ProcessTable, pid: u32) -> Vec<ProcessRef> {
    let parent = |process: &ProcessInfo| processes.process(process.ppid).filter(|parent| parent.pid > 1);
    let line = std::iter::successors(processes.process(pid), parent).take(MAX_PIDS);
    let others = line.filter(|process| process.name != b"agtmux");
    others.map(|process| ProcessRef { pid: process.pid, start: process.start }).collect()
}

/// Reads an event from a document of about `size` bytes. Runs on a blocking thread for two reasons: the redaction of a
/// large event takes long, and on systems without `/proc` the daemon must run a program to find the ancestors of the
/// sender.
pub(crate) async fn read_event(
    size: usize,
    document: impl FnOnce() -> ApiResult<Value> + Send + 'static,
    discovery: &Discovery,
    sender: Option<(Actions, RequestCaller)>,
) -> ApiResult<IncomingEvent> {
    let _slot = if size > LARGE_EVENT_BYTES { LARGE_EVENT_SLOTS.acquire().await.ok() } else { None };
    let discovery = discovery.clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut incoming = from_document(document()?)?;
        add_ancestors(&mut incoming.address, &discovery);
        incoming.sender = sender.map(|(actions, caller)| actions.event_sender(&caller));
        Ok(incoming)
    });
    read.await.unwrap_or_else(|error| {
        // An event that cannot be redacted is not stored.
        tracing::error!(%error, "an event could not be read");
        Err(ApiError::new(ErrorCode::Internal, "the event could not be read").with_hint("agtmux daemon logs"))
    })
}

/// The name that this event gives to an agent.
fn given_name(event: &IncomingEvent) -> Option<String> {
    let is_start = event.source == Source::Wrapper && event.event_type == AGENT_STARTED;
    let name = event.payload.get("name").filter(|_| is_start)?.as_str()?;
    is_agent_name(name).then(|| name.to_owned())
}

/// Gives an agent a name and records this in the audit log. If an agent sends the event, the name must not belong to
/// another agent, because the user would then send texts to the wrong agent.
async fn name_agent(
    context: &ServeContext,
    caller: &RequestCaller,
    name: String,
    event: IncomingEvent,
) -> ApiResult<EventReceipt> {
    let summary = "name an agent";
    let entry = ChangeEntry { kind: ActionKind::Name, caller, summary, name: &name };
    let is_agent = event.sender.as_ref().is_some_and(|sender| sender.shown.agent.is_some());
    let taken = name.clone();
    let change = async {
        if is_agent && context.engine.is_name_taken(taken.clone(), sender_processes(context, caller).await).await {
            let message = format!("another agent is already named '{taken}', and agents may not take over that name");
            return Err(ApiError::new(ErrorCode::CallerIsAgent, message).with_hint("choose another name"));
        }
        context.engine.ingest_event(event).await
    };
    context.actions.audited_change(entry, change).await
}

fn parse(bytes: &[u8]) -> ApiResult<Value> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = error.to_string();
        match message.starts_with("recursion limit exceeded") {
            true => bad("the body is nested more than 127 levels deep".into()),
            false => bad(format!("the body is not valid JSON: {message}")),
        }
    })
}

/// Redacts the document, and parses what the engine needs from it.
fn from_document(mut document: Value) -> ApiResult<IncomingEvent> {
    if !document.is_object() {
        return Err(bad("the body is not a JSON object".into()));
    }
    let event = EventSubmission::deserialize(&document).map_err(|e| bad(format!("invalid event: {e}")))?;
    let content_hash = content_hash(&event);
    redact::json(&mut document);
    let source = Source::parse(&event.source).map_err(|e| bad(format!("source: {e}")))?;
    let key =
        required_text("dedupe_key or source_event_id", event.dedupe_key.as_ref().or(event.source_event_id.as_ref()))?;
    if event.source_seq.is_some_and(|seq| i64::try_from(seq).is_err()) {
        return Err(bad(format!("source_seq is larger than {}", i64::MAX)));
    }
    Ok(IncomingEvent {
        event_id: Uuid::now_v7().simple().to_string(),
        address: event_address(&event)?,
        source,
        event_type: redact::text(required_text("event_type", Some(&event.event_type))?).into_owned(),
        source_event_id: event.source_event_id.as_deref().map(redact_key),
        dedupe_key: redact_key(key),
        source_seq: event.source_seq,
        event_time: event.event_time,
        content_hash,
        body: Some(document.to_string()),
        payload: document["payload"].take(),
        was_spooled: false,
        sender: None,
    })
}

/// Redacts a key. A digest of the original is added, so that different keys stay different.
fn redact_key(key: &str) -> String {
    match redact::text(key) {
        Cow::Borrowed(key) => key.to_owned(),
        Cow::Owned(redacted) => {
            let digest = Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_bytes()).simple();
            format!("{redacted} {digest}")
        }
    }
}

fn event_address(event: &EventSubmission) -> ApiResult<EventAddress> {
    if let Some(id) = &event.runtime_id {
        return Ok(EventAddress::Runtime(RuntimeId::from_stored(required_text("runtime_id", Some(id))?.to_owned())));
    }
    let optional = |name, value: &Option<String>| match value {
        Some(value) => required_text(name, Some(value)).map(|value| Some(redact::text(value).into_owned())),
        None => Ok(None),
    };
    let target = event.target.clone().unwrap_or_else(|| TargetName::LOCAL.into());
    if target != TargetName::LOCAL {
        let error = ApiError::new(ErrorCode::TargetNotFound, format!("there is no target '{target}'"));
        return Err(error.with_hint(format!("use '{}' for this host", TargetName::LOCAL)));
    }
    let pane = event.pane.as_ref().map(|pane| pane.parse().map_err(|e| bad(format!("pane: {e}")))).transpose()?;
    let origin = EventOrigin {
        target: TargetName::new(target),
        server: optional("server", &event.server)?.map(ServerName::new).or_else(|| server_of(event)),
        pane,
        agent_type: optional("agent_type", &event.agent_type)?.map(AgentType::new),
        pids: event.pid.into_iter().chain(event.pids.iter().copied()).take(MAX_PIDS).collect(),
        start: event.pid_start,
        starts: event.pids.iter().copied().zip(event.pid_starts.iter().copied()).take(MAX_PIDS).collect(),
        session: payload_text(event, &SESSION_FIELDS),
        outer_pids: Vec::new(),
        cwd: event.cwd.clone().filter(|cwd| cwd.len() <= MAX_PATH_LEN).or_else(|| payload_text(event, &["cwd"])),
    };
    match can_be_bound(&origin) {
        true => Ok(EventAddress::Origin(origin)),
        false => Err(bad("the event names no agent: set 'runtime_id', 'pane' or 'pid', or set 'agent_type' and a \
            session id in the payload"
            .into())),
    }
}

/// Whether the origin is sufficient to find a runtime. A session id is sufficient only together with an agent type,
/// because sessions are looked up among the agents of one type.
fn can_be_bound(origin: &EventOrigin) -> bool {
    origin.pane.is_some() || !origin.pids.is_empty() || (origin.session.is_some() && origin.agent_type.is_some())
}

/// The tmux server whose socket the event names.
fn server_of(event: &EventSubmission) -> Option<ServerName> {
    let socket = event.socket.as_deref().filter(|socket| socket.starts_with('/') && socket.len() <= MAX_PATH_LEN)?;
    Some(observe::server_name(Path::new(socket)))
}

/// Returns the text of the first of these payload fields that contains a text. Several names are tried, because agents
/// use different names for the same field.
fn payload_text(event: &EventSubmission, names: &[&str]) -> Option<String> {
    let payload = event.payload.as_ref()?;
    let text = names.iter().find_map(|name| payload.get(name)?.as_str())?;
    (text.len() <= MAX_PATH_LEN).then(|| redact::text(text).into_owned())
}

fn required_text<'e>(name: &str, value: Option<&'e String>) -> ApiResult<&'e str> {
    match value {
        Some(value) if value.is_empty() => Err(bad(format!("{name} is empty"))),
        Some(value) if value.len() > MAX_WORD_LEN => Err(bad(format!("{name} has more than {MAX_WORD_LEN} bytes"))),
        Some(value) => Ok(value),
        None => Err(bad(format!("{name} is missing"))),
    }
}

/// A hash of the content. Two events with the same dedupe key are duplicates if their hashes are equal, regardless of
/// when they were sent.
fn content_hash(event: &EventSubmission) -> String {
    let content = serde_json::json!([event.event_type, event.source_seq, event.payload]);
    Uuid::new_v5(&Uuid::NAMESPACE_OID, content.to_string().as_bytes()).simple().to_string()
}

fn bad(message: String) -> ApiError {
    ApiError::new(ErrorCode::BadRequest, message).with_hint("`agtmux emit --help` shows what an event needs")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn valid_event() -> Value {
        json!({"pane": "%3", "source": "hook", "event_type": "running", "dedupe_key": "k", "source_seq": 1,
               "event_time": "2026-11-15T09:00:00Z", "payload": {"a": [1, "b"]}, "extra": true})
    }

    fn read(bytes: &[u8]) -> ApiResult<IncomingEvent> {
        from_document(parse(bytes)?)
    }

    fn rejection(body: &Value) -> ApiError {
        read(body.to_string().as_bytes()).expect_err("rejected")
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let with = |field: &str, value: Value| {
            let mut event = valid_event();
            event[field] = value;
            rejection(&event).message
        };
        assert!(with("source_seq", json!(u64::MAX)).contains("source_seq"));
        assert!(with("source_seq", json!(-1)).contains("invalid event"));
        assert!(with("server", json!("s".repeat(600))).contains("server has more than 512 bytes"));
        assert!(with("agent_type", json!("")).contains("agent_type is empty"));
        assert!(with("pane", json!("3")).contains("%N"));
        assert!(with("source", json!("gossip")).contains("hook, notify"));
        assert!(with("pid", json!("x")).contains("invalid event"));
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        assert!(read(deep.as_bytes()).expect_err("rejected").message.contains("nested"));
        assert!(read(b"{\"a\": \"\xff\"}").expect_err("rejected").message.contains("not valid JSON"));
    }

    #[test]
    fn an_event_needs_a_pane_a_process_or_a_session() {
        let mut event = valid_event();
        event["pane"] = Value::Null;
        assert!(rejection(&event).message.contains("names no agent"));
        event["payload"] = json!({"session_id": "s"});
        assert!(rejection(&event).message.contains("agent_type"), "a session needs an agent type");
        for (field, value) in [("agent_type", json!("claude")), ("pid", json!(7)), ("pids", json!([7, 8]))] {
            let mut event = event.clone();
            event[field] = value;
            assert!(read(event.to_string().as_bytes()).is_ok(), "{event}");
        }
    }

    #[test]
    fn a_redacted_key_still_distinguishes_events() {
        let keyed = |secret: &str| {
            let mut event = valid_event();
            event["dedupe_key"] = json!(format!("TOKEN={secret}"));
            event["event_type"] = json!(format!("login TOKEN={secret}"));
            read(event.to_string().as_bytes()).expect("read")
        };
        let (one, other) = (keyed("hunter2hunter2"), keyed("hunter3hunter3"));
        for kept in [&one.dedupe_key, &one.event_type, one.body.as_ref().expect("a body")] {
            assert!(!kept.contains("hunter2"), "{kept}");
        }
        assert_ne!(one.dedupe_key, other.dedupe_key);
        assert_eq!(one.dedupe_key, keyed("hunter2hunter2").dedupe_key);
    }

    /// Values that are valid for some fields and invalid for others.
    fn any_value() -> impl Strategy<Value = Value> {
        let words = ["%3", "hook", "poller", "running", "host", "2026-11-15T09:00:00Z", "", "\u{0}", "k"];
        let leaf = prop_oneof![
            proptest::sample::select(words.to_vec()).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<bool>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-z_]{1,12}", inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    const FIELDS: [&str; 16] = [
        "runtime_id",
        "target",
        "server",
        "pane",
        "agent_type",
        "pid",
        "pid_start",
        "pids",
        "pid_starts",
        "source",
        "event_type",
        "source_event_id",
        "dedupe_key",
        "source_seq",
        "event_time",
        "payload",
    ];

    fn check(outcome: ApiResult<IncomingEvent>) -> Result<(), TestCaseError> {
        match outcome {
            Ok(incoming) => prop_assert!(!incoming.dedupe_key.is_empty() && !incoming.event_type.is_empty()),
            Err(error) => {
                prop_assert!(matches!(error.code, ErrorCode::BadRequest | ErrorCode::TargetNotFound), "{error:?}");
                prop_assert!(!error.message.is_empty() && error.hint.is_some());
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            check(read(&bytes))?;
        }

        #[test]
        fn any_value_in_any_field_is_read_or_rejected(
            fields in proptest::collection::btree_map(proptest::sample::select(FIELDS.to_vec()), any_value(), 0..5),
        ) {
            let mut event = valid_event();
            for (name, value) in fields {
                event[name] = value;
            }
            check(read(event.to_string().as_bytes()))?;
        }

        #[test]
        fn a_damaged_event_is_read_or_rejected(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut bytes = valid_event().to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(if cut { at } else { bytes.len() });
            check(read(&bytes))?;
        }
    }
}
