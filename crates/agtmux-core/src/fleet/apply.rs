use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::delta::{FleetDelta, RuntimeChange};
use super::model::{
    Fleet, ForegroundProcess, Outage, OutageCode, Pane, PaneExitStatus, PaneKey, PaneTask, Placement, Server,
};
use crate::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey, SessionId, TargetName, WindowId};
use crate::runtime::{Runtime, RuntimeIdentity};

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
    /// The pane's first process at lookup time. It guards against a respawn in between.
    pub pane_pid: u32,
    pub foreground: Option<ForegroundProcess>,
    pub agent: Option<DetectedAgent>,
}

/// An agent detected among the processes of a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedAgent {
    pub agent_type: AgentType,
    pub process: ProcessRef,
    /// Stopped with Ctrl-Z.
    pub suspended: bool,
}

/// New data read from a tmux server or the process table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopologyUpdate {
    /// All panes of a server.
    Listed { server: ServerKey, generation: Generation, rows: Vec<PaneRow> },
    /// Some panes, read again. Panes and placements not listed are unaffected.
    Reread { server: ServerKey, generation: Generation, rows: Vec<PaneRow> },
    /// Processes of some panes.
    Processes { server: ServerKey, generation: Generation, panes: Vec<PaneProcess> },
    /// The server's process ended.
    ServerGone { server: ServerKey },
    /// The server exists and cannot be read.
    ServerOutage { server: ServerKey, generation: Generation, code: OutageCode, message: String },
    /// A task started in a pane or changed its status. `None` when the pane no longer has a task.
    Task { server: ServerKey, generation: Generation, pane: PaneId, task: Option<PaneTask> },
    /// The target's tmux cannot be read, or can be read again.
    TargetOutage { target: TargetName, outage: Option<(OutageCode, String)> },
    /// The target is unreachable, with all its servers.
    TargetUnreachable { target: TargetName, message: String },
    /// The target is no longer watched.
    TargetRemoved { target: TargetName },
}

impl Fleet {
    /// Applies an update. This is the only way the fleet changes.
    pub fn apply(&mut self, observation: TopologyUpdate, now: Timestamp) -> FleetDelta {
        let mut delta = FleetDelta::default();
        match observation {
            TopologyUpdate::Listed { server, generation, rows } => {
                self.listed(server, generation, rows, now, &mut delta)
            }
            TopologyUpdate::Reread { server, generation, rows } => {
                self.reread(&server, generation, rows, now, &mut delta)
            }
            TopologyUpdate::Processes { server, generation, panes } => {
                self.processes(&server, generation, panes, now, &mut delta);
            }
            TopologyUpdate::ServerGone { server } => self.server_gone(&server, &mut delta),
            TopologyUpdate::ServerOutage { server, generation, code, message } => {
                self.server_outage(server, generation, Outage { code, message, since: now }, &mut delta);
            }
            TopologyUpdate::TargetOutage { target, outage } => self.target_outage(target, outage, now, &mut delta),
            TopologyUpdate::Task { server, generation, pane, task } => {
                self.update_task(PaneKey { server, pane }, generation, task, now, &mut delta);
            }
            TopologyUpdate::TargetUnreachable { target, message } => {
                self.target_unreachable(target, &message, now, &mut delta)
            }
            TopologyUpdate::TargetRemoved { target } => {
                for key in self.servers_of(&target) {
                    self.server_gone(&key, &mut delta);
                }
                self.target_outage(target, None, now, &mut delta);
            }
        }
        self.assign_tasks_to_panes(now, &mut delta);
        delta
    }

    fn listed(
        &mut self,
        key: ServerKey,
        generation: Generation,
        rows: Vec<PaneRow>,
        now: Timestamp,
        delta: &mut FleetDelta,
    ) {
        if self.servers.get(&key).is_some_and(|s| s.generation != generation) {
            self.server_gone(&key, delta);
        }
        let server = self.servers.entry(key.clone()).or_insert_with(|| {
            delta.servers.insert(key.clone());
            Server { generation, outage: None, panes: BTreeMap::new() }
        });
        if server.outage.take().is_some() {
            delta.servers.insert(key.clone());
            delta.runtime_changes.push(RuntimeChange::Reachable { server: key.clone(), reachable: true });
        }
        let listed = group_rows(rows);
        let gone: Vec<PaneId> = server.panes.keys().filter(|id| !listed.contains_key(id)).copied().collect();
        for id in gone {
            drop_pane(&key, server, id, delta);
        }
        for (id, (row, placements)) in listed {
            update_pane(&key, server, id, row, Some(placements), now, delta);
        }
    }

    fn reread(
        &mut self,
        key: &ServerKey,
        generation: Generation,
        rows: Vec<PaneRow>,
        now: Timestamp,
        delta: &mut FleetDelta,
    ) {
        let Some(server) = self.servers.get_mut(key).filter(|s| s.generation == generation) else { return };
        for row in rows {
            if server.panes.contains_key(&row.pane) {
                update_pane(key, server, row.pane, row, None, now, delta);
            }
        }
    }

    fn processes(
        &mut self,
        key: &ServerKey,
        generation: Generation,
        sightings: Vec<PaneProcess>,
        now: Timestamp,
        delta: &mut FleetDelta,
    ) {
        let Some(server) = self.servers.get_mut(key).filter(|s| s.generation == generation) else { return };
        for sighting in sightings {
            let Some(pane) = server.panes.get_mut(&sighting.pane) else { continue };
            // A dead pane has no agent. Only a task may remain in it; a remote host may report the task or its end.
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
            changed |= update_agent(&pane_key, generation, pane, sighting.agent, now, delta);
            if changed {
                mark_changed(&pane_key, pane, now, delta);
            }
        }
    }

    fn server_gone(&mut self, key: &ServerKey, delta: &mut FleetDelta) {
        let Some(mut server) = self.servers.remove(key) else { return };
        delta.servers.insert(key.clone());
        if server.outage.is_some() {
            delta.runtime_changes.push(RuntimeChange::Reachable { server: key.clone(), reachable: true });
        }
        let ids: Vec<PaneId> = server.panes.keys().copied().collect();
        for id in ids {
            drop_pane(key, &mut server, id, delta);
        }
    }

    fn server_outage(&mut self, key: ServerKey, generation: Generation, outage: Outage, delta: &mut FleetDelta) {
        let server = self.servers.entry(key.clone()).or_insert_with(|| Server {
            generation,
            outage: None,
            panes: BTreeMap::new(),
        });
        if server.outage.as_ref().is_some_and(|o| o.code == outage.code && o.message == outage.message) {
            return;
        }
        let since = server.outage.as_ref().map_or(outage.since, |o| o.since);
        server.outage = Some(Outage { since, ..outage });
        delta.servers.insert(key.clone());
        delta.runtime_changes.push(RuntimeChange::Reachable { server: key, reachable: false });
    }

    fn target_unreachable(&mut self, target: TargetName, message: &str, now: Timestamp, delta: &mut FleetDelta) {
        for key in self.servers_of(&target) {
            if let Some(generation) = self.servers.get(&key).map(|server| server.generation) {
                let outage = Outage { code: OutageCode::TargetUnreachable, message: message.to_owned(), since: now };
                self.server_outage(key, generation, outage, delta);
            }
        }
        self.target_outage(target, Some((OutageCode::TargetUnreachable, message.to_owned())), now, delta);
    }

    fn servers_of(&self, target: &TargetName) -> Vec<ServerKey> {
        self.servers.keys().filter(|key| key.target == *target).cloned().collect()
    }

    fn target_outage(
        &mut self,
        target: TargetName,
        outage: Option<(OutageCode, String)>,
        now: Timestamp,
        delta: &mut FleetDelta,
    ) {
        let known = self.target_outages.get(&target);
        match outage {
            None => delta.targets_changed |= self.target_outages.remove(&target).is_some(),
            Some((code, message)) => {
                if known.is_none_or(|o| o.code != code || o.message != message) {
                    let since = known.map_or(now, |o| o.since);
                    self.target_outages.insert(target, Outage { code, message, since });
                    delta.targets_changed = true;
                }
            }
        }
    }
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

fn update_pane(
    key: &ServerKey,
    server: &mut Server,
    id: PaneId,
    row: PaneRow,
    placements: Option<BTreeSet<Placement>>,
    now: Timestamp,
    delta: &mut FleetDelta,
) {
    let pane_key = PaneKey { server: key.clone(), pane: id };
    let Some(pane) = server.panes.get_mut(&id) else {
        let pane = new_pane(row, placements.unwrap_or_default(), now);
        let pane = server.panes.entry(id).or_insert(pane);
        mark_changed(&pane_key, pane, now, delta);
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
    // The window and session that the pane left must be counted again.
    mark_containers_changed(&pane_key, pane, delta);
    if pane.pid != row.pid {
        if !end_runtime(&pane_key, pane, delta) {
            pane.epoch += 1;
        }
        pane.foreground = None;
    }
    if row.dead.is_some() {
        // An ended task stays visible until its pane is removed.
        if !holds_task(pane) {
            end_runtime(&pane_key, pane, delta);
        }
        pane.foreground = None;
    }
    let epoch = pane.epoch;
    let (runtime, foreground) = (pane.runtime.take(), pane.foreground.take());
    *pane = Pane { epoch, runtime, foreground, ..new_pane(row, placements, now) };
    mark_changed(&pane_key, pane, now, delta);
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

/// Returns whether the pane's runtime changed.
fn update_agent(
    key: &PaneKey,
    generation: Generation,
    pane: &mut Pane,
    agent: Option<DetectedAgent>,
    now: Timestamp,
    delta: &mut FleetDelta,
) -> bool {
    let Some(agent) = agent else {
        // A missing process does not prove that a local task is gone; a remote host knows.
        let stays = holds_task(pane) && key.server.target.is_local();
        return !stays && end_runtime(key, pane, delta);
    };
    if let Some(runtime) = &mut pane.runtime
        && runtime.process == agent.process
        && runtime.agent_type == agent.agent_type
    {
        if runtime.suspended == agent.suspended {
            return false;
        }
        runtime.suspended = agent.suspended;
        delta
            .runtime_changes
            .push(RuntimeChange::Suspended { runtime: runtime.id.clone(), suspended: agent.suspended });
        return true;
    }
    end_runtime(key, pane, delta);
    let identity = RuntimeIdentity {
        server: &key.server,
        generation,
        pane: key.pane,
        epoch: pane.epoch,
        process: agent.process,
        agent_type: &agent.agent_type,
    };
    let runtime = Runtime {
        id: identity.id(),
        agent_type: agent.agent_type,
        name: None,
        process: agent.process,
        suspended: agent.suspended,
        started_at: now,
    };
    delta.runtime_changes.push(RuntimeChange::Started { pane: key.clone(), runtime: runtime.clone() });
    pane.runtime = Some(runtime);
    true
}

fn drop_pane(key: &ServerKey, server: &mut Server, id: PaneId, delta: &mut FleetDelta) {
    let Some(mut pane) = server.panes.remove(&id) else { return };
    let pane_key = PaneKey { server: key.clone(), pane: id };
    end_runtime(&pane_key, &mut pane, delta);
    mark_containers_changed(&pane_key, &pane, delta);
    delta.changed.remove(&pane_key);
    delta.removed.insert(pane_key);
}

fn holds_task(pane: &Pane) -> bool {
    pane.runtime.as_ref().is_some_and(|runtime| runtime.agent_type.is_task())
}

pub(super) fn end_runtime(key: &PaneKey, pane: &mut Pane, delta: &mut FleetDelta) -> bool {
    let Some(runtime) = pane.runtime.take() else { return false };
    delta.runtime_changes.push(RuntimeChange::Ended {
        pane: key.clone(),
        runtime: runtime.id,
        process: runtime.process,
    });
    // The next runtime in this pane gets a new epoch.
    pane.epoch += 1;
    true
}

pub(super) fn mark_changed(key: &PaneKey, pane: &mut Pane, now: Timestamp, delta: &mut FleetDelta) {
    pane.updated_at = now;
    mark_containers_changed(key, pane, delta);
    delta.changed.insert(key.clone());
    delta.removed.remove(key);
}

fn mark_containers_changed(key: &PaneKey, pane: &Pane, delta: &mut FleetDelta) {
    delta.windows.insert((key.server.clone(), pane.window));
    for placement in &pane.placements {
        delta.sessions.insert((key.server.clone(), placement.session));
    }
}
