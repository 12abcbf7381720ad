//! The HTTP side: which protocol is spoken, and what is answered.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer_stream;
use super::log::{ModelRequest, RequestLog};
use super::script::{AnswerPart, CLOSING_TEXT, ScriptedAction};
use super::wire::{ParsedRequest, WireProtocol};

const MAX_REQUEST_BYTES: usize = 16 << 20;

pub(super) fn router(log: Arc<RequestLog>) -> Router {
    Router::new().fallback(answer).layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES)).with_state(log)
}

async fn answer(State(log): State<Arc<RequestLog>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path().to_owned();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let wire = (method == Method::POST).then(|| WireProtocol::from_path(&path)).flatten();
    let question = wire.map(|wire| wire.parse_request(&path, &asked)).unwrap_or_default();
    let act = action_for(&question);
    let number = log.add(ModelRequest {
        path: path.clone(),
        prompt: question.prompt(),
        prompt_parts: question.prompt_parts.clone(),
        action: act.as_ref().map_or_else(|| "CLOSE".to_owned(), ScriptedAction::keyword),
        is_side_request: wire.is_none() || question.side_answer.is_some(),
        tools: question.tools.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
        at: Instant::now(),
        answer_began: None,
        answer_ended: None,
        client_left: None,
    });
    let Some(wire) = wire else { return complete_response(StatusCode::OK, &json!({}), &log, number) };
    if let Some(ScriptedAction::Fail(code)) = act {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return complete_response(status, &wire.error_body(status.as_u16()), &log, number);
    }
    if let Some(counted) = wire.token_count(&path) {
        return complete_response(StatusCode::OK, &counted, &log, number);
    }
    let pieces = match (&question.side_answer, act) {
        (Some(said), _) => vec![AnswerPart::Text(said.clone())],
        (None, Some(act)) => act.answer_parts(),
        (None, None) => vec![AnswerPart::Text(CLOSING_TEXT.into())],
    };
    if !question.stream {
        return complete_response(StatusCode::OK, &wire.complete_answer(&question, &pieces), &log, number);
    }
    let frames = wire.frames(&question, &pieces);
    response(StatusCode::OK, "text/event-stream", answer_stream::body(frames, log, number))
}

/// None where a tool has answered, or nobody said what to do: then the conversation comes to its close.
fn action_for(question: &ParsedRequest) -> Option<ScriptedAction> {
    if question.side_answer.is_some() || question.after_tool {
        return question.started_subagent.clone().map(ScriptedAction::Await);
    }
    ScriptedAction::find(&question.prompt())
}

fn complete_response(status: StatusCode, value: &Value, log: &RequestLog, number: u64) -> Response {
    log.update(number, |request| {
        request.answer_began = Some(Instant::now());
        request.answer_ended = request.answer_began;
    });
    response(status, "application/json", Body::from(value.to_string()))
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
    builder.body(body).expect("a status and a plain header make a response")
}
