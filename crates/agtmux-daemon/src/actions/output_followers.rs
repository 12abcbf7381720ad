//! Remembers which callers follow which panes. `view-output --follow` reads a pane many times, but only the first read
//! is recorded in the audit log.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::RequestCaller;

/// When this many followers are stored, the daemon forgets all of them. The audit log then records the next read of
/// each follower again.
const MAX_FOLLOWERS: usize = 4096;

type FollowerKey = (Option<u32>, &'static str, String);

#[derive(Debug, Default)]
pub(super) struct OutputFollowers(Mutex<HashSet<FollowerKey>>);

impl OutputFollowers {
    pub(super) fn insert(&self, caller: &RequestCaller, target: &str, server: &str, pane: &str) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= MAX_FOLLOWERS {
            looks.clear();
        }
        looks.insert(follower_key(caller, target, server, pane));
    }

    pub(super) fn contains(&self, caller: &RequestCaller, target: &str, server: &str, pane: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&follower_key(caller, target, server, pane))
    }
}

fn follower_key(caller: &RequestCaller, target: &str, server: &str, pane: &str) -> FollowerKey {
    (caller.peer.and_then(|peer| peer.pid), caller.via, format!("{target} {server} {pane}"))
}
