//! An answer as it goes over the wire, at its own pace.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::time::sleep;

use super::log::Log;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    Send(String),
    Wait(Duration),
    Cut,
}

/// One event of a stream of server-sent events.
pub(super) fn event(name: &str, data: &serde_json::Value) -> Frame {
    Frame::Send(format!("event: {name}\ndata: {data}\n\n"))
}

/// The same without a name.
pub(super) fn data(data: &serde_json::Value) -> Frame {
    Frame::Send(format!("data: {data}\n\n"))
}

pub(super) fn body(frames: Vec<Frame>, log: Arc<Log>, number: u64) -> Body {
    let player = Player { frames: frames.into_iter(), log, number, over: false };
    Body::from_stream(stream::unfold(player, |mut player| async move { Some((player.next().await?, player)) }))
}

struct Player {
    frames: std::vec::IntoIter<Frame>,
    log: Arc<Log>,
    number: u64,
    over: bool,
}

impl Player {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.frames.next() {
                Some(Frame::Send(text)) => {
                    self.log.note(self.number, |request| request.began = request.began.or(Some(Instant::now())));
                    return Some(Ok(Bytes::from(text)));
                }
                Some(Frame::Wait(time)) => sleep(time).await,
                Some(Frame::Cut) => {
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
        self.over = true;
        self.log.note(self.number, |request| request.ended = request.ended.or(Some(Instant::now())));
    }
}

impl Drop for Player {
    /// The server drops an answer whose reader has gone.
    fn drop(&mut self) {
        if !self.over {
            self.log.note(self.number, |request| request.left = Some(Instant::now()));
        }
    }
}
