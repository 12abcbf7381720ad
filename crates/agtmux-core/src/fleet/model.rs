use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::apply::{DetectedAgent, PaneProcess, PaneRow};
use crate::ids::{Generation, PaneId, ProcessRef, ServerKey, SessionId, TargetName, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// Everything that is watched.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Fleet {
    pub(super) servers: BTreeMap<ServerKey, Server>,
    pub(super) target_outages: BTreeMap<TargetName, Outage>,
    /// Panes in which a task was started, also where the pane itself has not been listed since.
    pub(super) tasks: BTreeMap<PaneKey, (Generation, PaneTask)>,
}

/// What is known of the task in a pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneTask {
    pub name: String,
    /// The pane's first process, by which one run is told from the next.
    pub process: ProcessRef,
    pub status: PaneTaskStatus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaneTaskStatus {
    Running,
    /// It waits at this prompt.
    WaitingInput(String),
    Ended {
        success: bool,
    },
}

/// One tmux server in its current generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub generation: Generation,
    pub outage: Option<Outage>,
    pub panes: BTreeMap<PaneId, Pane>,
}

/// A pane, on whichever server generation is current. Guards pair it with the generation and epoch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaneKey {
    pub server: ServerKey,
    pub pane: PaneId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// Counts the lives of this pane: respawning keeps the id and changes the process.
    pub epoch: u32,
    pub pid: u32,
    pub tty: String,
    pub window: WindowId,
    pub window_name: String,
    pub pane_index: u32,
    pub title: String,
    pub dead: Option<PaneExitStatus>,
    /// A linked window or a grouped session shows the same pane in several places.
    pub placements: BTreeSet<Placement>,
    pub foreground: Option<ForegroundProcess>,
    pub runtime: Option<Runtime>,
    pub updated_at: Timestamp,
}

/// One place where a pane can be seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    pub session: SessionId,
    pub session_name: String,
    pub window_index: u32,
}

/// How the process of a pane that was kept open ended. Both are empty for a moment after the death.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneExitStatus {
    pub status: Option<i32>,
    pub signal: Option<i32>,
}

/// What has the terminal now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForegroundProcess {
    pub command: String,
    pub cwd: Option<String>,
}

/// A server or a target that does not answer. Its panes are kept: an outage is not emptiness.
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
    /// No `tmux` on the PATH.
    TmuxNotInstalled,
    /// The server's tmux is older than we can speak to.
    TmuxTooOld,
    /// The server is there and does not answer.
    ServerNotResponding,
    /// The server answered with something that is no listing.
    ListingFailed,
    /// There is more than is kept of one host: the rest is left out.
    ListingCut,
    /// The host that it runs on is out of reach.
    TargetUnreachable,
}

impl Pane {
    /// The lines of a listing that would make this pane: one for each place where it is shown.
    pub fn rows(&self, pane: PaneId) -> impl Iterator<Item = PaneRow> {
        self.placements.iter().map(move |place| PaneRow {
            session: place.session,
            session_name: place.session_name.clone(),
            window: self.window,
            window_index: place.window_index,
            window_name: self.window_name.clone(),
            pane,
            pane_index: self.pane_index,
            pid: self.pid,
            tty: self.tty.clone(),
            dead: self.dead,
            title: self.title.clone(),
        })
    }

    /// What was seen of its processes.
    pub fn pane_process(&self, pane: PaneId) -> PaneProcess {
        let agent = self.runtime.as_ref().map(|runtime| DetectedAgent {
            agent_type: runtime.agent_type.clone(),
            process: runtime.process,
            suspended: runtime.suspended,
        });
        PaneProcess { pane, pane_pid: self.pid, foreground: self.foreground.clone(), agent }
    }
}

impl Fleet {
    pub fn servers(&self) -> impl Iterator<Item = (&ServerKey, &Server)> {
        self.servers.iter()
    }

    pub fn server(&self, key: &ServerKey) -> Option<&Server> {
        self.servers.get(key)
    }

    pub fn pane(&self, key: &PaneKey) -> Option<&Pane> {
        self.servers.get(&key.server)?.panes.get(&key.pane)
    }

    /// The task in this pane, if it is what lives there.
    pub fn task(&self, key: &PaneKey) -> Option<(&RuntimeId, &PaneTask)> {
        let runtime = self.pane(key)?.runtime.as_ref().filter(|runtime| runtime.agent_type.is_task())?;
        let (_, task) = self.tasks.get(key).filter(|(_, task)| task.process == runtime.process)?;
        Some((&runtime.id, task))
    }

    pub fn target_outages(&self) -> impl Iterator<Item = (&TargetName, &Outage)> {
        self.target_outages.iter()
    }

    /// Gives whoever lives in this pane a name, if it is that one. Says whether it is a new one.
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

    /// Puts back what the store remembers of a server, before anything is observed. The next listing decides what of
    /// it is still true.
    pub fn restore(&mut self, key: ServerKey, server: Server) {
        self.servers.insert(key, server);
    }
}
