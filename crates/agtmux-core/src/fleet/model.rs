use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::ids::{Generation, PaneId, ProcessRef, ServerKey, ServerName, SessionId, TargetName, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// All watched servers, panes and tasks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Fleet {
    pub(super) servers: BTreeMap<ServerKey, Server>,
    pub(super) target_outages: BTreeMap<TargetName, Outage>,
    /// Tasks by pane. The daemon may report a task before tmux has listed the pane of the task.
    pub(super) tasks: BTreeMap<PaneKey, (Generation, PaneTask)>,
}

/// The task in a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneTask {
    pub name: String,
    /// The pane's first process. It distinguishes this run of the task from other runs in the same pane.
    pub process: ProcessRef,
    pub status: PaneTaskStatus,
}

/// The status of a task in a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneTaskStatus {
    /// The task's process runs.
    Running,
    /// The task waits at this prompt.
    WaitingInput(String),
    /// The task's process ended.
    Ended { success: bool },
}

/// One tmux server in its current generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub generation: Generation,
    pub outage: Option<Outage>,
    pub panes: BTreeMap<PaneId, Pane>,
}

/// Names a pane within the current generation of its server. The key contains neither the generation nor the epoch, so
/// action guards check these two separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneKey {
    pub server: ServerKey,
    pub pane: PaneId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Increases when the pane's runtime or process is replaced. A respawn changes the process but keeps the pane id.
    pub epoch: u32,
    pub pid: u32,
    pub tty: String,
    pub window: WindowId,
    pub window_name: String,
    pub pane_index: u32,
    pub title: String,
    pub dead: Option<PaneExitStatus>,
    /// Where the pane is shown. A linked window or a grouped session shows the same pane in several sessions.
    pub placements: BTreeSet<Placement>,
    pub foreground: Option<ForegroundProcess>,
    pub runtime: Option<Runtime>,
    pub updated_at: Timestamp,
}

impl Pane {
    fn times_mut(&mut self) -> impl Iterator<Item = &mut Timestamp> {
        let started_at = self.runtime.as_mut().map(|runtime| &mut runtime.started_at);
        [&mut self.updated_at].into_iter().chain(started_at)
    }
}

/// One place where a pane is shown: a session, and the index of the pane's window in this session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    pub session: SessionId,
    pub session_name: String,
    pub window_index: u32,
}

/// How the process of a dead pane ended. Both fields may be `None` for a moment, until tmux knows the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaneExitStatus {
    pub status: Option<i32>,
    pub signal: Option<i32>,
}

/// The process in the foreground of the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForegroundProcess {
    pub command: String,
    pub cwd: Option<String>,
}

/// A problem with reading a server or a target. The fleet keeps the panes that it already knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    pub code: OutageCode,
    pub message: String,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutageCode {
    /// `tmux` is not on the PATH.
    TmuxNotInstalled,
    /// The server's tmux version is not supported.
    TmuxTooOld,
    /// The server exists and does not answer.
    ServerNotResponding,
    /// The server's answer is not a valid listing.
    ListingFailed,
    /// The host has more panes than the limit allows. agtmux does not show the others.
    ListingCut,
    /// The host sends more changes than the limit allows, so agtmux reads them more slowly. The states of its agents
    /// may be out of date.
    RateLimited,
    /// The host is unreachable.
    TargetUnreachable,
}

impl Fleet {
    pub fn servers(&self) -> impl Iterator<Item = (&ServerKey, &Server)> {
        self.servers.iter()
    }

    /// The servers of one target, found without iterating over the servers of other targets.
    pub fn servers_on<'a>(&'a self, target: &'a TargetName) -> impl Iterator<Item = (&'a ServerKey, &'a Server)> {
        let first = ServerKey { target: target.clone(), server: ServerName::new("") };
        self.servers.range(first..).take_while(move |(key, _)| key.target == *target)
    }

    pub fn server(&self, key: &ServerKey) -> Option<&Server> {
        self.servers.get(key)
    }

    pub fn pane(&self, key: &PaneKey) -> Option<&Pane> {
        self.servers.get(&key.server)?.panes.get(&key.pane)
    }

    /// The task in this pane, if the task is the pane's current runtime.
    pub fn task(&self, key: &PaneKey) -> Option<(&RuntimeId, &PaneTask)> {
        let runtime = self.pane(key)?.runtime.as_ref().filter(|runtime| runtime.agent_type.is_task())?;
        let (_, task) = self.tasks.get(key).filter(|(_, task)| task.process == runtime.process)?;
        Some((&runtime.id, task))
    }

    pub fn target_outages(&self) -> impl Iterator<Item = (&TargetName, &Outage)> {
        self.target_outages.iter()
    }

    /// Gives the runtime in this pane a name, but only if the runtime has this id. Returns whether the name changed.
    pub fn name_runtime(&mut self, key: &PaneKey, id: &RuntimeId, name: &str) -> bool {
        let pane = self.servers.get_mut(&key.server).and_then(|server| server.panes.get_mut(&key.pane));
        match pane.and_then(|pane| pane.runtime.as_mut()).filter(|runtime| runtime.id == *id) {
            Some(runtime) if runtime.name.as_deref() != Some(name) => {
                runtime.name = Some(name.to_owned());
                true
            }
            _ => false,
        }
    }

    /// Moves all times by `by`, because the clock of this machine was set. No time is moved past `now`.
    pub fn shift_clock(&mut self, by: SignedDuration, now: Timestamp) {
        let shift = |at: &mut Timestamp| *at = at.checked_add(by).unwrap_or(now).min(now);
        let of_servers = self.servers.values_mut().flat_map(|server| {
            let outage = server.outage.as_mut().map(|outage| &mut outage.since);
            outage.into_iter().chain(server.panes.values_mut().flat_map(Pane::times_mut))
        });
        of_servers.chain(self.target_outages.values_mut().map(|outage| &mut outage.since)).for_each(shift);
    }

    /// Restores a server from the store at startup. The next listing corrects the restored data.
    pub fn restore(&mut self, key: ServerKey, server: Server) {
        self.servers.insert(key, server);
    }
}
