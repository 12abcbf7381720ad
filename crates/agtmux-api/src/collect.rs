//! What goes between a hub and the agtmux of another host: lines of JSON over the standard streams of `agtmux collect`.
//!
//! Evidence goes one way, typed requests the other. There is nothing here by which a host could list what the hub knows,
//! or ask the hub for anything.

use agtmux_core::fleet::{OutageCode, PaneProcess, PaneRow};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerName};
use agtmux_core::ledger::Ledger;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::wire::{ActionGuards, AttachAction, KillAction, OutputAction, RespondAction, ResumeAction, SendAction};

/// Changes when a hub would misread an older host, or the other way round.
pub const COLLECT_VERSION: u32 = 1;

/// No line is longer. Who sends a longer one is not listened to any more.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Where the daemon gives out what `collect` passes on.
pub const EVIDENCE_PATH: &str = "/v1/evidence";

/// A host that has nothing to tell says so this often.
pub const HEARTBEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(3);

/// A line from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostLine {
    Hello(HostHello),
    Batch(EvidenceBatch),
    /// It is still there.
    #[serde(rename = "beat")]
    Heartbeat {
        /// What its clock shows.
        now: Timestamp,
    },
    Reply(HostReply),
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub collect: u32,
    pub version: String,
    /// What its clock shows.
    pub now: Timestamp,
    pub tmux_versions: Vec<String>,
}

/// What is new since the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceBatch {
    /// It is all there is: a server that is not in it is not there.
    pub full: bool,
    pub evidence: Vec<HostEvidence>,
}

/// What was found out there. A host cannot say of which target it is: the hub knows whom it has called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HostEvidence {
    Listed {
        server: ServerName,
        generation: Generation,
        rows: Vec<PaneRow>,
    },
    Reread {
        server: ServerName,
        generation: Generation,
        rows: Vec<PaneRow>,
    },
    Processes {
        server: ServerName,
        generation: Generation,
        panes: Vec<PaneProcess>,
    },
    ServerGone {
        server: ServerName,
    },
    ServerOutage {
        server: ServerName,
        generation: Generation,
        code: OutageCode,
        message: String,
    },
    TargetOutage {
        outage: Option<(OutageCode, String)>,
    },
    #[serde(rename = "known")]
    Agent(Box<AgentEvidence>),
}

/// All that is known of one agent there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvidence {
    pub server: ServerName,
    pub generation: Generation,
    pub pane: PaneId,
    pub process: ProcessRef,
    /// As it is called there.
    pub runtime_id: String,
    pub name: Option<String>,
    pub agent_id: Option<String>,
    #[serde(rename = "mind")]
    pub ledger: Ledger,
}

/// A line from the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubLine {
    Hello { collect: u32, version: String },
    Request { id: u64, ask: Box<HubRequest> },
}

/// What a hub may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HubRequest {
    Send(SendAction),
    Respond(RespondAction),
    Attach(AttachAction),
    ViewOutput(OutputAction),
    Kill(KillAction),
    Resume(ResumeAction),
}

impl HubRequest {
    /// Where the daemon takes it, and its body.
    pub fn endpoint(&self) -> (&'static str, serde_json::Result<Vec<u8>>) {
        match self {
            Self::Send(action) => ("/v1/actions/send", serde_json::to_vec(action)),
            Self::Respond(action) => ("/v1/actions/respond", serde_json::to_vec(action)),
            Self::Attach(action) => ("/v1/actions/attach", serde_json::to_vec(action)),
            Self::ViewOutput(action) => ("/v1/actions/view-output", serde_json::to_vec(action)),
            Self::Kill(action) => ("/v1/actions/kill", serde_json::to_vec(action)),
            Self::Resume(action) => ("/v1/actions/resume", serde_json::to_vec(action)),
        }
    }

    /// Under which conditions it is done, where it changes something.
    pub fn mutation_guards(&mut self) -> Option<&mut ActionGuards> {
        match self {
            Self::Send(action) => Some(&mut action.guards),
            Self::Respond(action) => Some(&mut action.guards),
            Self::Kill(action) => Some(&mut action.guards),
            Self::Resume(action) => Some(&mut action.guards),
            Self::Attach(_) | Self::ViewOutput(_) => None,
        }
    }
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReply {
    pub id: u64,
    #[serde(rename = "answer")]
    pub outcome: ReplyOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOutcome {
    /// An outcome as the path of the action gives it.
    Done(Value),
    Refused(ApiError),
    /// The daemon there did not answer: whether it was done is not known.
    Lost(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_back() {
        let hello = HubLine::Hello { collect: COLLECT_VERSION, version: "1".into() };
        let request = HubLine::Request { id: 7, ask: Box::new(HubRequest::Attach(AttachAction::default())) };
        for line in [hello, request] {
            let json = serde_json::to_string(&line).expect("writes");
            assert_eq!(serde_json::from_str::<HubLine>(&json).expect("reads"), line);
        }
        let batch = EvidenceBatch {
            full: true,
            evidence: vec![HostEvidence::ServerGone { server: ServerName::new("default") }],
        };
        let json = serde_json::to_string(&HostLine::Batch(batch.clone())).expect("writes");
        assert_eq!(serde_json::from_str::<HostLine>(&json).expect("reads"), HostLine::Batch(batch));
    }

    #[test]
    fn a_host_can_ask_for_nothing() {
        for line in [r#"{"type":"request","id":1,"ask":{"kill":{"ref":"%0"}}}"#, r#"{"type":"list"}"#, "{}", "[]"] {
            assert!(serde_json::from_str::<HostLine>(line).is_err(), "{line}");
        }
    }
}
