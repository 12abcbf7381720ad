//! What hubs elsewhere are told of this host. Each asks for more when it has dealt with the last of it: what has changed
//! meanwhile is told once, as it is then, so a slow hub costs nothing but a note of what is new to it.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::collect::{AgentEvidence, EvidenceBatch, HostEvidence};
use agtmux_core::fleet::{PaneKey, Placement, Server};
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_core::runtime::RuntimeId;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::{Engine, EngineHandle, EngineInput, EngineStep};

/// One hub, as the engine knows it.
#[derive(Debug, Default)]
pub(super) struct EvidenceSubscriber {
    /// It was told everything once.
    has_full_snapshot: bool,
    pending: PendingEvidence,
    /// What it was told of where panes are.
    reported: BTreeMap<ServerKey, ReportedServer>,
    reply: Option<oneshot::Sender<EvidenceBatch>>,
}

/// A server as a hub was told of it.
#[derive(Debug, PartialEq, Eq)]
struct ReportedServer {
    generation: Generation,
    panes: BTreeMap<PaneId, BTreeSet<Placement>>,
    /// It did not answer. Only a whole listing says that it does again.
    has_outage: bool,
}

/// What a hub does not know yet.
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

/// The hub's end of it.
#[derive(Debug)]
pub(crate) struct EvidenceSubscription {
    id: u64,
    engine: EngineHandle,
    /// What was asked for and has not come yet.
    pending_batch: Option<oneshot::Receiver<EvidenceBatch>>,
}

impl EvidenceSubscription {
    /// What is new: everything at first, then what has changed. Waits until there is something. May be dropped and called
    /// again: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<EvidenceBatch> {
        if self.pending_batch.is_none() {
            let place = self.engine.inputs.reserve().await.ok()?;
            let (reply, answer) = oneshot::channel();
            place.send(EngineInput::NextBatch(self.id, reply));
            self.pending_batch = Some(answer);
        }
        let batch = self.pending_batch.as_mut()?.await;
        self.pending_batch = None;
        batch.ok()
    }
}

impl Drop for EvidenceSubscription {
    fn drop(&mut self) {
        let Err(TrySendError::Full(leave)) = self.engine.inputs.try_send(EngineInput::Unsubscribe(self.id)) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let inputs = self.engine.inputs.clone();
            runtime.spawn(async move { inputs.send(leave).await });
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
        let Some(mut collector) = self.subscribers.remove(&id) else { return };
        collector.reply = Some(reply);
        self.send_batch(&mut collector);
        self.subscribers.insert(id, collector);
    }

    pub(super) fn notify_subscribers(&mut self, step: &EngineStep) {
        if self.subscribers.is_empty() {
            return;
        }
        for (id, mut collector) in std::mem::take(&mut self.subscribers) {
            let (delta, news) = (&step.delta, &mut collector.pending);
            let here = |server: &&ServerKey| server.target.is_local();
            news.servers.extend(delta.servers.iter().filter(here).cloned());
            let panes = delta.changed.iter().chain(&delta.removed).filter(|pane| pane.server.target.is_local());
            news.panes.extend(panes.cloned());
            let lives_here =
                |runtime: &&RuntimeId| self.runtime_panes.get(runtime).is_some_and(|p| p.server.target.is_local());
            news.runtimes.extend(step.changed_evidence.iter().filter(lives_here).cloned());
            news.target_outage |= delta.targets_changed;
            self.send_batch(&mut collector);
            self.subscribers.insert(id, collector);
        }
    }

    /// Tells a hub that waits what is new to it, if anything is.
    fn send_batch(&self, collector: &mut EvidenceSubscriber) {
        if (collector.has_full_snapshot && collector.pending.is_empty()) || collector.reply.is_none() {
            return;
        }
        let full = !std::mem::replace(&mut collector.has_full_snapshot, true);
        if full {
            collector.pending = self.full_snapshot();
        }
        let news = std::mem::take(&mut collector.pending);
        let mut evidence = Vec::new();
        let servers: BTreeSet<&ServerKey> = news.servers.iter().chain(news.panes.iter().map(|p| &p.server)).collect();
        for key in servers {
            self.push_server(key, &news, &mut collector.reported, &mut evidence);
        }
        evidence.extend(news.runtimes.iter().filter_map(|runtime| self.known_agent(runtime)));
        // Last: what is told of panes of a server says that it answers.
        let outages = news.servers.iter().filter_map(|key| outage(key, self.fleet.server(key)?));
        evidence.extend(outages);
        if news.target_outage {
            let outage = self.fleet.target_outages().find(|(target, _)| target.is_local());
            evidence.push(HostEvidence::TargetOutage { outage: outage.map(|(_, o)| (o.code, o.message.clone())) });
        }
        if let Some(reply) = collector.reply.take() {
            let _ = reply.send(EvidenceBatch { full, evidence });
        }
    }

    fn full_snapshot(&self) -> PendingEvidence {
        let here = |(key, _): &(&ServerKey, &Server)| key.target.is_local();
        let servers = self.fleet.servers().filter(here).map(|(key, _)| key.clone()).collect();
        let at_home = self.runtime_panes.iter().filter(|(_, pane)| pane.server.target.is_local());
        PendingEvidence {
            servers,
            panes: BTreeSet::new(),
            runtimes: at_home.map(|(id, _)| id.clone()).collect(),
            target_outage: true,
        }
    }

    /// All its panes where some came, went or moved; else those that are different.
    fn push_server(
        &self,
        key: &ServerKey,
        news: &PendingEvidence,
        told: &mut BTreeMap<ServerKey, ReportedServer>,
        evidence: &mut Vec<HostEvidence>,
    ) {
        let name = key.server.clone();
        let Some(server) = self.fleet.server(key) else {
            told.remove(key);
            evidence.push(HostEvidence::ServerGone { server: name });
            return;
        };
        let generation = server.generation;
        let panes = server.panes.iter().map(|(id, pane)| (*id, pane.placements.clone())).collect();
        let places = ReportedServer { generation, panes, has_outage: server.outage.is_some() };
        let before = told.get(key);
        // One that falls silent is told of apart from its panes, which stay as they are.
        let same = before.is_some_and(|before| {
            (before.generation, &before.panes) == (generation, &places.panes)
                && (!before.has_outage || places.has_outage)
        });
        let is_news = |id: &PaneId| news.panes.contains(&PaneKey { server: key.clone(), pane: *id });
        let known = before.filter(|before| before.generation == generation).map(|before| before.panes.keys().copied());
        let known: BTreeSet<PaneId> = known.into_iter().flatten().collect();
        let different = server.panes.iter().filter(|(id, _)| is_news(id) || !known.contains(id));
        let panes: Vec<_> = different.clone().map(|(id, pane)| pane.pane_process(*id)).collect();
        if same {
            let rows: Vec<_> = different.flat_map(|(id, pane)| pane.rows(*id).take(1)).collect();
            if !rows.is_empty() {
                evidence.push(HostEvidence::Reread { server: name.clone(), generation, rows });
            }
        } else {
            let rows = server.panes.iter().flat_map(|(id, pane)| pane.rows(*id)).collect();
            evidence.push(HostEvidence::Listed { server: name.clone(), generation, rows });
        }
        told.insert(key.clone(), places);
        if !panes.is_empty() {
            evidence.push(HostEvidence::Processes { server: name, generation, panes });
        }
    }

    fn known_agent(&self, id: &RuntimeId) -> Option<HostEvidence> {
        let home = self.runtime_panes.get(id)?;
        let server = self.fleet.server(&home.server)?;
        let runtime = server.panes.get(&home.pane)?.runtime.as_ref()?;
        Some(HostEvidence::Agent(Box::new(AgentEvidence {
            server: home.server.server.clone(),
            generation: server.generation,
            pane: home.pane,
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
