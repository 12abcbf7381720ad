//! Where something is, in as few words as make it clear.

use std::collections::BTreeSet;

/// With one server its name would only be noise; with several it leads every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    name_servers: bool,
}

impl Places {
    pub(super) fn among<'a>(servers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        Self { name_servers: servers.collect::<BTreeSet<_>>().len() > 1 }
    }

    pub(super) fn session(self, target: &str, server: &str, session: &str) -> String {
        if self.name_servers { format!("{target}@{server} {session}") } else { session.to_owned() }
    }
}
