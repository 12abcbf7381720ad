//! Who looks at what. Whoever follows a pane looks at it again and again, which is one action; but the first look is one.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::Asker;

/// More do not look at the same time; who is forgotten is written down once more.
const MOST: usize = 4096;

type Look = (Option<u32>, &'static str, String);

#[derive(Debug, Default)]
pub(super) struct Followers(Mutex<HashSet<Look>>);

impl Followers {
    pub(super) fn note(&self, asker: &Asker, target: &str, server: &str, pane: &str) {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.len() >= MOST {
            looks.clear();
        }
        looks.insert(look(asker, target, server, pane));
    }

    pub(super) fn knows(&self, asker: &Asker, target: &str, server: &str, pane: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&look(asker, target, server, pane))
    }
}

fn look(asker: &Asker, target: &str, server: &str, pane: &str) -> Look {
    (asker.peer.and_then(|peer| peer.pid), asker.via, format!("{target} {server} {pane}"))
}
