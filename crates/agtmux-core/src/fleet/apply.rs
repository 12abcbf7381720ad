use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::delta::{FleetDelta, RuntimeChange};
use super::model::{
    Fleet, ForegroundProcess, Outage, OutageCode, Pane, PaneExitStatus, PaneKey, PaneTask, Placement, Server,
};
use crate::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey, SessionId, TargetName, WindowId};
use crate::runtime::{LaunchOptions, Runtime, RuntimeIdentity};

/// One row of a pane listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneRow {
    pub session: SessionId,
    pub session_name: String,
    pub window: WindowId,
    pub window_index: u32,
    pub window_name: String,
    pub pane: PaneId,
    pub pane_index: u32,
    pub pid: u32,
    pub tty: String,
    pub dead: Option<PaneExitStatus>,
    pub title: String,
}

/// The process table data of one pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneProcess {
    pub pane: PaneId,
    /// The pid of the pane's first process when the process table was read. If the pane has another first process by
    /// now, the pane was respawned, and this data is ignored.
    pub pane_pid: u32,
    pub foreground: Option<ForegroundProcess>,
    pub agent: Option<DetectedAgent>,
}

/// An agent detected among the processes of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedAgent {
    pub agent_type: AgentType,
    pub process: ProcessRef,
    /// Whether the agent is stopped (Ctrl-Z).
    pub suspended: bool,
    pub launch: LaunchOptions,
}

impl DetectedAgent {
    /// Creates an agent that runs in the foreground and has no launch options.
    pub fn new(agent_type: AgentType, process: ProcessRef) -> Self {
        Self { agent_type, process, suspended: false, launch: LaunchOptions::default() }
    }
}

/// New data read from a tmux server or the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyUpdate {
    /// All panes of a server.
    Listed { server: ServerKey, generation: Generation, rows: Vec<PaneRow> },
    /// Some panes, read again. Panes without a row do not change. Panes with a row keep their placements.
    Reread { server: ServerKey, generation: Generation, rows: Vec<PaneRow> },
    /// Processes of some panes.
    Processes { server: ServerKey, generation: Generation, panes: Vec<PaneProcess> },
    /// The server's process ended.
    ServerGone { server: ServerKey },
    /// The server exists but cannot be read.
    ServerOutage { server: ServerKey, generation: Generation, code: OutageCode, message: String },
    /// A task started in a pane or changed its status. `task` is `None` when the pane no longer has a task.
    Task { server: ServerKey, generation: Generation, pane: PaneId, task: Option<PaneTask> },
    /// The target's tmux cannot be read. `outage` is `None` when tmux can be read again.
    TargetOutage { target: TargetName, outage: Option<(OutageCode, String)> },
    /// The target and all its servers are unreachable.
    TargetUnreachable { target: TargetName, message: String },
    /// The target is no longer watched.
    TargetRemoved { target: TargetName },
}

impl Fleet {
    /// Applies an update and returns what changed.
    pub fn apply(&mut self, observation: TopologyUpdate, now: Timestamp) -> FleetDelta {
        let mut changes = FleetChanges { delta: FleetDelta::default(), now };
        match observation {
            TopologyUpdate::Listed { server, generation, rows } => self.listed(server, generation, rows, &mut changes),
            TopologyUpdate::Reread { server, generation, rows } => self.reread(&server, generation, rows, &mut changes),
            TopologyUpdate::Processes { server, generation, panes } => {
                self.processes(&server, generation, panes, &mut changes);
            }
            TopologyUpdate::ServerGone { server } => self.server_gone(&server, &mut changes),
            TopologyUpdate::ServerOutage { server, generation, code, message } => {
                self.server_outage(server, generation, code, message, &mut changes);
            }
            TopologyUpdate::TargetOutage { target, outage } => self.target_outage(target, outage, &mut changes),
            TopologyUpdate::Task { server, generation, pane, task } => {
                self.update_task(PaneKey { server, pane }, generation, task, &mut changes);
            }
            TopologyUpdate::TargetUnreachable { target, message } => {
                self.target_unreachable(target, &message, &mut changes);
            }
            TopologyUpdate::TargetRemoved { target } => {
                for key in self.servers_of(&target) {
                    self.server_gone(&key, &mut changes);
                }
                self.target_outage(target, None, &mut changes);
            }
        }
        self.assign_tasks_to_panes(&mut changes);
        changes.delta
    }

    fn listed(&mut self, key: ServerKey, generation: Generation, rows: Vec<PaneRow>, changes: &mut FleetChanges) {
        if self.servers.get(&key).is_some_and(|s| s.generation != generation) {
            self.server_gone(&key, changes);
        }
        let server = self.servers.entry(key.clone()).or_insert_with(|| {
            changes.delta.servers.insert(key.clone());
            Server { generation, outage: None, panes: BTreeMap::new() }
        });
        if server.outage.take().is_some() {
            changes.set_reachable(&key, true);
        }
        let listed = group_rows(rows);
        let gone: Vec<PaneId> = server.panes.keys().filter(|id| !listed.contains_key(id)).copied().collect();
        for id in gone {
            changes.drop_pane(&key, server, id);
        }
        for (id, (row, placements)) in listed {
            changes.update_pane(&key, server, id, row, Some(placements));
        }
    }

    fn reread(&mut self, key: &ServerKey, generation: Generation, rows: Vec<PaneRow>, changes: &mut FleetChanges) {
        let Some(server) = self.servers.get_mut(key).filter(|s| s.generation == generation) else { return };
        for row in rows {
            if server.panes.contains_key(&row.pane) {
                changes.update_pane(key, server, row.pane, row, None);
            }
        }
    }

    fn processes(
        &mut self,
        key: &ServerKey,
        generation: Generation,
        sightings: Vec<PaneProcess>,
        changes: &mut FleetChanges,
    ) {
        let Some(server) = self.servers.get_mut(key).filter(|s| s.generation == generation) else { return };
        for sighting in sightings {
            let Some(pane) = server.panes.get_mut(&sighting.pane) else { continue };
            // A dead pane has no agent, but a task may remain in it. A remote host may report that task or its end.
            let task_reported = sighting.agent.as_ref().is_some_and(|agent| agent.agent_type.is_task())
                || (holds_task(pane) && !key.target.is_local());
            if pane.pid != sighting.pane_pid || (pane.dead.is_some() && !task_reported) {
                continue;
            }
            let mut changed = false;
            if pane.foreground != sighting.foreground {
                pane.foreground = sighting.foreground;
                changed = true;
            }
            let pane_key = PaneKey { server: key.clone(), pane: sighting.pane };
            changed |= changes.update_agent(&pane_key, generation, pane, sighting.agent);
            if changed {
                changes.mark_changed(&pane_key, pane);
            }
        }
    }

    fn server_gone(&mut self, key: &ServerKey, changes: &mut FleetChanges) {
        let Some(mut server) = self.servers.remove(key) else { return };
        changes.delta.servers.insert(key.clone());
        if server.outage.is_some() {
            changes.set_reachable(key, true);
        }
        let ids: Vec<PaneId> = server.panes.keys().copied().collect();
        for id in ids {
            changes.drop_pane(key, &mut server, id);
        }
    }

    fn server_outage(
        &mut self,
        key: ServerKey,
        generation: Generation,
        code: OutageCode,
        message: String,
        changes: &mut FleetChanges,
    ) {
        let unknown = || Server { generation, outage: None, panes: BTreeMap::new() };
        let server = self.servers.entry(key.clone()).or_insert_with(unknown);
        if let Some(outage) = next_outage(server.outage.as_ref(), code, message, changes.now) {
            server.outage = Some(outage);
            changes.set_reachable(&key, false);
        }
    }

    fn target_unreachable(&mut self, target: TargetName, message: &str, changes: &mut FleetChanges) {
        for key in self.servers_of(&target) {
            if let Some(generation) = self.servers.get(&key).map(|server| server.generation) {
                self.server_outage(key, generation, OutageCode::TargetUnreachable, message.to_owned(), changes);
            }
        }
        self.target_outage(target, Some((OutageCode::TargetUnreachable, message.to_owned())), changes);
    }

    fn servers_of(&self, target: &TargetName) -> Vec<ServerKey> {
        self.servers.keys().filter(|key| key.target == *target).cloned().collect()
    }

    fn target_outage(&mut self, target: TargetName, outage: Option<(OutageCode, String)>, changes: &mut FleetChanges) {
        let Some((code, message)) = outage else {
            changes.delta.targets_changed |= self.target_outages.remove(&target).is_some();
            return;
        };
        if let Some(outage) = next_outage(self.target_outages.get(&target), code, message, changes.now) {
            self.target_outages.insert(target, outage);
            changes.delta.targets_changed = true;
        }
    }
}

/// Returns the outage to store, or `None` if the same outage is already stored. If another outage is stored, the new
/// one takes over its start time, because reading has failed since then.
fn next_outage(known: Option<&Outage>, code: OutageCode, message: String, now: Timestamp) -> Option<Outage> {
    let is_known = known.is_some_and(|outage| outage.code == code && outage.message == message);
    (!is_known).then(|| Outage { code, message, since: known.map_or(now, |outage| outage.since) })
}

/// Groups rows by pane: tmux lists a pane once per session that shows it.
fn group_rows(rows: Vec<PaneRow>) -> BTreeMap<PaneId, (PaneRow, BTreeSet<Placement>)> {
    let mut panes: BTreeMap<PaneId, (PaneRow, BTreeSet<Placement>)> = BTreeMap::new();
    for row in rows {
        let placement =
            Placement { session: row.session, session_name: row.session_name.clone(), window_index: row.window_index };
        panes.entry(row.pane).or_insert_with(|| (row, BTreeSet::new())).1.insert(placement);
    }
    panes
}

fn new_pane(row: PaneRow, placements: BTreeSet<Placement>, now: Timestamp) -> Pane {
    Pane {
        epoch: 1,
        pid: row.pid,
        tty: row.tty,
        window: row.window,
        window_name: row.window_name,
        pane_index: row.pane_index,
        title: row.title,
        dead: row.dead,
        placements,
        foreground: None,
        runtime: None,
        updated_at: now,
    }
}

fn holds_task(pane: &Pane) -> bool {
    pane.runtime.as_ref().is_some_and(|runtime| runtime.agent_type.is_task())
}

/// The delta of the update that is being applied.
pub(super) struct FleetChanges {
    pub(super) delta: FleetDelta,
    now: Timestamp,
}

impl FleetChanges {
    fn set_reachable(&mut self, server: &ServerKey, reachable: bool) {
        self.delta.servers.insert(server.clone());
        self.delta.runtime_changes.push(RuntimeChange::Reachable { server: server.clone(), reachable });
    }

    fn update_pane(
        &mut self,
        key: &ServerKey,
        server: &mut Server,
        id: PaneId,
        row: PaneRow,
        placements: Option<BTreeSet<Placement>>,
    ) {
        let pane_key = PaneKey { server: key.clone(), pane: id };
        let Some(pane) = server.panes.get_mut(&id) else {
            let pane = new_pane(row, placements.unwrap_or_default(), self.now);
            let pane = server.panes.entry(id).or_insert(pane);
            self.mark_changed(&pane_key, pane);
            return;
        };
        let placements = placements.unwrap_or_else(|| pane.placements.clone());
        let same = pane.pid == row.pid
            && pane.tty == row.tty
            && pane.window == row.window
            && pane.window_name == row.window_name
            && pane.pane_index == row.pane_index
            && pane.title == row.title
            && pane.dead == row.dead
            && pane.placements == placements;
        if same {
            return;
        }
        // If the pane moved, its previous window and sessions change too.
        self.mark_containers_changed(&pane_key, pane);
        if pane.pid != row.pid {
            if !self.end_runtime(&pane_key, pane) {
                pane.epoch += 1;
            }
            pane.foreground = None;
        }
        if row.dead.is_some() {
            // An ended task stays visible until its pane is removed.
            if !holds_task(pane) {
                self.end_runtime(&pane_key, pane);
            }
            pane.foreground = None;
        }
        let epoch = pane.epoch;
        let (runtime, foreground) = (pane.runtime.take(), pane.foreground.take());
        *pane = Pane { epoch, runtime, foreground, ..new_pane(row, placements, self.now) };
        self.mark_changed(&pane_key, pane);
    }

    /// Makes the detected agent the runtime of the pane. If no agent was detected, ends the runtime, unless the runtime
    /// is a task on this machine. Returns whether the runtime changed.
    fn update_agent(
        &mut self,
        key: &PaneKey,
        generation: Generation,
        pane: &mut Pane,
        agent: Option<DetectedAgent>,
    ) -> bool {
        let Some(agent) = agent else {
            // The local process table shows agents but not tasks, so a missing agent does not end a local task. A
            // remote host also reports tasks, so a missing agent ends a remote task.
            let stays = holds_task(pane) && key.server.target.is_local();
            return !stays && self.end_runtime(key, pane);
        };
        if let Some(runtime) = &mut pane.runtime
            && runtime.process == agent.process
            && runtime.agent_type == agent.agent_type
        {
            if runtime.suspended == agent.suspended {
                return false;
            }
            runtime.suspended = agent.suspended;
            let suspended = RuntimeChange::Suspended { runtime: runtime.id.clone(), suspended: agent.suspended };
            self.delta.runtime_changes.push(suspended);
            return true;
        }
        self.end_runtime(key, pane);
        self.start_runtime(key, generation, pane, agent, None);
        true
    }

    /// Makes a detected agent or a task the runtime of its pane.
    pub(super) fn start_runtime(
        &mut self,
        key: &PaneKey,
        generation: Generation,
        pane: &mut Pane,
        agent: DetectedAgent,
        name: Option<String>,
    ) {
        let DetectedAgent { agent_type, process, suspended, launch } = agent;
        let (server, epoch) = (&key.server, pane.epoch);
        let identity = RuntimeIdentity { server, generation, pane: key.pane, epoch, process, agent_type: &agent_type };
        let id = identity.id();
        let runtime = Runtime { id, agent_type, name, process, suspended, started_at: self.now, launch };
        self.delta.runtime_changes.push(RuntimeChange::Started { pane: key.clone(), runtime: runtime.clone() });
        pane.runtime = Some(runtime);
    }

    fn drop_pane(&mut self, key: &ServerKey, server: &mut Server, id: PaneId) {
        let Some(mut pane) = server.panes.remove(&id) else { return };
        let pane_key = PaneKey { server: key.clone(), pane: id };
        self.end_runtime(&pane_key, &mut pane);
        self.mark_containers_changed(&pane_key, &pane);
        self.delta.changed.remove(&pane_key);
        self.delta.removed.insert(pane_key);
    }

    pub(super) fn end_runtime(&mut self, key: &PaneKey, pane: &mut Pane) -> bool {
        let Some(runtime) = pane.runtime.take() else { return false };
        let ended = RuntimeChange::Ended { pane: key.clone(), runtime: runtime.id, process: runtime.process };
        self.delta.runtime_changes.push(ended);
        // The next runtime in this pane gets a new epoch.
        pane.epoch += 1;
        true
    }

    pub(super) fn mark_changed(&mut self, key: &PaneKey, pane: &mut Pane) {
        pane.updated_at = self.now;
        self.mark_containers_changed(key, pane);
        self.delta.changed.insert(key.clone());
        self.delta.removed.remove(key);
    }

    fn mark_containers_changed(&mut self, key: &PaneKey, pane: &Pane) {
        self.delta.windows.insert((key.server.clone(), pane.window));
        for placement in &pane.placements {
            self.delta.sessions.insert((key.server.clone(), placement.session));
        }
    }
}
