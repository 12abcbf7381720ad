//! How much of one host is kept. A host that tells of more than anybody has is cut, and that is told.

use std::collections::BTreeSet;

use agtmux_api::collect::Evidence;
use agtmux_core::fleet::{Observation, OutageCode, PaneKey, PaneRow, ProcessSighting};
use agtmux_core::ids::{PaneId, ServerKey, ServerName, TargetName};

use super::far::server_of;
use super::{Engine, Step};

const MOST_SERVERS: usize = 64;
const MOST_PANES: usize = 5_000;
/// A pane has one for each session that shows it.
const MOST_ROWS: usize = 2 * MOST_PANES;
const MOST_AGENTS: usize = 512;

impl Engine {
    /// What of it there is room for.
    pub(super) fn fitting(&mut self, target: &TargetName, evidence: Evidence) -> Option<Evidence> {
        let key = |server: &ServerName| ServerKey { target: target.clone(), server: server.clone() };
        let server = server_of(&evidence).map(&key);
        if server.is_some_and(|key| self.fleet.server(&key).is_none() && self.servers_of(target) >= MOST_SERVERS) {
            self.overfull.insert(target.clone());
            return None;
        }
        Some(match evidence {
            Evidence::Listed { server, generation, mut rows } => {
                self.fit_rows(&key(&server), &mut rows);
                Evidence::Listed { server, generation, rows }
            }
            Evidence::Reread { server, generation, mut rows } => {
                rows.truncate(MOST_ROWS);
                Evidence::Reread { server, generation, rows }
            }
            Evidence::Processes { server, generation, mut panes } => {
                self.fit_agents(&key(&server), &mut panes);
                Evidence::Processes { server, generation, panes }
            }
            evidence => evidence,
        })
    }

    fn servers_of(&self, target: &TargetName) -> usize {
        self.fleet.servers().filter(|(key, _)| key.target == *target).count()
    }

    fn fit_rows(&mut self, server: &ServerKey, rows: &mut Vec<PaneRow>) {
        let others = self.fleet.servers().filter(|(key, _)| key.target == server.target && *key != server);
        let room = MOST_PANES.saturating_sub(others.map(|(_, other)| other.panes.len()).sum());
        let (told, mut panes) = (rows.len(), BTreeSet::<PaneId>::new());
        rows.truncate(MOST_ROWS);
        rows.retain(|row| panes.contains(&row.pane) || (panes.len() < room && panes.insert(row.pane)));
        if rows.len() < told {
            self.overfull.insert(server.target.clone());
        }
    }

    fn fit_agents(&mut self, server: &ServerKey, panes: &mut Vec<ProcessSighting>) {
        let mut agents = self.homes.values().filter(|home| home.server.target == server.target).count();
        panes.truncate(MOST_PANES);
        for sighting in panes.iter_mut().filter(|sighting| sighting.agent.is_some()) {
            let pane = PaneKey { server: server.clone(), pane: sighting.pane };
            if self.fleet.pane(&pane).is_some_and(|pane| pane.runtime.is_some()) {
                continue;
            }
            if agents < MOST_AGENTS {
                agents += 1;
            } else {
                sighting.agent = None;
                self.overfull.insert(server.target.clone());
            }
        }
    }

    /// After all that the host says of itself: its own trouble comes first.
    pub(super) fn tell_overfull(&mut self, target: &TargetName, step: &mut Step) {
        if !self.overfull.contains(target) || self.fleet.target_outages().any(|(troubled, _)| troubled == target) {
            return;
        }
        let message = format!(
            "it tells of more than {MOST_SERVERS} tmux servers, {MOST_PANES} panes or {MOST_AGENTS} agents: the rest is \
             left out"
        );
        let outage = Some((OutageCode::ListingCut, message));
        self.observe(Observation::TargetOutage { target: target.clone(), outage }, step);
    }
}
