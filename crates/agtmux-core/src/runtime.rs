//! Runtimes: the agent or task that currently runs in a pane, and its stable identity.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey};
use crate::state::{Confidence, ReasonCode, State};
use crate::wire_enum::wire_enum;

wire_enum!(
    /// What runs in a pane.
    RuntimeKind {
        Agent => "agent",
        /// The shell of a shared terminal. It has no state.
        Mirror => "mirror",
    }
);

/// The id of a runtime, derived from all fields of [`RuntimeIdentity`]. The id stays the same when the daemon restarts,
/// and two runtimes never have the same id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuntimeId(String);

impl RuntimeId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Wraps an id that was read from the store or received from a client.
    pub fn from_stored(id: String) -> Self {
        Self(id)
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// All fields that distinguish one runtime from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeIdentity<'a> {
    pub server: &'a ServerKey,
    pub generation: Generation,
    pub pane: PaneId,
    pub epoch: u32,
    pub process: ProcessRef,
    pub agent_type: &'a AgentType,
}

impl RuntimeIdentity<'_> {
    pub fn id(&self) -> RuntimeId {
        // Length prefixes keep the fields separate: names may contain any character.
        let Self { server: ServerKey { target, server }, pane, epoch, agent_type, .. } = self;
        let Generation { pid: server_pid, start_time } = self.generation;
        let ProcessRef { pid, start } = self.process;
        let name = format!(
            "{}:{target}|{}:{server}|{server_pid}.{start_time}|{pane}|{epoch}|{pid}.{start}|{agent_type}",
            target.as_str().len(),
            server.as_str().len(),
        );
        RuntimeId(Uuid::new_v5(&NAMESPACE, name.as_bytes()).simple().to_string())
    }
}

const NAMESPACE: Uuid = Uuid::from_u128(0x8d2f_6a1c_54b7_4e0e_9b43_0c6d_2a7e_51f9);

/// The state of one runtime, and the time when this state began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    pub state: State,
    pub reason: Option<ReasonCode>,
    pub confidence: Confidence,
    pub version: u64,
    pub since: Timestamp,
    /// When this version of the record was created.
    pub updated_at: Timestamp,
}

impl StateRecord {
    pub fn initial(reason: ReasonCode, now: Timestamp) -> Self {
        Self {
            state: State::Unknown,
            reason: Some(reason),
            confidence: Confidence::Low,
            version: 1,
            since: now,
            updated_at: now,
        }
    }
}

/// An agent or task that runs in a pane. Its state is not stored here but in the state resolver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    pub id: RuntimeId,
    pub agent_type: AgentType,
    /// The name that the user gave the agent, for example with `agtmux run --name`. For a task, the task's name.
    pub name: Option<String>,
    pub process: ProcessRef,
    pub suspended: bool,
    pub started_at: Timestamp,
    pub launch: LaunchOptions,
}

/// How an agent was started: the facts that `agtmux resume` needs to start the agent again in the same way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchOptions {
    /// Whether `agtmux run` started the agent.
    pub wrapped: bool,
    /// The arguments that `agtmux resume` passes to the agent again. They contain no prompt and no secret.
    pub arguments: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ServerName, TargetName};

    #[test]
    fn every_identity_field_changes_the_id() {
        let server = ServerKey { target: TargetName::local(), server: ServerName::new("default") };
        let claude = AgentType::new("claude");
        let base = RuntimeIdentity {
            server: &server,
            generation: Generation { pid: 1, start_time: 2 },
            pane: PaneId(0),
            epoch: 1,
            process: ProcessRef { pid: 10, start: 20 },
            agent_type: &claude,
        };
        assert_eq!(base.id(), base.clone().id());
        let other_generation = RuntimeIdentity { generation: Generation { pid: 1, start_time: 3 }, ..base.clone() };
        let other_epoch = RuntimeIdentity { epoch: 2, ..base.clone() };
        let reused_pid = RuntimeIdentity { process: ProcessRef { pid: 10, start: 21 }, ..base.clone() };
        for other in [other_generation, other_epoch, reused_pid] {
            assert_ne!(base.id(), other.id());
        }
    }
}
