//! The HTTP handler: detects the protocol and builds the answer.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer_stream::{self, StreamFrame};
use super::connection::ClientConnection;
use super::log::{ModelRequest, RequestLog};
use super::script::{AnswerPart, CLOSING_TEXT, ScriptedAction};
use super::wire::{ParsedRequest, WireProtocol};

const MAX_REQUEST_BYTES: usize = 16 << 20;

pub(super) fn router(log: Arc<RequestLog>) -> Router {
    Router::new().fallback(answer).layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES)).with_state(log)
}

async fn answer(
    State(log): State<Arc<RequestLog>>,
    ConnectInfo(connection): ConnectInfo<ClientConnection>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let path = uri.path().to_owned();
    let request_body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let protocol = (method == Method::POST).then(|| WireProtocol::from_path(&path)).flatten();
    let request = protocol.map(|protocol| protocol.parse_request(&path, &request_body)).unwrap_or_default();
    let action = action_for(&request);
    let number = log.add(ModelRequest {
        path: path.clone(),
        prompt: request.prompt(),
        prompt_parts: request.prompt_parts.clone(),
        action: action.as_ref().map_or_else(|| "CLOSE".to_owned(), ScriptedAction::keyword),
        is_side_request: protocol.is_none() || request.side_answer.is_some(),
        tools: request.tools.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
        at: Instant::now(),
        answer_began: None,
        answer_ended: None,
        client_left: None,
    });
    let Some(protocol) = protocol else { return complete_response(StatusCode::OK, &json!({}), &log, number) };
    if let Some(ScriptedAction::Fail(code)) = action {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return complete_response(status, &protocol.error_body(status.as_u16()), &log, number);
    }
    if action == Some(ScriptedAction::Hangup) {
        connection.reset_when_closed();
        // The server closes the connection without sending the header if the body fails at once.
        let nothing = answer_stream::body(vec![StreamFrame::Cut], log, number);
        return response(StatusCode::OK, "text/event-stream", nothing);
    }
    if let Some(counted) = protocol.token_count(&path) {
        return complete_response(StatusCode::OK, &counted, &log, number);
    }
    let parts = match (&request.side_answer, action) {
        (Some(answer), _) => vec![AnswerPart::Text(answer.clone())],
        (None, Some(action)) => action.answer_parts(),
        (None, None) => vec![AnswerPart::Text(CLOSING_TEXT.into())],
    };
    if !request.stream {
        return complete_response(StatusCode::OK, &protocol.complete_answer(&request, &parts), &log, number);
    }
    let frames = protocol.frames(&request, &parts);
    response(StatusCode::OK, "text/event-stream", answer_stream::body(frames, log, number))
}

/// The scripted action for a request. If the request contains the result of a tool that started a subagent, returns
/// [`ScriptedAction::Await`]. Returns None for other tool results, for a side request and for a prompt without a
/// keyword: the mock model then answers with a fixed text.
fn action_for(request: &ParsedRequest) -> Option<ScriptedAction> {
    if request.side_answer.is_some() || request.after_tool {
        return request.started_subagent.clone().map(ScriptedAction::Await);
    }
    ScriptedAction::find(&request.prompt())
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
    builder.body(body).expect("the status and header are valid")
}
