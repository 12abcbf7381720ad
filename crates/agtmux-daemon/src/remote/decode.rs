//! Converts evidence from other hosts to the types of this daemon. A host cannot choose which target it is. Its texts are
//! shortened and redacted before they are kept.

use std::collections::BTreeMap;

use agtmux_api::host_protocol::{
    AgentEvidence, EvidenceBatch, HostEvidence, HostObservation, HostOutage, HostPaneProcess, HostPaneRow, HostProcess,
    HostServer,
};
use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::{Observation, RuleRef, Source};
use agtmux_core::fleet::{
    DetectedAgent, ForegroundProcess, OutageCode, PaneExitStatus, PaneKey, PaneProcess, PaneRow, TopologyUpdate,
};
use agtmux_core::ids::{AgentType, Generation, ProcessRef, ServerKey, ServerName, TargetName};
use agtmux_core::ledger::{Ledger, LedgerRecord, TurnContradictions};
use agtmux_core::ordering::OrderKey;
use agtmux_core::redact;
use agtmux_core::refs::is_agent_name;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::value::{Error, StrDeserializer};

use super::encode::ASSERTIONS;

/// Longer texts are truncated: they are shown in full nowhere.
const MAX_TEXT_LEN: usize = 4096;
/// Lower than `MAX_TEXT_LEN`: a listing may hold thousands of names.
const MAX_NAME_LEN: usize = 1024;
const MAX_LABEL_LEN: usize = 256;
const MAX_OPTIONS: usize = 32;

/// One batch of evidence from a remote host.
#[derive(Debug)]
pub(crate) struct RemoteBatch {
    pub(crate) target: TargetName,
    /// Whether the batch is complete: servers not in it do not exist.
    pub(crate) full: bool,
    pub(crate) updates: Vec<RemoteUpdate>,
}

/// One update from a remote host.
#[derive(Debug)]
pub(crate) enum RemoteUpdate {
    Topology(TopologyUpdate),
    Agent(Box<RemoteAgentUpdate>),
}

/// The evidence about one agent of a remote host.
#[derive(Debug)]
pub(crate) struct RemoteAgentUpdate {
    pub(crate) pane: PaneKey,
    pub(crate) generation: Generation,
    pub(crate) process: ProcessRef,
    /// The runtime's id on the host.
    pub(crate) runtime_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) ledger: Ledger,
}

/// Converts the evidence of one host.
pub(super) struct EvidenceDecoder {
    target: TargetName,
    /// How far the local clock is ahead of the host's clock.
    clock_offset: SignedDuration,
    now: Timestamp,
    /// Pieces of evidence that this version does not know.
    skipped: usize,
}

impl EvidenceDecoder {
    pub(super) fn new(target: TargetName, clock_offset: SignedDuration, now: Timestamp) -> Self {
        Self { target, clock_offset, now, skipped: 0 }
    }

    pub(super) fn batch(mut self, batch: EvidenceBatch) -> RemoteBatch {
        let updates = batch.evidence.into_iter().filter_map(|evidence| self.update(evidence)).collect();
        if self.skipped > 0 {
            tracing::info!(target = %self.target, skipped = self.skipped, "a newer host sent unknown kinds of evidence");
        }
        RemoteBatch { target: self.target, full: batch.full, updates }
    }

    fn update(&mut self, evidence: HostEvidence) -> Option<RemoteUpdate> {
        let update = match evidence {
            HostEvidence::Agent(evidence) => return self.agent(*evidence).map(Box::new).map(RemoteUpdate::Agent),
            HostEvidence::Panes { server, rows } => {
                let (server, generation) = self.server(server)?;
                TopologyUpdate::Listed { server, generation, rows: rows.into_iter().map(pane_row).collect() }
            }
            HostEvidence::ChangedPanes { server, rows } => {
                let (server, generation) = self.server(server)?;
                TopologyUpdate::Reread { server, generation, rows: rows.into_iter().map(pane_row).collect() }
            }
            HostEvidence::Processes { server, panes } => {
                let (server, generation) = self.server(server)?;
                TopologyUpdate::Processes { server, generation, panes: panes.into_iter().map(pane_process).collect() }
            }
            HostEvidence::ServerGone { server } => TopologyUpdate::ServerGone { server: self.server_key(server)? },
            HostEvidence::ServerOutage { server, outage: reported } => {
                let (server, generation) = self.server(server)?;
                let (code, message) = outage(reported, OutageCode::ServerNotResponding);
                TopologyUpdate::ServerOutage { server, generation, code, message }
            }
            HostEvidence::HostOutage { outage: reported } => {
                let outage = reported.map(|reported| outage(reported, OutageCode::ListingFailed));
                TopologyUpdate::TargetOutage { target: self.target.clone(), outage }
            }
            HostEvidence::Unknown => {
                self.skipped += 1;
                return None;
            }
        };
        Some(RemoteUpdate::Topology(update))
    }

    fn server(&self, server: HostServer) -> Option<(ServerKey, Generation)> {
        let generation = Generation { pid: server.pid, start_time: server.start_time };
        Some((self.server_key(server.name)?, generation))
    }

    /// None for names that are too long.
    fn server_key(&self, name: String) -> Option<ServerKey> {
        let fits = name.len() <= MAX_NAME_LEN;
        fits.then(|| ServerKey { target: self.target.clone(), server: ServerName::new(name) })
    }

    fn agent(&mut self, evidence: AgentEvidence) -> Option<RemoteAgentUpdate> {
        let (server, generation) = self.server(evidence.server)?;
        let records: Vec<Option<LedgerRecord>> = evidence.observations.into_iter().map(record).collect();
        self.skipped += records.iter().filter(|record| record.is_none()).count();
        let refuted = TurnContradictions {
            last_running: by_source(evidence.last_running),
            last_resting: by_source(evidence.last_resting),
            last_cleared: by_source(evidence.last_cleared),
        };
        let mut ledger =
            Ledger::from_parts(records.into_iter().flatten(), by_source(evidence.unrecognized_since), refuted);
        ledger.shift_clock(self.clock_offset, self.now);
        Some(RemoteAgentUpdate {
            pane: PaneKey { server, pane: evidence.pane },
            generation,
            process: process_ref(evidence.process),
            runtime_id: Some(evidence.runtime_id).filter(|id| is_id(id)),
            name: evidence.name.filter(|name| is_agent_name(name)),
            agent_id: evidence.agent_id.filter(|id| is_id(id)),
            ledger,
        })
    }
}

/// An unknown code counts as `fallback`.
fn outage(outage: HostOutage, fallback: OutageCode) -> (OutageCode, String) {
    let code = OutageCode::deserialize(StrDeserializer::<Error>::new(&outage.code)).unwrap_or(fallback);
    (code, truncate(outage.message, MAX_TEXT_LEN))
}

fn pane_row(row: HostPaneRow) -> PaneRow {
    PaneRow {
        session: row.session,
        session_name: name(row.session_name),
        window: row.window,
        window_index: row.window_index,
        window_name: name(row.window_name),
        pane: row.pane,
        pane_index: row.pane_index,
        pid: row.pid,
        tty: name(row.tty),
        dead: row.dead.then_some(PaneExitStatus { status: row.exit_status, signal: row.exit_signal }),
        title: name(row.title),
    }
}

fn pane_process(process: HostPaneProcess) -> PaneProcess {
    let cwd = process.cwd.map(name);
    let agent = process.agent.filter(|agent| is_agent_name(&agent.agent_type)).map(|agent| DetectedAgent {
        agent_type: AgentType::new(agent.agent_type),
        process: process_ref(agent.process),
        suspended: agent.suspended,
    });
    PaneProcess {
        pane: process.pane,
        pane_pid: process.pane_pid,
        foreground: process.command.map(|command| ForegroundProcess { command: name(command), cwd }),
        agent,
    }
}

fn process_ref(process: HostProcess) -> ProcessRef {
    ProcessRef { pid: process.pid, start: process.start }
}

fn by_source(times: BTreeMap<String, Timestamp>) -> BTreeMap<Source, Timestamp> {
    times.into_iter().filter_map(|(source, at)| Some((source.parse().ok()?, at))).collect()
}

/// None for sources and assertions that this version does not know.
fn record(sent: HostObservation) -> Option<LedgerRecord> {
    let observation = Observation {
        source: sent.source.parse().ok()?,
        assertion: ASSERTIONS.iter().find(|(name, _)| *name == sent.assertion)?.1,
        conclusive: sent.conclusive,
        as_of: sent.as_of,
        settled: sent.settled,
        ttl: sent.valid_for_ms.map(SignedDuration::from_millis),
        order: OrderKey {
            source_seq: sent.source_seq,
            event_time: sent.event_time,
            ingested_at: sent.received_at,
            event_id: name(sent.event_id),
        },
        rule: RuleRef { name: name(sent.rule), version: sent.rule_version },
        excerpt: clean_text(sent.excerpt),
        tentative: sent.tentative,
        inferred_from_absence: sent.inferred_from_absence,
        no_turn_visible: sent.no_turn_visible,
        dialog: sent.dialog.map(|dialog| Box::new(clean_dialog(*dialog))),
    };
    Some(LedgerRecord { observation, recorded_at: sent.recorded_at, demoted: sent.demoted })
}

fn clean_dialog(mut dialog: Dialog) -> Dialog {
    dialog.question = clean_text(dialog.question);
    dialog.subject = dialog.subject.map(clean_text);
    dialog.options.truncate(MAX_OPTIONS);
    for option in &mut dialog.options {
        option.label = truncate(clean_text(std::mem::take(&mut option.label)), MAX_LABEL_LEN);
    }
    dialog.fingerprint = name(dialog.fingerprint);
    dialog
}

fn clean_text(text: String) -> String {
    redact::text(&truncate(text, MAX_TEXT_LEN)).into_owned()
}

fn name(text: String) -> String {
    truncate(text, MAX_NAME_LEN)
}

fn truncate(mut text: String, max_len: usize) -> String {
    text.truncate(text.floor_char_boundary(max_len));
    text
}

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
