//! Events of agents that other agents have started.

use std::path::Path;

use agtmux_agents::ProcessFacts;

use crate::engine::{EventAddress, IncomingEvent};
use crate::observe::{self, Discovery};

/// The event with what its processes tell: it belongs to the nearest agent among them, and not to one that has started
/// that agent. Who has ended meanwhile tells nothing.
///
/// Elsewhere than where everybody waits: without `/proc` another program has to be asked.
pub(crate) async fn with_ancestors(incoming: IncomingEvent, discovery: &Discovery) -> IncomingEvent {
    let discovery = discovery.clone();
    match tokio::task::spawn_blocking(move || find_ancestors(incoming, &discovery)).await {
        Ok(incoming) => incoming,
        Err(ended) => std::panic::resume_unwind(ended.into_panic()),
    }
}

fn find_ancestors(mut incoming: IncomingEvent, discovery: &Discovery) -> IncomingEvent {
    let EventAddress::Origin(from) = &mut incoming.address else { return incoming };
    let table = discovery.processes();
    let mut line = table.living(&from.pids);
    // One of its numbers may have passed on meanwhile.
    line.retain(|process| from.starts.get(&process.pid).is_none_or(|start| *start == process.start));
    let facts: Vec<ProcessFacts<'_>> = line.iter().map(observe::process_facts).collect();
    let same_input = |child, parent| {
        let (child, parent) = (table.stdin_path(child)?, table.stdin_path(parent)?);
        // Many read from there who have nothing to do with each other.
        (child != Path::new("/dev/null") || parent != child).then(|| child == parent)
    };
    let own = discovery.registry().count_own_processes(&facts, same_input);
    from.outer_pids = line[own..].iter().map(|process| process.pid).collect();
    incoming
}
