//! Formats locations as short as possible.

use std::collections::BTreeSet;

use agtmux_core::ids::TargetName;

/// How a table shows the location of a pane. The location includes the server name only if the table covers several
/// servers or a remote server.
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
