//! Where something is, in as few words as make it clear.

use std::collections::BTreeSet;

use agtmux_core::ids::TargetName;

/// With one server on this host its name would only be noise; with others it leads every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocationFormat {
    name_servers: bool,
}

impl LocationFormat {
    pub(super) fn for_servers<'a>(servers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let servers: BTreeSet<_> = servers.collect();
        let elsewhere = servers.iter().any(|(target, _)| *target != TargetName::LOCAL);
        Self { name_servers: servers.len() > 1 || elsewhere }
    }

    pub(super) fn session(self, target: &str, server: &str, session: &str) -> String {
        if self.name_servers { format!("{target}@{server} {session}") } else { session.to_owned() }
    }
}
