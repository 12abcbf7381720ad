//! The handle through which the rest of the daemon talks to the engine.

use std::sync::Arc;
use std::time::Instant;

use agtmux_agents::AgentRegistry;
use agtmux_api::error::ApiError;
use agtmux_api::wire::{AdapterList, AdapterSwitch, EventReceipt, Explanation};
use agtmux_core::binding::{self, EventOrigin};
use agtmux_core::fleet::{PaneKey, TopologyUpdate};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerKey, ServerName, TargetName};
use agtmux_core::refs::PaneRef;
use agtmux_core::runtime::Runtime;
use jiff::Timestamp;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::ingest::stopping_error;
use super::{
    Engine, EngineInput, FileEvidence, IncomingEvent, IngestStats, LocalAgents, LocatedPane, SubmittedPrompt,
    TaskSessions, TaskUpdate, TaskUpdateOutcome,
};
use crate::observe::{AgentReport, ScreenEvidence};
use crate::store::TaskSessionKey;
use crate::view::TargetChange;

/// Sends inputs to the engine. Waits while the queue is full: no input is dropped.
#[derive(Debug, Clone)]
pub(crate) struct EngineHandle {
    pub(super) inputs: mpsc::Sender<EngineInput>,
    pub(super) submitted: broadcast::Sender<SubmittedPrompt>,
    /// Announces the key of a task session when one of its task panes was removed or died, or when another pane of the
    /// session changed.
    pub(super) task_session_changed: broadcast::Sender<TaskSessionKey>,
    pub(super) task_sessions: Arc<TaskSessions>,
    pub(super) ingest_stats: Arc<IngestStats>,
}

impl EngineHandle {
    pub(crate) async fn apply_topology(&self, update: TopologyUpdate) {
        // Sending fails only while the daemon shuts down.
        let _ = self.inputs.send(EngineInput::Topology(update)).await;
    }

    pub(crate) async fn change_target(&self, change: TargetChange) {
        let _ = self.inputs.send(EngineInput::Target(change)).await;
    }

    pub(crate) async fn apply_screen(&self, evidence: ScreenEvidence) {
        let _ = self.inputs.send(EngineInput::Screen(Box::new(evidence))).await;
    }

    pub(crate) async fn apply_file(&self, evidence: FileEvidence) {
        let _ = self.inputs.send(EngineInput::FileEvidence(Box::new(evidence))).await;
    }

    /// Posts an event. Returns when the event is stored, or fails with the reason why it was rejected or not stored.
    pub(crate) async fn ingest_event(&self, event: IncomingEvent) -> Result<EventReceipt, ApiError> {
        let arrived = Instant::now();
        let receipt = self.request(|reply| EngineInput::Event(Box::new(event), reply)).await;
        self.ingest_stats.record(arrived.elapsed());
        receipt.unwrap_or_else(|| Err(stopping_error()))
    }

    pub(crate) fn ingest_stats(&self) -> &IngestStats {
        &self.ingest_stats
    }

    /// The length and the capacity of the queue of inputs.
    pub(crate) fn queue(&self) -> (usize, usize) {
        let capacity = self.inputs.max_capacity();
        (capacity - self.inputs.capacity(), capacity)
    }

    pub(crate) async fn explain(&self, reference: PaneRef) -> Result<Explanation, ApiError> {
        self.query(move |engine, now| engine.explain(&reference, now)).await.unwrap_or_else(|| Err(stopping_error()))
    }

    pub(crate) async fn locate(&self, reference: PaneRef) -> Result<LocatedPane, ApiError> {
        self.query(move |engine, _| engine.locate(&reference)).await.unwrap_or_else(|| Err(stopping_error()))
    }

    /// The pane with this key, if it exists.
    pub(crate) async fn locate_key(&self, key: PaneKey) -> Option<LocatedPane> {
        self.query(move |engine, _| engine.locate_key(key)).await.flatten()
    }

    /// All panes of this host.
    pub(crate) async fn local_panes(&self) -> Vec<LocatedPane> {
        let all = |engine: &Engine, _| {
            let target = TargetName::local();
            let servers = engine.fleet.servers_on(&target);
            let keys = servers.flat_map(|(server, state)| {
                state.panes.keys().map(|pane| PaneKey { server: server.clone(), pane: *pane }).collect::<Vec<_>>()
            });
            keys.filter_map(|key| engine.locate_key(key)).collect()
        };
        self.query(all).await.unwrap_or_default()
    }

    /// The runtime in a local pane.
    pub(crate) async fn runtime_in_pane(&self, server: ServerName, pane: PaneId) -> Option<Runtime> {
        let key = PaneKey { server: ServerKey { target: TargetName::local(), server }, pane };
        self.query(move |engine, _| engine.fleet.pane(&key)?.runtime.clone()).await.flatten()
    }

    /// The agents on this host, and the tmux server and pane that contain a given process. `pids` are the ids of that
    /// process and its ancestors.
    pub(crate) async fn local_agents(&self, pids: Vec<u32>) -> LocalAgents {
        self.query(move |engine, _| engine.local_agents(&pids)).await.unwrap_or_default()
    }

    /// Whether an agent already has this name. Agents whose process is one of `own` do not count.
    pub(crate) async fn is_name_taken(&self, name: String, own: Vec<ProcessRef>) -> bool {
        self.query(move |engine, _| engine.is_name_taken(&name, &own)).await.unwrap_or_default()
    }

    /// Tells the observer of a pane that an agent in the pane has sent an event about itself. Does nothing if the event
    /// does not name exactly one pane, or if the pane already has a known agent.
    pub(crate) async fn report_agent(&self, origin: EventOrigin, report: AgentReport) {
        let forward = move |engine: &Engine, _| {
            if let Some(pane) = binding::pane_without_agent(&engine.fleet, &origin) {
                engine.recheck_hints.report_agent(&pane, report);
            }
        };
        self.query(forward).await;
    }

    /// The known servers of a target.
    pub(crate) async fn servers_of(&self, target: TargetName) -> Vec<(ServerKey, Generation)> {
        let servers = move |engine: &Engine, _| {
            engine.fleet.servers_on(&target).map(|(key, server)| (key.clone(), server.generation)).collect()
        };
        self.query(servers).await.unwrap_or_default()
    }

    /// Subscribes to the prompts that agents report as submitted after this call.
    pub(crate) fn subscribe_submitted(&self) -> broadcast::Receiver<SubmittedPrompt> {
        self.submitted.subscribe()
    }

    pub(crate) async fn adapters(&self) -> Result<AdapterList, ApiError> {
        self.query(Engine::adapters).await.ok_or_else(stopping_error)
    }

    pub(crate) async fn switch_adapter(&self, switch: AdapterSwitch) -> Result<AdapterList, ApiError> {
        self.request(|reply| EngineInput::SwitchAdapter(switch, reply)).await.unwrap_or_else(|| Err(stopping_error()))
    }

    pub(crate) async fn set_registry(&self, registry: Arc<AgentRegistry>) {
        let _ = self.inputs.send(EngineInput::SetRegistry(registry)).await;
    }

    /// Applies inputs to a task session. Returns after their effects are stored and published. Returns `None` if the
    /// effects could not be stored; the session has then not changed.
    pub(crate) async fn apply_task_update(&self, update: TaskUpdate) -> Option<TaskUpdateOutcome> {
        self.request(|reply| EngineInput::Task(Box::new(update), reply)).await.flatten()
    }

    pub(crate) fn task_sessions(&self) -> &TaskSessions {
        &self.task_sessions
    }

    /// Subscribes to the keys of task sessions in which a pane changed in a way that may have ended a task.
    pub(crate) fn subscribe_task_sessions(&self) -> broadcast::Receiver<TaskSessionKey> {
        self.task_session_changed.subscribe()
    }

    pub(crate) async fn flush(&self) {
        self.request(EngineInput::Flush).await;
    }

    /// Runs a function that reads the engine, between two inputs. Returns `None` while the daemon shuts down.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Engine, Timestamp) -> T + Send + 'static,
    ) -> Option<T> {
        let query = |reply: oneshot::Sender<T>| {
            EngineInput::Query(Box::new(move |engine, now| {
                let _ = reply.send(read(engine, now));
            }))
        };
        self.request(query).await
    }

    pub(super) async fn request<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> EngineInput) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inputs.send(input(reply)).await.ok()?;
        answer.await.ok()
    }
}
