//! The protocol between a hub and the agtmux of another host: JSON lines over stdin and stdout of `agtmux collect`.
//!
//! The hub sends a hello with the protocol versions that it speaks, then the host sends its own hello. Both use the
//! highest common version. Without a common version, they disconnect. After the hellos, the host sends evidence and the
//! hub sends typed requests. A host cannot send requests to the hub or read the hub's data. The hub ignores fields and
//! kinds of evidence that it does not know, so that a newer host can send more. A host refuses requests with unknown
//! fields, because such a field may be a guard. The schemas `host-line` and `hub-line` describe the lines.

mod evidence;
mod request;
mod versions;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use evidence::{
    AgentEvidence, EvidenceBatch, HostAgent, HostEvidence, HostObservation, HostOutage, HostPane, HostPlacement,
    HostProcess, HostServer, HostSubmission,
};
pub use request::{HostReply, HubRequest, NumberedRequest, ReplyOutcome};
pub use versions::{PROTOCOL_VERSIONS, ProtocolVersions, VersionGap};

/// The maximum length of a line. A peer that sends a longer line is disconnected.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// The HTTP path of the daemon's evidence stream. `agtmux collect` forwards this stream to the hub.
pub const EVIDENCE_PATH: &str = "/v1/evidence";

/// How often a host with no new evidence sends a heartbeat.
pub const HEARTBEAT_INTERVAL: std::time::Duration = std::time::Duration::from_secs(3);

/// A line from the host to the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HostLine {
    Hello(HostHello),
    Batch(EvidenceBatch),
    /// Shows the hub that the host is still connected.
    Heartbeat {
        /// The time by the host's clock.
        now: Timestamp,
    },
    Reply(HostReply),
}

/// The first line from the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostHello {
    #[serde(flatten)]
    pub protocol: ProtocolVersions,
    /// The version of agtmux on the host.
    pub version: String,
    /// The time by the host's clock.
    pub now: Timestamp,
    pub tmux_versions: Vec<String>,
}

/// A line from the hub to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum HubLine {
    Hello {
        #[serde(flatten)]
        protocol: ProtocolVersions,
        /// The version of agtmux on the hub.
        version: String,
    },
    Request(NumberedRequest),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::AttachAction;

    #[test]
    fn lines_survive_a_json_round_trip() {
        let hello = HubLine::Hello { protocol: PROTOCOL_VERSIONS, version: "1".into() };
        let action = Box::new(HubRequest::Attach(AttachAction::default()));
        let request = HubLine::Request(NumberedRequest { id: 7, action });
        for line in [hello, request] {
            let json = serde_json::to_string(&line).expect("writes");
            assert_eq!(serde_json::from_str::<HubLine>(&json).expect("reads"), line);
        }
        let batch =
            EvidenceBatch { full: true, evidence: vec![HostEvidence::ServerGone { server: "default".to_owned() }] };
        let json = serde_json::to_string(&HostLine::Batch(batch.clone())).expect("writes");
        assert_eq!(serde_json::from_str::<HostLine>(&json).expect("reads"), HostLine::Batch(batch));
    }

    #[test]
    fn a_host_cannot_send_requests() {
        for line in [r#"{"type":"request","id":1,"action":{"kill":{"ref":"%0"}}}"#, r#"{"type":"list"}"#, "{}", "[]"] {
            assert!(serde_json::from_str::<HostLine>(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_request_with_an_unknown_field_is_invalid() {
        let pane = r#"{"server_pid":1,"server_start":2,"pane_pid":3}"#;
        let read = |line: &str| serde_json::from_str::<HubLine>(line);
        let line = format!(r#"{{"type":"request","id":1,"action":{{"kill":{{"ref":"%0","if_pane":{pane}}}}}}}"#);
        assert!(read(&line).is_ok());
        for (known, with_unknown) in
            [("\"id\":1", "\"id\":1,\"if_host\":1"), ("\"pane_pid\":3", "\"pane_pid\":3,\"new\":4")]
        {
            assert!(read(&line.replace(known, with_unknown)).is_err(), "{with_unknown}");
        }
    }

    #[test]
    fn unknown_fields_and_kinds_of_evidence_are_ignored() {
        let line = r#"{"type":"batch","full":false,"sent":1,"evidence":[
            {"kind":"weather","rain":[true]},{"kind":"server_gone","server":"default","why":"exit"}]}"#;
        let gone = HostEvidence::ServerGone { server: "default".into() };
        let batch = EvidenceBatch { full: false, evidence: vec![HostEvidence::Unknown, gone] };
        assert_eq!(serde_json::from_str::<HostLine>(line).expect("reads"), HostLine::Batch(batch));
    }
}
