//! Tells the client in the result of any call that one of its tasks has ended. No client listens for notifications.

use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery};
use agtmux_core::task::TaskEventKind;
use serde_json::json;

use super::task_session::task_session;
use crate::answer::{ToolAnswer, ToolError, ToolResult};
use crate::tool_call::ToolCall;
use crate::untrusted::bounded_field;

/// The most events that one result reports.
const MAX_EVENTS: u32 = 10;
const MAX_MESSAGE_CHARS: usize = 200;

/// Starts to report task events, from now on. Does nothing if the server reports them already.
pub(super) async fn begin(call: &ToolCall<'_>) -> Result<(), ToolError> {
    if call.state.reported_task_event().is_none() {
        let newest = TaskEventsQuery { limit: Some(1), ..TaskEventsQuery::default() };
        let events: TaskEvents = call.daemon.get("/v1/tasks/events", &newest).await?;
        call.state.set_reported_task_event(events.seq);
    }
    Ok(())
}

/// Adds the tasks that ended or asked for input since the last result.
pub(super) async fn add(call: &ToolCall<'_>, mut answer: ToolAnswer) -> ToolResult {
    let Some(after) = call.state.reported_task_event() else { return Ok(answer) };
    let session = task_session(call, None).await?;
    let query = TaskEventsQuery {
        session: Some(session.session),
        socket: session.socket,
        after: Some(after),
        limit: Some(MAX_EVENTS),
        ..TaskEventsQuery::default()
    };
    let Ok(events) = call.daemon.get::<TaskEvents>("/v1/tasks/events", &query).await else { return Ok(answer) };
    call.state.set_reported_task_event(events.seq);
    let is_news =
        |event: &&TaskEvent| !event.collapsed && !matches!(event.kind, TaskEventKind::Started | TaskEventKind::Notify);
    let news: Vec<String> =
        events.items.iter().filter(is_news).map(|event| bounded_field(&event.message, MAX_MESSAGE_CHARS)).collect();
    if news.is_empty() {
        return Ok(answer);
    }
    answer.text.push_str(&format!("\n\nNews of your tasks:\n{}", news.join("\n")));
    if let Some(facts) = answer.structured.as_object_mut() {
        facts.insert("task_news".to_owned(), json!(news));
    }
    Ok(answer)
}
