//! What lives in a pane now, and the identity that keeps it apart from what lived there before.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{AgentType, Generation, PaneId, ProcessRef, ServerKey};
use crate::state::{Confidence, ReasonCode, State};

/// Made from everything that tells two runtimes apart, so that the same runtime has the same id after a restart of
/// the daemon, and two never share one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RuntimeId(String);

impl RuntimeId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// From a place that has already been given one, such as the store.
    pub fn from_stored(id: String) -> Self {
        Self(id)
    }
}

impl fmt::Display for RuntimeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that makes a runtime this one.
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
        // Lengths keep two fields from running into each other; names may hold anything.
        let name = format!(
            "{}:{}|{}:{}|{}.{}|{}|{}|{}.{}|{}",
            self.server.target.as_str().len(),
            self.server.target,
            self.server.server.as_str().len(),
            self.server.server,
            self.generation.pid,
            self.generation.start_time,
            self.pane,
            self.epoch,
            self.process.pid,
            self.process.start,
            self.agent_type,
        );
        RuntimeId(Uuid::new_v5(&NAMESPACE, name.as_bytes()).simple().to_string())
    }
}

const NAMESPACE: Uuid = Uuid::from_u128(0x8d2f_6a1c_54b7_4e0e_9b43_0c6d_2a7e_51f9);

/// The state of one runtime and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    pub state: State,
    pub reason: Option<ReasonCode>,
    pub confidence: Confidence,
    pub version: u64,
    pub since: Timestamp,
    /// When the version was made.
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

/// An agent process living in a pane. What it is doing is the state engine's to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    pub id: RuntimeId,
    pub agent_type: AgentType,
    /// What whoever started it calls it.
    pub name: Option<String>,
    pub process: ProcessRef,
    pub suspended: bool,
    pub started_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ServerName, TargetName};

    #[test]
    fn identity_decides_the_id() {
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
