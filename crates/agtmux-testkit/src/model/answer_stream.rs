//! An answer as it goes over the wire, at its own pace.

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

/// One event of a stream of server-sent events.
pub(super) fn named_event(name: &str, data: &serde_json::Value) -> StreamFrame {
    StreamFrame::Send(format!("event: {name}\ndata: {data}\n\n"))
}

/// The same without a name.
pub(super) fn unnamed_event(data: &serde_json::Value) -> StreamFrame {
    StreamFrame::Send(format!("data: {data}\n\n"))
}

pub(super) fn body(frames: Vec<StreamFrame>, log: Arc<RequestLog>, number: u64) -> Body {
    let player = AnswerStream { frames: frames.into_iter(), log, number, finished: false };
    Body::from_stream(stream::unfold(player, |mut player| async move { Some((player.next().await?, player)) }))
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
                    // An error makes the server close the connection without the last chunk.
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
    /// The server drops an answer whose reader has gone.
    fn drop(&mut self) {
        if !self.finished {
            self.log.update(self.number, |request| request.client_left = Some(Instant::now()));
        }
    }
}
