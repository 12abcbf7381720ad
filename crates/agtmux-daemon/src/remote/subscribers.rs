//! The hubs that read this host's evidence. A hub requests the next batch when it has handled the previous one. Each
//! batch contains the current values of everything that changed since the previous batch. Even for a slow hub, the
//! engine therefore remembers only which servers, panes and agents changed, not every change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

use agtmux_api::host_protocol::{AgentEvidence, EvidenceBatch, HostEvidence, HostPane};
use agtmux_core::fleet::{Fleet, FleetDelta, PaneKey, Placement};
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_core::resolver::StateResolver;
use agtmux_core::runtime::RuntimeId;
use tokio::sync::oneshot;

use super::encode;
use crate::submissions::Submissions;

/// The data from which batches are made.
pub(crate) struct LocalEvidence<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) states: &'a StateResolver,
    pub(crate) submissions: &'a Submissions,
    pub(crate) runtime_panes: &'a BTreeMap<RuntimeId, PaneKey>,
}

#[derive(Debug, Default)]
pub(crate) struct EvidenceSubscribers {
    hubs: BTreeMap<u64, EvidenceSubscriber>,
    last_id: u64,
}

/// One hub that reads this host's evidence.
#[derive(Debug, Default)]
struct EvidenceSubscriber {
    alive: Weak<()>,
    /// The first, full batch has been sent.
    has_full_snapshot: bool,
    pending: PendingEvidence,
    /// Which panes the hub knows, and in which sessions they are.
    reported: BTreeMap<ServerKey, ReportedServer>,
    reply: Option<oneshot::Sender<EvidenceBatch>>,
}

/// A server as last reported to a hub.
#[derive(Debug, PartialEq, Eq)]
struct ReportedServer {
    generation: Generation,
    panes: BTreeMap<PaneId, BTreeSet<Placement>>,
    /// The server did not respond when it was last reported. Only a full listing tells the hub that the server responds
    /// again.
    has_outage: bool,
}

/// What has changed since the last batch.
#[derive(Debug, Default)]
struct PendingEvidence {
    servers: BTreeSet<ServerKey>,
    panes: BTreeSet<PaneKey>,
    runtimes: BTreeSet<RuntimeId>,
    host_outage: bool,
}

impl PendingEvidence {
    fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.panes.is_empty() && self.runtimes.is_empty() && !self.host_outage
    }
}

impl EvidenceSubscribers {
    /// Adds a hub, which is forgotten when `alive` is no longer valid.
    pub(crate) fn add(&mut self, alive: Weak<()>) -> u64 {
        self.last_id += 1;
        self.hubs.insert(self.last_id, EvidenceSubscriber { alive, ..EvidenceSubscriber::default() });
        self.last_id
    }

    /// Replies as soon as there is something to send.
    pub(crate) fn request_batch(&mut self, id: u64, reply: oneshot::Sender<EvidenceBatch>, local: &LocalEvidence<'_>) {
        if let Some(hub) = self.hubs.get_mut(&id) {
            hub.reply = Some(reply);
            hub.send_batch(local);
        }
    }

    pub(crate) fn notify(
        &mut self,
        delta: &FleetDelta,
        changed_evidence: &BTreeSet<RuntimeId>,
        local: &LocalEvidence<'_>,
    ) {
        self.hubs.retain(|_, hub| hub.alive.strong_count() > 0);
        for hub in self.hubs.values_mut() {
            let pending = &mut hub.pending;
            pending.servers.extend(delta.servers.iter().filter(|server| server.target.is_local()).cloned());
            let panes = delta.changed.iter().chain(&delta.removed).filter(|pane| pane.server.target.is_local());
            pending.panes.extend(panes.cloned());
            pending.runtimes.extend(changed_evidence.iter().filter(|id| local.is_local_runtime(id)).cloned());
            pending.host_outage |= delta.targets_changed;
            hub.send_batch(local);
        }
    }
}

impl EvidenceSubscriber {
    /// Sends a batch if the hub waits for one and there is something to send.
    fn send_batch(&mut self, local: &LocalEvidence<'_>) {
        if self.has_full_snapshot && self.pending.is_empty() {
            return;
        }
        let Some(reply) = self.reply.take() else { return };
        let full = !std::mem::replace(&mut self.has_full_snapshot, true);
        let changed = std::mem::take(&mut self.pending);
        let pending = if full { local.everything() } else { changed };
        let servers: BTreeSet<&ServerKey> =
            pending.servers.iter().chain(pending.panes.iter().map(|pane| &pane.server)).collect();
        let panes = servers.into_iter().filter_map(|key| self.changed_panes(key, &pending, local.fleet));
        let mut evidence: Vec<HostEvidence> = panes.collect();
        evidence.extend(pending.runtimes.iter().filter_map(|runtime| local.agent(runtime)));
        // Outages go last: evidence about a server's panes implies that the server responds.
        evidence.extend(pending.servers.iter().filter_map(|key| local.server_outage(key)));
        if pending.host_outage {
            let outage = local.fleet.target_outages().find(|(target, _)| target.is_local());
            evidence.push(HostEvidence::HostOutage { outage: outage.map(|(_, outage)| encode::outage(outage)) });
        }
        let _ = reply.send(EvidenceBatch { full, evidence });
    }

    /// What to send about the panes of a server: all panes if some appeared, vanished or moved, otherwise only the
    /// changed panes. If the server is gone, returns [`HostEvidence::ServerGone`].
    fn changed_panes(&mut self, key: &ServerKey, pending: &PendingEvidence, fleet: &Fleet) -> Option<HostEvidence> {
        let Some(server) = fleet.server(key) else {
            self.reported.remove(key);
            return Some(HostEvidence::ServerGone { server: key.server.to_string() });
        };
        let generation = server.generation;
        let panes = server.panes.iter().map(|(id, pane)| (*id, pane.placements.clone())).collect();
        let current = ReportedServer { generation, panes, has_outage: server.outage.is_some() };
        let before = self.reported.get(key).filter(|before| before.generation == generation);
        // The start of an outage is sent as a separate item, and the panes need not be sent again.
        let same =
            before.is_some_and(|before| before.panes == current.panes && (!before.has_outage || current.has_outage));
        let has_changed = |id: &PaneId| pending.panes.contains(&PaneKey { server: key.clone(), pane: *id });
        let panes = server.panes.iter().filter(|(id, _)| !same || has_changed(id));
        let panes: Vec<HostPane> = panes.map(|(id, pane)| encode::pane(*id, pane)).collect();
        self.reported.insert(key.clone(), current);
        let server = encode::server(&key.server, generation);
        (!same || !panes.is_empty()).then_some(HostEvidence::Panes { server, complete: !same, panes })
    }
}

impl LocalEvidence<'_> {
    fn is_local_runtime(&self, runtime: &RuntimeId) -> bool {
        self.runtime_panes.get(runtime).is_some_and(|pane| pane.server.target.is_local())
    }

    fn everything(&self) -> PendingEvidence {
        let servers = self.fleet.servers().map(|(key, _)| key).filter(|key| key.target.is_local()).cloned().collect();
        let runtimes = self.runtime_panes.keys().filter(|runtime| self.is_local_runtime(runtime)).cloned().collect();
        PendingEvidence { servers, panes: BTreeSet::new(), runtimes, host_outage: true }
    }

    fn agent(&self, id: &RuntimeId) -> Option<HostEvidence> {
        let key = self.runtime_panes.get(id)?;
        let server = self.fleet.server(&key.server)?;
        let runtime = server.panes.get(&key.pane)?.runtime.as_ref()?;
        let name = encode::server(&key.server.server, server.generation);
        let (agent_id, ledger) = (self.states.agent_id(id), self.states.ledger(id)?);
        let seen = self.states.unseen_since(id).is_none();
        let submission = self.submissions.get(id).map(encode::submission);
        let agent = encode::agent(name, key.pane, runtime, agent_id, ledger, seen);
        Some(HostEvidence::Agent(Box::new(AgentEvidence { submission, ..agent })))
    }

    fn server_outage(&self, key: &ServerKey) -> Option<HostEvidence> {
        let server = self.fleet.server(key)?;
        let outage = encode::outage(server.outage.as_ref()?);
        Some(HostEvidence::ServerOutage { server: encode::server(&key.server, server.generation), outage })
    }
}
