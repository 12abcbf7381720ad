//! The protocol between a hub and the agtmux of another host: JSON lines over stdin and stdout of `agtmux collect`.
//!
//! The host sends evidence, the hub sends typed requests. A host cannot send requests to the hub or read its data.

use agtmux_core::fleet::{OutageCode, PaneProcess, PaneRow};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerName};
use agtmux_core::ledger::Ledger;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ApiError;
use crate::wire::{ActionGuards, AttachAction, KillAction, OutputAction, RespondAction, ResumeAction, SendAction};

/// The protocol version. It changes when a hub and a host of different versions are incompatible.
pub const COLLECT_VERSION: u32 = 1;

/// The maximum length of a line. A peer that sends a longer one is disconnected.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The path of the daemon's evidence stream, which `collect` forwards.
pub const EVIDENCE_PATH: &str = "/v1/evidence";

/// How often an idle host sends a heartbeat.
pub const HEARTBEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(3);

/// A line from the host to the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostLine {
    Hello(HostHello),
    Batch(EvidenceBatch),
    /// The host is still connected.
    #[serde(rename = "beat")]
    Heartbeat {
        /// The host's clock.
        now: Timestamp,
    },
    Reply(HostReply),
}

/// The first line from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    pub collect: u32,
    pub version: String,
    /// The host's clock.
    pub now: Timestamp,
    pub tmux_versions: Vec<String>,
}

/// Evidence that is new since the last batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceBatch {
    /// Whether the batch is complete: servers not in it do not exist.
    pub full: bool,
    pub evidence: Vec<HostEvidence>,
}

/// One piece of evidence from a host. It does not name its target: the hub knows which host it connected to.
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

/// The evidence about one agent on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEvidence {
    pub server: ServerName,
    pub generation: Generation,
    pub pane: PaneId,
    pub process: ProcessRef,
    /// The runtime's id on the host.
    pub runtime_id: String,
    pub name: Option<String>,
    pub agent_id: Option<String>,
    #[serde(rename = "mind")]
    pub ledger: Ledger,
}

/// A line from the hub to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubLine {
    Hello { collect: u32, version: String },
    Request { id: u64, ask: Box<HubRequest> },
}

/// An action that a hub may request.
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
    /// Returns the daemon's path for this action and the request body.
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

    /// Returns the guards of an action that changes something.
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

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReply {
    pub id: u64,
    #[serde(rename = "answer")]
    pub outcome: ReplyOutcome,
}

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOutcome {
    /// The response body of the action's path.
    Done(Value),
    Refused(ApiError),
    /// The host's daemon did not answer, so whether the action was carried out is unknown.
    Lost(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_json_round_trip() {
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
    fn a_host_cannot_send_requests() {
        for line in [r#"{"type":"request","id":1,"ask":{"kill":{"ref":"%0"}}}"#, r#"{"type":"list"}"#, "{}", "[]"] {
            assert!(serde_json::from_str::<HostLine>(line).is_err(), "{line}");
        }
    }
}
