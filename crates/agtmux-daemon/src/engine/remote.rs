//! Exchanges evidence with other hosts. Applies and logs evidence from other hosts in the same way as local evidence,
//! and sends local evidence to hubs.

use std::collections::BTreeSet;
use std::sync::Arc;

use agtmux_api::host_protocol::EvidenceBatch;
use agtmux_core::fleet::TopologyUpdate;
use agtmux_core::ids::{ServerKey, TargetName};
use agtmux_core::ledger::Ledger;
use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use tokio::sync::oneshot;

use super::{Engine, EngineHandle, EngineInput, EngineStep, has_started_runtime};
use crate::remote::{LocalEvidence, RemoteAgentUpdate, RemoteBatch, RemoteUpdate, reported_server};

/// An agent on another host: its runtime id on that host, and the ledger that the host sent.
#[derive(Debug)]
pub(super) struct RemoteAgent {
    pub(super) runtime_id: Option<String>,
    ledger: Ledger,
}

/// A hub's subscription to the evidence of this host.
#[derive(Debug)]
pub(crate) struct EvidenceSubscription {
    id: u64,
    engine: EngineHandle,
    /// The batch that was requested and has not arrived yet.
    pending_batch: Option<oneshot::Receiver<EvidenceBatch>>,
    /// The engine ends the subscription when this is dropped.
    _alive: Arc<()>,
}

impl EvidenceSubscription {
    /// Waits for the next batch. The first batch contains all evidence, later ones only the changes. Cancel-safe: no
    /// batch is lost if the future is dropped.
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

impl EngineHandle {
    pub(crate) async fn subscribe_evidence(&self) -> Option<EvidenceSubscription> {
        let alive = Arc::new(());
        let id = self.request(|reply| EngineInput::Subscribe(Arc::downgrade(&alive), reply)).await?;
        Some(EvidenceSubscription { id, engine: self.clone(), pending_batch: None, _alive: alive })
    }

    /// Applies a batch of evidence from another host. Returns when the batch is applied and stored.
    pub(crate) async fn receive_remote(&self, batch: RemoteBatch) {
        self.request(|done| EngineInput::RemoteBatch(Box::new(batch), done)).await;
    }

    /// The local runtime id of an agent on another host. `runtime_id` is the id that the other host uses.
    pub(crate) async fn local_id(&self, target: TargetName, runtime_id: String) -> Option<RuntimeId> {
        self.query(move |engine, _| engine.local_id(&target, &runtime_id)).await.flatten()
    }
}

impl Engine {
    pub(super) fn request_batch(&mut self, id: u64, reply: oneshot::Sender<EvidenceBatch>) {
        let Self { subscribers, fleet, states, submissions, runtime_panes, .. } = self;
        subscribers.request_batch(id, reply, &LocalEvidence { fleet, states, submissions, runtime_panes });
    }

    pub(super) fn notify_subscribers(&mut self, step: &EngineStep) {
        let Self { subscribers, fleet, states, submissions, runtime_panes, .. } = self;
        let local = LocalEvidence { fleet, states, submissions, runtime_panes };
        subscribers.notify(&step.delta, &step.changed_evidence, &local);
    }

    pub(super) fn apply_remote_batch(&mut self, batch: RemoteBatch, step: &mut EngineStep) {
        let RemoteBatch { target, full, truncated, rate_limited, updates } = batch;
        let mut reported: BTreeSet<ServerKey> = BTreeSet::new();
        // A host may send very many updates in one batch, so work whose cost grows with the number of agents or events
        // is done once per batch.
        let agents_elsewhere = self.runtime_panes.values().filter(|pane| pane.server.target != target).count();
        let mut has_started = false;
        if full {
            self.host_limits.reset(&target);
        }
        if truncated {
            self.host_limits.mark_truncated(&target);
        }
        self.host_limits.set_rate_limited(&target, rate_limited);
        for update in updates {
            match update {
                RemoteUpdate::Agent(agent) => self.apply_remote_agent(*agent, step),
                RemoteUpdate::Topology(update) => {
                    reported.extend(reported_server(&update).cloned());
                    let agents = self.runtime_panes.len() - agents_elsewhere;
                    if let Some(update) = self.host_limits.limit(&self.fleet, agents, update) {
                        let delta = self.apply_to_fleet(update, step);
                        has_started |= has_started_runtime(&delta);
                        step.merge(delta);
                    }
                }
            }
        }
        if has_started {
            self.bind_unbound(step);
        }
        if full {
            let known = self.fleet.servers_on(&target).map(|(key, _)| key);
            let gone: Vec<ServerKey> = known.filter(|key| !reported.contains(key)).cloned().collect();
            for server in gone {
                self.apply_topology(TopologyUpdate::ServerGone { server }, step);
            }
        }
        if let Some(outage) = self.host_limits.outage(&self.fleet, &target) {
            self.apply_topology(outage, step);
        }
    }

    fn apply_remote_agent(&mut self, agent: RemoteAgentUpdate, step: &mut EngineStep) {
        let RemoteAgentUpdate { pane, generation, process, runtime_id, name, agent_id, ledger, seen, submission } =
            agent;
        let same = self.fleet.server(&pane.server).is_some_and(|server| server.generation == generation);
        let Some(runtime) = self.runtime_of(&pane, process).filter(|_| same) else { return };
        if let Some(name) = name
            && self.fleet.name_runtime(&pane, &runtime, &name)
        {
            step.mark_pane_changed(&self.fleet, &pane);
        }
        if let Some(agent_id) = agent_id
            && self.states.agent_id(&runtime) != Some(&agent_id)
        {
            self.resolve(ResolverInput::AgentIdentified { runtime: runtime.clone(), agent_id }, None, step);
            step.mark_pane_changed(&self.fleet, &pane);
        }
        self.remote_agents.insert(runtime.clone(), RemoteAgent { runtime_id, ledger });
        self.apply_remote_ledger(&runtime, step);
        if submission.is_some_and(|report| self.submissions.apply_report(&runtime, &report)) {
            self.publish_submission(&runtime, step);
        }
        if seen && self.states.unseen_since(&runtime).is_some() {
            self.see(runtime, step);
        }
    }

    /// Applies the ledger that the agent's host sent, if the adapter is enabled. Returns false if no host sent a ledger
    /// for this runtime.
    pub(super) fn apply_remote_ledger(&mut self, runtime: &RuntimeId, step: &mut EngineStep) -> bool {
        let Some(remote) = self.remote_agents.get(runtime) else { return false };
        if self.is_adapter_enabled(runtime) && self.changes_ledger(runtime, &remote.ledger) {
            let (runtime, ledger) = (runtime.clone(), Box::new(remote.ledger.clone()));
            self.resolve(ResolverInput::LedgerReplaced { runtime, ledger }, None, step);
        }
        true
    }

    fn changes_ledger(&self, runtime: &RuntimeId, ledger: &Ledger) -> bool {
        let Some(current) = self.states.ledger(runtime) else { return false };
        let mut after = current.clone();
        after.replace_with(ledger.clone());
        after != *current
    }

    pub(super) fn local_id(&self, target: &TargetName, runtime_id: &str) -> Option<RuntimeId> {
        let is_on_target =
            |id: &RuntimeId| self.runtime_panes.get(id).is_some_and(|pane| pane.server.target == *target);
        let mut matching = self
            .remote_agents
            .iter()
            .filter(|(id, remote)| remote.runtime_id.as_deref() == Some(runtime_id) && is_on_target(id));
        matching.next().map(|(id, _)| id.clone())
    }
}
