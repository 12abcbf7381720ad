//! Who looks at what. Whoever follows a pane looks at it again and again, which is one action; but the first look is one.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::RequestCaller;

/// More do not look at the same time; who is forgotten is written down once more.
const MAX_FOLLOWERS: usize = 4096;

type FollowerKey = (Option<u32>, &'static str, String);

#[derive(Debug, Default)]
pub(super) struct OutputFollowers(Mutex<HashSet<FollowerKey>>);

impl OutputFollowers {
    pub(super) fn insert(&self, asker: &RequestCaller, target: &str, server: &str, pane: &str) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= MAX_FOLLOWERS {
            looks.clear();
        }
        looks.insert(follower_key(asker, target, server, pane));
    }

    pub(super) fn contains(&self, asker: &RequestCaller, target: &str, server: &str, pane: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&follower_key(asker, target, server, pane))
    }
}

fn follower_key(asker: &RequestCaller, target: &str, server: &str, pane: &str) -> FollowerKey {
    (asker.peer.and_then(|peer| peer.pid), asker.via, format!("{target} {server} {pane}"))
}
