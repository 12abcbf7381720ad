//! What was asked, and when.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Agents ask a lot; only the newest requests matter to a test.
const MAX_REQUESTS: usize = 256;
const MAX_BODY_BYTES: usize = 256 * 1024;
/// Whole bodies are kept of the last few: they hold the whole conversation each time.
const MAX_BODIES: usize = 32;

/// One request and what became of it.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    pub path: String,
    /// The last user message.
    pub prompt: String,
    /// The same in the parts in which it came: agents put words of their own before and behind what was typed.
    pub prompt_parts: Vec<String>,
    /// What the answer does, in a word.
    pub action: String,
    /// Whether it is none of the conversation: a title, a count of tokens.
    pub is_side_request: bool,
    /// The names of the tools that the agent offers.
    pub tools: Vec<String>,
    /// The request as it came, shortened; empty for old ones.
    pub body: String,
    pub at: Instant,
    /// When the first byte of the answer was given.
    pub answer_began: Option<Instant>,
    /// When the answer was complete, or was cut on purpose.
    pub answer_ended: Option<Instant>,
    /// When the agent hung up before that.
    pub client_left: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct RequestLog(Mutex<StoredRequests>);

#[derive(Debug, Default)]
struct StoredRequests {
    requests: VecDeque<(u64, ModelRequest)>,
    next: u64,
}

impl RequestLog {
    /// Gives the number under which it can be noted what becomes of it.
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
