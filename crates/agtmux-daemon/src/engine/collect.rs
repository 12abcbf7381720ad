//! Sends this host's evidence to hubs. A hub requests the next batch when it has handled the last one. A batch holds
//! the current values of everything that changed since, so a slow hub costs only a set of changed keys.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::collect::{AgentEvidence, EvidenceBatch, HostEvidence};
use agtmux_core::fleet::{PaneKey, Placement, Server};
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_core::runtime::RuntimeId;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::{Engine, EngineHandle, EngineInput, EngineStep};

/// One hub, as the engine sees it.
#[derive(Debug, Default)]
pub(super) struct EvidenceSubscriber {
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
    /// The server did not respond. Only a full listing tells the hub that it responds again.
    has_outage: bool,
}

/// What has changed since the last batch.
#[derive(Debug, Default)]
struct PendingEvidence {
    servers: BTreeSet<ServerKey>,
    panes: BTreeSet<PaneKey>,
    runtimes: BTreeSet<RuntimeId>,
    target_outage: bool,
}

impl PendingEvidence {
    fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.panes.is_empty() && self.runtimes.is_empty() && !self.target_outage
    }
}

/// The hub's side of the subscription.
#[derive(Debug)]
pub(crate) struct EvidenceSubscription {
    id: u64,
    engine: EngineHandle,
    /// The requested batch that has not arrived yet.
    pending_batch: Option<oneshot::Receiver<EvidenceBatch>>,
}

impl EvidenceSubscription {
    /// Waits for the next batch: everything at first, then changes. Cancel safe: a dropped call loses no batch.
    pub(crate) async fn next(&mut self) -> Option<EvidenceBatch> {
        if self.pending_batch.is_none() {
            let permit = self.engine.inputs.reserve().await.ok()?;
            let (reply, answer) = oneshot::channel();
            permit.send(EngineInput::NextBatch(self.id, reply));
            self.pending_batch = Some(answer);
        }
        let batch = self.pending_batch.as_mut()?.await;
        self.pending_batch = None;
        batch.ok()
    }
}

impl Drop for EvidenceSubscription {
    fn drop(&mut self) {
        let Err(TrySendError::Full(unsubscribe)) = self.engine.inputs.try_send(EngineInput::Unsubscribe(self.id))
        else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let inputs = self.engine.inputs.clone();
            runtime.spawn(async move { inputs.send(unsubscribe).await });
        }
    }
}

impl EngineHandle {
    pub(crate) async fn subscribe_evidence(&self) -> Option<EvidenceSubscription> {
        let id = self.request(EngineInput::Subscribe).await?;
        Some(EvidenceSubscription { id, engine: self.clone(), pending_batch: None })
    }
}

impl Engine {
    pub(super) fn add_subscriber(&mut self) -> u64 {
        self.last_subscriber_id += 1;
        self.subscribers.insert(self.last_subscriber_id, EvidenceSubscriber::default());
        self.last_subscriber_id
    }

    pub(super) fn request_batch(&mut self, id: u64, reply: oneshot::Sender<EvidenceBatch>) {
        let Some(mut subscriber) = self.subscribers.remove(&id) else { return };
        subscriber.reply = Some(reply);
        self.send_batch(&mut subscriber);
        self.subscribers.insert(id, subscriber);
    }

    pub(super) fn notify_subscribers(&mut self, step: &EngineStep) {
        if self.subscribers.is_empty() {
            return;
        }
        for (id, mut subscriber) in std::mem::take(&mut self.subscribers) {
            let (delta, pending) = (&step.delta, &mut subscriber.pending);
            let is_local = |server: &&ServerKey| server.target.is_local();
            pending.servers.extend(delta.servers.iter().filter(is_local).cloned());
            let panes = delta.changed.iter().chain(&delta.removed).filter(|pane| pane.server.target.is_local());
            pending.panes.extend(panes.cloned());
            let is_local_runtime =
                |runtime: &&RuntimeId| self.runtime_panes.get(runtime).is_some_and(|p| p.server.target.is_local());
            pending.runtimes.extend(step.changed_evidence.iter().filter(is_local_runtime).cloned());
            pending.target_outage |= delta.targets_changed;
            self.send_batch(&mut subscriber);
            self.subscribers.insert(id, subscriber);
        }
    }

    /// Sends a batch if the hub waits for one and there is something to send.
    fn send_batch(&self, subscriber: &mut EvidenceSubscriber) {
        if (subscriber.has_full_snapshot && subscriber.pending.is_empty()) || subscriber.reply.is_none() {
            return;
        }
        let full = !std::mem::replace(&mut subscriber.has_full_snapshot, true);
        if full {
            subscriber.pending = self.full_snapshot();
        }
        let pending = std::mem::take(&mut subscriber.pending);
        let mut evidence = Vec::new();
        let servers: BTreeSet<&ServerKey> =
            pending.servers.iter().chain(pending.panes.iter().map(|p| &p.server)).collect();
        for key in servers {
            self.push_server(key, &pending, &mut subscriber.reported, &mut evidence);
        }
        evidence.extend(pending.runtimes.iter().filter_map(|runtime| self.known_agent(runtime)));
        // Outages go last: evidence about a server's panes implies that the server responds.
        let outages = pending.servers.iter().filter_map(|key| outage(key, self.fleet.server(key)?));
        evidence.extend(outages);
        if pending.target_outage {
            let outage = self.fleet.target_outages().find(|(target, _)| target.is_local());
            evidence.push(HostEvidence::TargetOutage { outage: outage.map(|(_, o)| (o.code, o.message.clone())) });
        }
        if let Some(reply) = subscriber.reply.take() {
            let _ = reply.send(EvidenceBatch { full, evidence });
        }
    }

    fn full_snapshot(&self) -> PendingEvidence {
        let is_local = |(key, _): &(&ServerKey, &Server)| key.target.is_local();
        let servers = self.fleet.servers().filter(is_local).map(|(key, _)| key.clone()).collect();
        let local_runtimes = self.runtime_panes.iter().filter(|(_, pane)| pane.server.target.is_local());
        PendingEvidence {
            servers,
            panes: BTreeSet::new(),
            runtimes: local_runtimes.map(|(id, _)| id.clone()).collect(),
            target_outage: true,
        }
    }

    /// Adds all panes if some appeared, vanished or moved, else only the changed panes.
    fn push_server(
        &self,
        key: &ServerKey,
        pending: &PendingEvidence,
        reported: &mut BTreeMap<ServerKey, ReportedServer>,
        evidence: &mut Vec<HostEvidence>,
    ) {
        let name = key.server.clone();
        let Some(server) = self.fleet.server(key) else {
            reported.remove(key);
            evidence.push(HostEvidence::ServerGone { server: name });
            return;
        };
        let generation = server.generation;
        let panes = server.panes.iter().map(|(id, pane)| (*id, pane.placements.clone())).collect();
        let current = ReportedServer { generation, panes, has_outage: server.outage.is_some() };
        let before = reported.get(key);
        // An outage that begins is sent as a separate item, and the panes stay as they are.
        let same = before.is_some_and(|before| {
            (before.generation, &before.panes) == (generation, &current.panes)
                && (!before.has_outage || current.has_outage)
        });
        let has_changed = |id: &PaneId| pending.panes.contains(&PaneKey { server: key.clone(), pane: *id });
        let known = before.filter(|before| before.generation == generation).map(|before| before.panes.keys().copied());
        let known: BTreeSet<PaneId> = known.into_iter().flatten().collect();
        let changed = server.panes.iter().filter(|(id, _)| has_changed(id) || !known.contains(id));
        let panes: Vec<_> = changed.clone().map(|(id, pane)| pane.pane_process(*id)).collect();
        if same {
            let rows: Vec<_> = changed.flat_map(|(id, pane)| pane.rows(*id).take(1)).collect();
            if !rows.is_empty() {
                evidence.push(HostEvidence::Reread { server: name.clone(), generation, rows });
            }
        } else {
            let rows = server.panes.iter().flat_map(|(id, pane)| pane.rows(*id)).collect();
            evidence.push(HostEvidence::Listed { server: name.clone(), generation, rows });
        }
        reported.insert(key.clone(), current);
        if !panes.is_empty() {
            evidence.push(HostEvidence::Processes { server: name, generation, panes });
        }
    }

    fn known_agent(&self, id: &RuntimeId) -> Option<HostEvidence> {
        let pane_key = self.runtime_panes.get(id)?;
        let server = self.fleet.server(&pane_key.server)?;
        let runtime = server.panes.get(&pane_key.pane)?.runtime.as_ref()?;
        Some(HostEvidence::Agent(Box::new(AgentEvidence {
            server: pane_key.server.server.clone(),
            generation: server.generation,
            pane: pane_key.pane,
            process: runtime.process,
            runtime_id: id.to_string(),
            name: runtime.name.clone(),
            agent_id: self.states.agent_id(id).map(ToOwned::to_owned),
            ledger: self.states.ledger(id)?.clone(),
        })))
    }
}

fn outage(key: &ServerKey, server: &Server) -> Option<HostEvidence> {
    let outage = server.outage.as_ref()?;
    let (code, message) = (outage.code, outage.message.clone());
    Some(HostEvidence::ServerOutage { server: key.server.clone(), generation: server.generation, code, message })
}
