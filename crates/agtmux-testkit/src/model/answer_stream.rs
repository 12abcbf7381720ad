//! Streams an answer of the mock model, with the delays that the script asks for.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::time::sleep;

use super::log::RequestLog;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamFrame {
    Send(String),
    Wait(Duration),
    Cut,
}

/// A server-sent event with a name.
pub(super) fn named_event(name: &str, data: &serde_json::Value) -> StreamFrame {
    StreamFrame::Send(format!("event: {name}\ndata: {data}\n\n"))
}

/// A server-sent event without a name.
pub(super) fn unnamed_event(data: &serde_json::Value) -> StreamFrame {
    StreamFrame::Send(format!("data: {data}\n\n"))
}

pub(super) fn body(frames: Vec<StreamFrame>, log: Arc<RequestLog>, number: u64) -> Body {
    let answer = AnswerStream { frames: frames.into_iter(), log, number, finished: false };
    Body::from_stream(stream::unfold(answer, |mut answer| async move { Some((answer.next().await?, answer)) }))
}

struct AnswerStream {
    frames: std::vec::IntoIter<StreamFrame>,
    log: Arc<RequestLog>,
    number: u64,
    finished: bool,
}

impl AnswerStream {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.frames.next() {
                Some(StreamFrame::Send(text)) => {
                    self.log.update(self.number, |request| {
                        request.answer_began = request.answer_began.or(Some(Instant::now()))
                    });
                    return Some(Ok(Bytes::from(text)));
                }
                Some(StreamFrame::Wait(time)) => sleep(time).await,
                Some(StreamFrame::Cut) => {
                    self.end();
                    // An error makes the server close the connection without the final chunk.
                    return Some(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                None => {
                    self.end();
                    return None;
                }
            }
        }
    }

    fn end(&mut self) {
        self.finished = true;
        self.log.update(self.number, |request| request.answer_ended = request.answer_ended.or(Some(Instant::now())));
    }
}

impl Drop for AnswerStream {
    /// Records that the agent has disconnected. The HTTP server drops an unfinished answer in this case.
    fn drop(&mut self) {
        if !self.finished {
            self.log.update(self.number, |request| request.client_left = Some(Instant::now()));
        }
    }
}
