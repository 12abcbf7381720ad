//! Limits how many servers, panes and agents one remote host may add. Evidence over the limits is dropped, and the
//! target reports an outage.

use std::collections::BTreeSet;

use agtmux_core::fleet::{Fleet, OutageCode, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{PaneId, ServerKey, TargetName};

use super::pacing::UNITS_PER_SECOND;

const MAX_SERVERS: usize = 64;
/// The most panes of one host. Also applies to agentless hosts.
pub(super) const MAX_PANES: usize = 5_000;
/// A pane has one row per session that shows it. The first row of each pane does not count towards this limit; all its
/// other rows do. The decoder drops the rows over the limit.
pub(super) const MAX_EXTRA_ROWS: usize = 2 * MAX_PANES;
const MAX_AGENTS: usize = 512;

/// Applies the limits, and remembers which targets exceeded them.
#[derive(Debug, Default)]
pub(crate) struct HostLimits {
    truncated: BTreeSet<TargetName>,
    rate_limited: BTreeSet<TargetName>,
}

impl HostLimits {
    /// Forgets that the target exceeded the limits. Called when the target sends everything again.
    pub(crate) fn reset(&mut self, target: &TargetName) {
        self.truncated.remove(target);
    }

    pub(crate) fn mark_truncated(&mut self, target: &TargetName) {
        self.truncated.insert(target.clone());
    }

    /// Sets whether the hub reads from the target more slowly than the target sends.
    pub(crate) fn set_rate_limited(&mut self, target: &TargetName, rate_limited: bool) {
        match rate_limited {
            true => self.rate_limited.insert(target.clone()),
            false => self.rate_limited.remove(target),
        };
    }

    /// Returns the part of the update that fits within the limits. `agents` is the current number of agents on the
    /// host. The caller keeps this number, because counting the agents again for each update of a large batch takes too
    /// long.
    pub(crate) fn limit(&mut self, fleet: &Fleet, agents: usize, mut update: TopologyUpdate) -> Option<TopologyUpdate> {
        if let Some(key) = reported_server(&update)
            && fleet.server(key).is_none()
            && fleet.servers_on(&key.target).count() >= MAX_SERVERS
        {
            self.truncated.insert(key.target.clone());
            return None;
        }
        match &mut update {
            TopologyUpdate::Listed { server, rows, .. } => self.limit_rows(fleet, server, rows),
            TopologyUpdate::Processes { server, panes, .. } => self.limit_agents(fleet, agents, server, panes),
            _ => {}
        }
        Some(update)
    }

    fn limit_rows(&mut self, fleet: &Fleet, server: &ServerKey, rows: &mut Vec<PaneRow>) {
        let others = fleet.servers_on(&server.target).filter(|(key, _)| *key != server);
        let free = MAX_PANES.saturating_sub(others.map(|(_, other)| other.panes.len()).sum());
        let (reported, mut panes) = (rows.len(), BTreeSet::<PaneId>::new());
        rows.retain(|row| panes.contains(&row.pane) || (panes.len() < free && panes.insert(row.pane)));
        if rows.len() < reported {
            self.truncated.insert(server.target.clone());
        }
    }

    fn limit_agents(&mut self, fleet: &Fleet, agents: usize, server: &ServerKey, panes: &mut Vec<PaneProcess>) {
        panes.truncate(MAX_PANES);
        let Some(known) = fleet.server(server) else { return };
        let is_new = |process: &&mut PaneProcess| {
            let pane = known.panes.get(&process.pane);
            process.agent.is_some() && pane.is_some_and(|pane| pane.runtime.is_none())
        };
        for process in panes.iter_mut().filter(is_new).skip(MAX_AGENTS.saturating_sub(agents)) {
            process.agent = None;
            self.truncated.insert(server.target.clone());
        }
    }

    /// The update that sets the outage of a target that exceeds the limits, or that clears the outage of a target that
    /// is no longer rate-limited. `None` if nothing changes, or if the target has another outage than `RateLimited`.
    pub(crate) fn outage(&self, fleet: &Fleet, target: &TargetName) -> Option<TopologyUpdate> {
        let current = fleet.target_outages().find(|(with_outage, _)| *with_outage == target);
        let current = current.map(|(_, outage)| outage.code);
        let outage = match current {
            None | Some(OutageCode::RateLimited) => self.exceeded_limit(target),
            Some(_) => return None,
        };
        let is_same = current == outage.as_ref().map(|(code, _)| *code);
        (!is_same).then(|| TopologyUpdate::TargetOutage { target: target.clone(), outage })
    }

    fn exceeded_limit(&self, target: &TargetName) -> Option<(OutageCode, String)> {
        if self.truncated.contains(target) {
            let message = format!(
                "the host reports more than {MAX_SERVERS} tmux servers, {MAX_PANES} panes or {MAX_AGENTS} agents; the \
                 rest is left out"
            );
            return Some((OutageCode::ListingCut, message));
        }
        let message =
            || format!("the host sends over {UNITS_PER_SECOND} changes per second, so agtmux reads them more slowly");
        self.rate_limited.contains(target).then(|| (OutageCode::RateLimited, message()))
    }
}

/// The server that exists according to this update.
pub(crate) fn reported_server(update: &TopologyUpdate) -> Option<&ServerKey> {
    match update {
        TopologyUpdate::Listed { server, .. }
        | TopologyUpdate::Reread { server, .. }
        | TopologyUpdate::Processes { server, .. }
        | TopologyUpdate::ServerOutage { server, .. } => Some(server),
        _ => None,
    }
}
