//! The HTTP side: which protocol is spoken, and what is answered.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::log::{Log, Request};
use super::play;
use super::script::{Act, CLOSING, Piece};
use super::wire::{Question, Wire};

const LARGEST_REQUEST: usize = 16 << 20;

pub(super) fn router(log: Arc<Log>) -> Router {
    Router::new().fallback(answer).layer(DefaultBodyLimit::max(LARGEST_REQUEST)).with_state(log)
}

async fn answer(State(log): State<Arc<Log>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path().to_owned();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let wire = (method == Method::POST).then(|| Wire::of(&path)).flatten();
    let question = wire.map(|wire| wire.question(&path, &asked)).unwrap_or_default();
    let act = act_for(&question);
    let number = log.add(Request {
        path: path.clone(),
        prompt: question.prompt(),
        said: question.said.clone(),
        act: act.as_ref().map_or_else(|| "CLOSE".to_owned(), Act::word),
        side: wire.is_none() || question.side.is_some(),
        tools: question.tools.clone(),
        body: String::from_utf8_lossy(&body).into_owned(),
        at: Instant::now(),
        began: None,
        ended: None,
        left: None,
    });
    let Some(wire) = wire else { return whole(StatusCode::OK, &json!({}), &log, number) };
    if let Some(Act::Fail(code)) = act {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return whole(status, &wire.failure(status.as_u16()), &log, number);
    }
    if let Some(counted) = wire.count(&path) {
        return whole(StatusCode::OK, &counted, &log, number);
    }
    let pieces = match (&question.side, act) {
        (Some(said), _) => vec![Piece::Text(said.clone())],
        (None, Some(act)) => act.pieces(),
        (None, None) => vec![Piece::Text(CLOSING.into())],
    };
    if !question.stream {
        return whole(StatusCode::OK, &wire.whole(&question, &pieces), &log, number);
    }
    let frames = wire.frames(&question, &pieces);
    response(StatusCode::OK, "text/event-stream", play::body(frames, log, number))
}

/// None where a tool has answered, or nobody said what to do: then the conversation comes to its close.
fn act_for(question: &Question) -> Option<Act> {
    if question.side.is_some() || question.after_tool {
        return question.begun_agent.clone().map(Act::Await);
    }
    Act::find(&question.prompt())
}

fn whole(status: StatusCode, value: &Value, log: &Log, number: u64) -> Response {
    log.note(number, |request| {
        request.began = Some(Instant::now());
        request.ended = request.began;
    });
    response(status, "application/json", Body::from(value.to_string()))
}

fn response(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let builder = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
    builder.body(body).expect("a status and a plain header make a response")
}
