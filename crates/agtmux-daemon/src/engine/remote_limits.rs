//! Limits how much evidence one remote host may add. Evidence over the limits is dropped, and the target reports an
//! outage.

use std::collections::BTreeSet;

use agtmux_api::collect::HostEvidence;
use agtmux_core::fleet::{OutageCode, PaneKey, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{PaneId, ServerKey, ServerName, TargetName};

use super::remote::server_of;
use super::{Engine, EngineStep};

const MAX_SERVERS: usize = 64;
const MAX_PANES: usize = 5_000;
/// A pane has one row per session that shows it.
const MAX_ROWS: usize = 2 * MAX_PANES;
const MAX_AGENTS: usize = 512;

impl Engine {
    /// Returns the part of the evidence that fits within the limits.
    pub(super) fn limit_evidence(&mut self, target: &TargetName, evidence: HostEvidence) -> Option<HostEvidence> {
        let key = |server: &ServerName| ServerKey { target: target.clone(), server: server.clone() };
        let server = server_of(&evidence).map(&key);
        if server.is_some_and(|key| self.fleet.server(&key).is_none() && self.count_servers(target) >= MAX_SERVERS) {
            self.truncated_targets.insert(target.clone());
            return None;
        }
        Some(match evidence {
            HostEvidence::Listed { server, generation, mut rows } => {
                self.limit_rows(&key(&server), &mut rows);
                HostEvidence::Listed { server, generation, rows }
            }
            HostEvidence::Reread { server, generation, mut rows } => {
                rows.truncate(MAX_ROWS);
                HostEvidence::Reread { server, generation, rows }
            }
            HostEvidence::Processes { server, generation, mut panes } => {
                self.limit_agents(&key(&server), &mut panes);
                HostEvidence::Processes { server, generation, panes }
            }
            evidence => evidence,
        })
    }

    fn count_servers(&self, target: &TargetName) -> usize {
        self.fleet.servers().filter(|(key, _)| key.target == *target).count()
    }

    fn limit_rows(&mut self, server: &ServerKey, rows: &mut Vec<PaneRow>) {
        let others = self.fleet.servers().filter(|(key, _)| key.target == server.target && *key != server);
        let free = MAX_PANES.saturating_sub(others.map(|(_, other)| other.panes.len()).sum());
        let (reported, mut panes) = (rows.len(), BTreeSet::<PaneId>::new());
        rows.truncate(MAX_ROWS);
        rows.retain(|row| panes.contains(&row.pane) || (panes.len() < free && panes.insert(row.pane)));
        if rows.len() < reported {
            self.truncated_targets.insert(server.target.clone());
        }
    }

    fn limit_agents(&mut self, server: &ServerKey, panes: &mut Vec<PaneProcess>) {
        let mut agents = self.runtime_panes.values().filter(|pane| pane.server.target == server.target).count();
        panes.truncate(MAX_PANES);
        for process in panes.iter_mut().filter(|process| process.agent.is_some()) {
            let pane = PaneKey { server: server.clone(), pane: process.pane };
            if self.fleet.pane(&pane).is_some_and(|pane| pane.runtime.is_some()) {
                continue;
            }
            if agents < MAX_AGENTS {
                agents += 1;
            } else {
                process.agent = None;
                self.truncated_targets.insert(server.target.clone());
            }
        }
    }

    /// Runs after the host's own evidence: an outage that the host reports takes precedence.
    pub(super) fn report_truncation(&mut self, target: &TargetName, step: &mut EngineStep) {
        if !self.truncated_targets.contains(target)
            || self.fleet.target_outages().any(|(with_outage, _)| with_outage == target)
        {
            return;
        }
        let message = format!(
            "the host reports more than {MAX_SERVERS} tmux servers, {MAX_PANES} panes or {MAX_AGENTS} agents; the \
             rest is left out"
        );
        let outage = Some((OutageCode::ListingCut, message));
        self.apply_topology(TopologyUpdate::TargetOutage { target: target.clone(), outage }, step);
    }
}
