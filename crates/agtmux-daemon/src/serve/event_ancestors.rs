//! Finds the agent that sent an event, even if another agent started that agent.

use std::path::Path;

use agtmux_agents::ProcessFacts;

use crate::engine::EventAddress;
use crate::observe::{self, Discovery};

/// Stores in `outer_pids` the ancestors of the agent that sent the event. An event lists the sending process and its
/// ancestors. The nearest agent among them is the sender. The agents above the sender only started it. Processes that
/// have exited are ignored.
pub(super) fn add_ancestors(address: &mut EventAddress, discovery: &Discovery) {
    let EventAddress::Origin(origin) = address else { return };
    let table = discovery.processes();
    let mut ancestors = table.living(&origin.pids);
    // The pid may have been reused since the event was sent.
    ancestors.retain(|process| origin.starts.get(&process.pid).is_none_or(|start| *start == process.start));
    let facts: Vec<ProcessFacts<'_>> = ancestors.iter().map(observe::process_facts).collect();
    let same_input = |child, parent| {
        let (child, parent) = (table.stdin_path(child)?, table.stdin_path(parent)?);
        // Unrelated processes may all read from `/dev/null`.
        (child != Path::new("/dev/null") || parent != child).then(|| child == parent)
    };
    let own_count = discovery.registry().count_own_processes(&facts, same_input);
    origin.outer_pids = ancestors[own_count..].iter().map(|process| process.pid).collect();
}
