//! The log of the requests that the mock model has received.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The maximum number of stored requests. Older requests are dropped, because tests need only the newest ones.
const MAX_REQUESTS: usize = 256;
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The maximum number of stored request bodies. Bodies are large, because each contains the whole conversation.
const MAX_BODIES: usize = 32;

/// One request and the progress of its answer.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub path: String,
    /// The last user message.
    pub prompt: String,
    /// The parts of the last user message. Agents add their own text before and after the typed text.
    pub prompt_parts: Vec<String>,
    /// The keyword of the action that the prompt requests, or `CLOSE` if the prompt requests no action.
    pub action: String,
    /// Whether the request is not part of the conversation. For example, it asks for a title or a token count.
    pub is_side_request: bool,
    /// The names of the tools in the request.
    pub tools: Vec<String>,
    /// The request body, cut to `MAX_BODY_BYTES`. Only the newest `MAX_BODIES` requests keep their bodies. For older
    /// requests this text is empty.
    pub body: String,
    pub at: Instant,
    /// When the first byte of the answer was sent.
    pub answer_began: Option<Instant>,
    /// When the answer ended, either because it was complete or because the script cut it off.
    pub answer_ended: Option<Instant>,
    /// When the agent disconnected before the answer was complete. None if it did not.
    pub client_left: Option<Instant>,
}

impl ModelRequest {
    /// Whether the request is part of the conversation and its prompt has a line that begins with this text.
    pub fn asks(&self, text: &str) -> bool {
        !self.is_side_request && self.prompt.lines().any(|line| line.trim_start().starts_with(text))
    }
}

#[derive(Debug, Default)]
pub(super) struct RequestLog(Mutex<StoredRequests>);

#[derive(Debug, Default)]
struct StoredRequests {
    requests: VecDeque<(u64, ModelRequest)>,
    next: u64,
}

impl RequestLog {
    /// Stores a request and returns its number for later updates.
    pub(super) fn add(&self, mut request: ModelRequest) -> u64 {
        let cut = request.body.floor_char_boundary(MAX_BODY_BYTES);
        request.body.truncate(cut);
        let mut kept = self.stored();
        let number = kept.next;
        kept.next += 1;
        kept.requests.push_back((number, request));
        if kept.requests.len() > MAX_REQUESTS {
            kept.requests.pop_front();
        }
        if let Some(old) = kept.requests.len().checked_sub(MAX_BODIES + 1) {
            kept.requests[old].1.body = String::new();
        }
        number
    }

    pub(super) fn update(&self, number: u64, change: impl FnOnce(&mut ModelRequest)) {
        let mut kept = self.stored();
        if let Some((_, request)) = kept.requests.iter_mut().find(|(known, _)| *known == number) {
            change(request);
        }
    }

    pub(super) fn all(&self) -> Vec<ModelRequest> {
        self.stored().requests.iter().map(|(_, request)| request.clone()).collect()
    }

    fn stored(&self) -> MutexGuard<'_, StoredRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
