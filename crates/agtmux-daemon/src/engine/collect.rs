//! What hubs elsewhere are told of this host. Each asks for more when it has dealt with the last of it: what has changed
//! meanwhile is told once, as it is then, so a slow hub costs nothing but a note of what is new to it.

use std::collections::{BTreeMap, BTreeSet};

use agtmux_api::collect::{Batch, Evidence, Known};
use agtmux_core::fleet::{PaneKey, Placement, Server};
use agtmux_core::ids::{Generation, PaneId, ServerKey};
use agtmux_core::runtime::RuntimeId;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use super::{Engine, EngineHandle, Input, Step};

/// One hub, as the engine knows it.
#[derive(Debug, Default)]
pub(super) struct Collector {
    /// It was told everything once.
    begun: bool,
    news: News,
    /// What it was told of where panes are.
    told: BTreeMap<ServerKey, Places>,
    waiting: Option<oneshot::Sender<Batch>>,
}

/// A server as a hub was told of it.
#[derive(Debug, PartialEq, Eq)]
struct Places {
    generation: Generation,
    panes: BTreeMap<PaneId, BTreeSet<Placement>>,
    /// It did not answer. Only a whole listing says that it does again.
    out: bool,
}

/// What a hub does not know yet.
#[derive(Debug, Default)]
struct News {
    servers: BTreeSet<ServerKey>,
    panes: BTreeSet<PaneKey>,
    known: BTreeSet<RuntimeId>,
    target: bool,
}

impl News {
    fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.panes.is_empty() && self.known.is_empty() && !self.target
    }
}

/// The hub's end of it.
#[derive(Debug)]
pub(crate) struct Collecting {
    id: u64,
    engine: EngineHandle,
    /// What was asked for and has not come yet.
    asked: Option<oneshot::Receiver<Batch>>,
}

impl Collecting {
    /// What is new: everything at first, then what has changed. Waits until there is something. May be dropped and called
    /// again: nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Batch> {
        if self.asked.is_none() {
            let place = self.engine.inputs.reserve().await.ok()?;
            let (reply, answer) = oneshot::channel();
            place.send(Input::Gather(self.id, reply));
            self.asked = Some(answer);
        }
        let batch = self.asked.as_mut()?.await;
        self.asked = None;
        batch.ok()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        let Err(TrySendError::Full(leave)) = self.engine.inputs.try_send(Input::Leave(self.id)) else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let inputs = self.engine.inputs.clone();
            runtime.spawn(async move { inputs.send(leave).await });
        }
    }
}

impl EngineHandle {
    pub(crate) async fn collect(&self) -> Option<Collecting> {
        let id = self.ask(Input::Collect).await?;
        Some(Collecting { id, engine: self.clone(), asked: None })
    }
}

impl Engine {
    pub(super) fn open_collector(&mut self) -> u64 {
        self.last_collector += 1;
        self.collectors.insert(self.last_collector, Collector::default());
        self.last_collector
    }

    pub(super) fn gather(&mut self, id: u64, reply: oneshot::Sender<Batch>) {
        let Some(mut collector) = self.collectors.remove(&id) else { return };
        collector.waiting = Some(reply);
        self.tell(&mut collector);
        self.collectors.insert(id, collector);
    }

    pub(super) fn tell_collectors(&mut self, step: &Step) {
        if self.collectors.is_empty() {
            return;
        }
        for (id, mut collector) in std::mem::take(&mut self.collectors) {
            let (delta, news) = (&step.delta, &mut collector.news);
            let here = |server: &&ServerKey| server.target.is_local();
            news.servers.extend(delta.servers.iter().filter(here).cloned());
            let panes = delta.changed.iter().chain(&delta.removed).filter(|pane| pane.server.target.is_local());
            news.panes.extend(panes.cloned());
            let lives_here = |runtime: &&RuntimeId| self.homes.get(runtime).is_some_and(|p| p.server.target.is_local());
            news.known.extend(step.known.iter().filter(lives_here).cloned());
            news.target |= delta.targets_changed;
            self.tell(&mut collector);
            self.collectors.insert(id, collector);
        }
    }

    /// Tells a hub that waits what is new to it, if anything is.
    fn tell(&self, collector: &mut Collector) {
        if (collector.begun && collector.news.is_empty()) || collector.waiting.is_none() {
            return;
        }
        let full = !std::mem::replace(&mut collector.begun, true);
        if full {
            collector.news = self.everything();
        }
        let news = std::mem::take(&mut collector.news);
        let mut evidence = Vec::new();
        let servers: BTreeSet<&ServerKey> = news.servers.iter().chain(news.panes.iter().map(|p| &p.server)).collect();
        for key in servers {
            self.tell_server(key, &news, &mut collector.told, &mut evidence);
        }
        evidence.extend(news.known.iter().filter_map(|runtime| self.known(runtime)));
        // Last: what is told of panes of a server says that it answers.
        let outages = news.servers.iter().filter_map(|key| outage(key, self.fleet.server(key)?));
        evidence.extend(outages);
        if news.target {
            let outage = self.fleet.target_outages().find(|(target, _)| target.is_local());
            evidence.push(Evidence::TargetOutage { outage: outage.map(|(_, o)| (o.code, o.message.clone())) });
        }
        if let Some(reply) = collector.waiting.take() {
            let _ = reply.send(Batch { full, evidence });
        }
    }

    fn everything(&self) -> News {
        let here = |(key, _): &(&ServerKey, &Server)| key.target.is_local();
        let servers = self.fleet.servers().filter(here).map(|(key, _)| key.clone()).collect();
        let at_home = self.homes.iter().filter(|(_, pane)| pane.server.target.is_local());
        News { servers, panes: BTreeSet::new(), known: at_home.map(|(id, _)| id.clone()).collect(), target: true }
    }

    /// All its panes where some came, went or moved; else those that are different.
    fn tell_server(
        &self,
        key: &ServerKey,
        news: &News,
        told: &mut BTreeMap<ServerKey, Places>,
        evidence: &mut Vec<Evidence>,
    ) {
        let name = key.server.clone();
        let Some(server) = self.fleet.server(key) else {
            told.remove(key);
            evidence.push(Evidence::ServerGone { server: name });
            return;
        };
        let generation = server.generation;
        let panes = server.panes.iter().map(|(id, pane)| (*id, pane.placements.clone())).collect();
        let places = Places { generation, panes, out: server.outage.is_some() };
        let before = told.get(key);
        // One that falls silent is told of apart from its panes, which stay as they are.
        let same = before.is_some_and(|before| {
            (before.generation, &before.panes) == (generation, &places.panes) && (!before.out || places.out)
        });
        let is_news = |id: &PaneId| news.panes.contains(&PaneKey { server: key.clone(), pane: *id });
        let known = before.filter(|before| before.generation == generation).map(|before| before.panes.keys().copied());
        let known: BTreeSet<PaneId> = known.into_iter().flatten().collect();
        let different = server.panes.iter().filter(|(id, _)| is_news(id) || !known.contains(id));
        let panes: Vec<_> = different.clone().map(|(id, pane)| pane.sighting(*id)).collect();
        if same {
            let rows: Vec<_> = different.flat_map(|(id, pane)| pane.rows(*id).take(1)).collect();
            if !rows.is_empty() {
                evidence.push(Evidence::Reread { server: name.clone(), generation, rows });
            }
        } else {
            let rows = server.panes.iter().flat_map(|(id, pane)| pane.rows(*id)).collect();
            evidence.push(Evidence::Listed { server: name.clone(), generation, rows });
        }
        told.insert(key.clone(), places);
        if !panes.is_empty() {
            evidence.push(Evidence::Processes { server: name, generation, panes });
        }
    }

    fn known(&self, id: &RuntimeId) -> Option<Evidence> {
        let home = self.homes.get(id)?;
        let server = self.fleet.server(&home.server)?;
        let runtime = server.panes.get(&home.pane)?.runtime.as_ref()?;
        Some(Evidence::Known(Box::new(Known {
            server: home.server.server.clone(),
            generation: server.generation,
            pane: home.pane,
            process: runtime.process,
            runtime_id: id.to_string(),
            name: runtime.name.clone(),
            agent_id: self.states.agent_id(id).map(ToOwned::to_owned),
            mind: self.states.mind(id)?.clone(),
        })))
    }
}

fn outage(key: &ServerKey, server: &Server) -> Option<Evidence> {
    let outage = server.outage.as_ref()?;
    let (code, message) = (outage.code, outage.message.clone());
    Some(Evidence::ServerOutage { server: key.server.clone(), generation: server.generation, code, message })
}
