//! Converts evidence from other hosts to the types of this daemon. The hub, not the host, sets the target. Texts of the
//! host are shortened and redacted before they are kept.

use std::collections::BTreeMap;

use agtmux_api::host_protocol::{
    AgentEvidence, EvidenceBatch, HostEvidence, HostObservation, HostOutage, HostPane, HostPlacement, HostProcess,
    HostServer, HostSubmission,
};
use agtmux_core::asked_command::AskedCommand;
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
use super::limits::{MAX_EXTRA_ROWS, MAX_PANES};
use crate::submissions::ReportedSubmission;

/// Longer texts are truncated, because no view shows them in full.
const MAX_TEXT_LEN: usize = 4096;
/// The limit for names. Lower than `MAX_TEXT_LEN`, because a listing may contain thousands of names.
const MAX_NAME_LEN: usize = 1024;
/// The limit for the subject of a dialog. It is large, because a user must see the whole subject before approving.
const MAX_SUBJECT_LEN: usize = 80 << 10;
const MAX_LABEL_LEN: usize = 256;
const MAX_OPTIONS: usize = 32;

/// One batch of evidence from a remote host.
#[derive(Debug)]
pub(crate) struct RemoteBatch {
    pub(crate) target: TargetName,
    /// Whether the batch describes the whole host. If it does, a server that is not in the batch does not exist.
    pub(crate) full: bool,
    /// Whether the host sent more panes or rows than the limits allow.
    pub(crate) truncated: bool,
    /// Whether the host sends so much data that the hub reads from it more slowly.
    pub(crate) rate_limited: bool,
    pub(crate) updates: Vec<RemoteUpdate>,
}

/// A large batch is divided into parts of this many panes and agents. Between two parts, the engine applies local
/// inputs.
const CHUNK: usize = 256;

impl RemoteBatch {
    /// Divides a large batch. A full batch stays whole, because a server that is not in a full batch counts as gone.
    pub(crate) fn split(self) -> Vec<Self> {
        let Self { target, full, truncated, rate_limited, updates } = self;
        let batch = |updates| Self { target: target.clone(), full, truncated, rate_limited, updates };
        if full {
            return vec![batch(updates)];
        }
        let (mut batches, mut chunk, mut size) = (Vec::new(), Vec::new(), 0);
        for update in updates.into_iter().flat_map(RemoteUpdate::split) {
            size += update.size();
            chunk.push(update);
            if size >= CHUNK {
                batches.push(batch(std::mem::take(&mut chunk)));
                size = 0;
            }
        }
        if !chunk.is_empty() || batches.is_empty() {
            batches.push(batch(chunk));
        }
        batches
    }
}

/// One update from a remote host.
#[derive(Debug)]
pub(crate) enum RemoteUpdate {
    Topology(TopologyUpdate),
    Agent(Box<RemoteAgentUpdate>),
}

impl RemoteUpdate {
    fn split(self) -> Vec<Self> {
        match self {
            Self::Topology(TopologyUpdate::Reread { server, generation, rows }) => chunks(rows)
                .map(|rows| Self::Topology(TopologyUpdate::Reread { server: server.clone(), generation, rows }))
                .collect(),
            Self::Topology(TopologyUpdate::Processes { server, generation, panes }) => chunks(panes)
                .map(|panes| Self::Topology(TopologyUpdate::Processes { server: server.clone(), generation, panes }))
                .collect(),
            other => vec![other],
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Topology(TopologyUpdate::Listed { rows, .. } | TopologyUpdate::Reread { rows, .. }) => rows.len(),
            Self::Topology(TopologyUpdate::Processes { panes, .. }) => panes.len(),
            _ => 1,
        }
    }
}

fn chunks<T>(items: Vec<T>) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter();
    std::iter::from_fn(move || Some(items.by_ref().take(CHUNK).collect::<Vec<T>>()).filter(|chunk| !chunk.is_empty()))
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
    /// A person has visited the pane on the host since the last turn ended.
    pub(crate) seen: bool,
    /// The last text that the host's daemon submitted to the agent.
    pub(crate) submission: Option<ReportedSubmission>,
}

/// Converts the evidence of one host.
pub(super) struct EvidenceDecoder {
    target: TargetName,
    /// How far the local clock is ahead of the host's clock.
    clock_offset: SignedDuration,
    now: Timestamp,
    /// How many pieces of evidence were skipped, because this version does not know their kind.
    skipped: usize,
    panes: usize,
    extra_rows: usize,
    truncated: bool,
}

impl EvidenceDecoder {
    pub(super) fn new(target: TargetName, clock_offset: SignedDuration, now: Timestamp) -> Self {
        Self { target, clock_offset, now, skipped: 0, panes: 0, extra_rows: 0, truncated: false }
    }

    pub(super) fn batch(mut self, batch: EvidenceBatch) -> RemoteBatch {
        let mut updates = Vec::new();
        for evidence in batch.evidence {
            self.decode(evidence, &mut updates);
        }
        if self.skipped > 0 {
            tracing::info!(target = %self.target, skipped = self.skipped, "a newer host sent unknown kinds of evidence");
        }
        RemoteBatch { target: self.target, full: batch.full, truncated: self.truncated, rate_limited: false, updates }
    }

    /// Converts one piece of evidence and appends the result to `updates`. Skips evidence about a server whose name is
    /// too long.
    fn decode(&mut self, evidence: HostEvidence, updates: &mut Vec<RemoteUpdate>) {
        let update = match evidence {
            HostEvidence::Panes { complete: false, panes, .. } if panes.is_empty() => None,
            HostEvidence::Panes { server, complete, panes } => {
                let Some((server, generation)) = self.server(server) else { return };
                let (mut rows, mut processes) = (Vec::new(), Vec::new());
                for mut sent in panes {
                    self.limit_placements(&mut sent);
                    let (pane_rows, process) = pane(sent);
                    rows.extend(pane_rows);
                    processes.push(process);
                }
                updates.push(RemoteUpdate::Topology(match complete {
                    true => TopologyUpdate::Listed { server: server.clone(), generation, rows },
                    false => TopologyUpdate::Reread { server: server.clone(), generation, rows },
                }));
                Some(TopologyUpdate::Processes { server, generation, panes: processes })
            }
            HostEvidence::ServerGone { server } => {
                self.server_key(server).map(|server| TopologyUpdate::ServerGone { server })
            }
            HostEvidence::ServerOutage { server, outage: reported } => {
                let (code, message) = outage(reported, OutageCode::ServerNotResponding);
                let update = |(server, generation)| TopologyUpdate::ServerOutage { server, generation, code, message };
                self.server(server).map(update)
            }
            HostEvidence::HostOutage { outage: reported } => {
                let outage = reported.map(|reported| outage(reported, OutageCode::ListingFailed));
                Some(TopologyUpdate::TargetOutage { target: self.target.clone(), outage })
            }
            HostEvidence::Agent(evidence) => {
                updates.extend(self.agent(*evidence).map(|agent| RemoteUpdate::Agent(Box::new(agent))));
                None
            }
            HostEvidence::Unknown => {
                self.skipped += 1;
                None
            }
        };
        updates.extend(update.map(RemoteUpdate::Topology));
    }

    /// Limits how many rows the batch can expand to. A pane becomes one row per placement, and each row copies the
    /// texts of the pane, so a short message could become many long rows. Each pane keeps its first row, so that the
    /// extra rows of one pane cannot displace another pane.
    fn limit_placements(&mut self, pane: &mut HostPane) {
        let first = usize::from(self.panes < MAX_PANES);
        let room = first + MAX_EXTRA_ROWS - self.extra_rows;
        self.truncated |= pane.placements.len() > room;
        pane.placements.truncate(room);
        self.panes += first;
        self.extra_rows += pane.placements.len().saturating_sub(first);
    }

    fn server(&self, server: HostServer) -> Option<(ServerKey, Generation)> {
        let generation = Generation { pid: server.pid, start_time: server.start_time };
        Some((self.server_key(server.name)?, generation))
    }

    fn submission(&self, sent: &HostSubmission) -> ReportedSubmission {
        let at = sent.at.checked_add(self.clock_offset).unwrap_or(self.now).min(self.now);
        ReportedSubmission { at, number: sent.number, pending: sent.pending }
    }

    /// `None` if the name is too long.
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
            last_asked: by_source(evidence.last_asked),
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
            seen: evidence.seen,
            submission: evidence.submission.map(|sent| self.submission(&sent)),
        })
    }
}

/// The code and the message of an outage. If this version does not know the code, returns `fallback` instead.
fn outage(outage: HostOutage, fallback: OutageCode) -> (OutageCode, String) {
    let code = OutageCode::deserialize(StrDeserializer::<Error>::new(&outage.code)).unwrap_or(fallback);
    (code, truncate(outage.message, MAX_TEXT_LEN))
}

/// The rows of a pane, one per placement, and its processes.
fn pane(pane: HostPane) -> (Vec<PaneRow>, PaneProcess) {
    let (window_name, tty, title) = (name(pane.window_name), name(pane.tty), name(pane.title));
    let row = |placement: HostPlacement| PaneRow {
        session: placement.session,
        session_name: name(placement.session_name),
        window: pane.window,
        window_index: placement.window_index,
        window_name: window_name.clone(),
        pane: pane.pane,
        pane_index: pane.pane_index,
        pid: pane.pid,
        tty: tty.clone(),
        dead: pane.dead.then_some(PaneExitStatus { status: pane.exit_status, signal: pane.exit_signal }),
        title: title.clone(),
    };
    let rows = pane.placements.into_iter().map(row).collect();
    let cwd = pane.cwd.map(name);
    let foreground = pane.command.map(|command| ForegroundProcess { command: name(command), cwd });
    let agent = pane.agent.filter(|agent| is_agent_name(&agent.agent_type)).map(|agent| DetectedAgent {
        agent_type: AgentType::new(agent.agent_type),
        process: process_ref(agent.process),
        suspended: agent.suspended,
        launch: Default::default(),
    });
    (rows, PaneProcess { pane: pane.pane, pane_pid: pane.pid, foreground, agent })
}

fn process_ref(process: HostProcess) -> ProcessRef {
    ProcessRef { pid: process.pid, start: process.start }
}

fn by_source(times: BTreeMap<String, Timestamp>) -> BTreeMap<Source, Timestamp> {
    times.into_iter().filter_map(|(source, at)| Some((source.parse().ok()?, at))).collect()
}

/// `None` if this version does not know the source or the assertion.
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
        counts_from: sent.counts_from,
        dialog: sent.dialog.map(|dialog| Box::new(clean_dialog(*dialog))),
        asked: sent.asked.into_iter().take(MAX_OPTIONS).map(clean_asked).collect(),
    };
    Some(LedgerRecord { observation, recorded_at: sent.recorded_at, demoted: sent.demoted })
}

fn clean_dialog(mut dialog: Dialog) -> Dialog {
    dialog.question = truncate(dialog.question, MAX_TEXT_LEN);
    dialog.subject_truncated |= dialog.subject.as_ref().is_some_and(|subject| subject.len() > MAX_SUBJECT_LEN);
    dialog.subject = dialog.subject.map(|subject| truncate(subject, MAX_SUBJECT_LEN));
    dialog.options.truncate(MAX_OPTIONS);
    for option in &mut dialog.options {
        option.label = truncate(std::mem::take(&mut option.label), MAX_LABEL_LEN);
    }
    dialog.fingerprint = name(dialog.fingerprint);
    dialog.without_secrets()
}

/// A command that is too long is dropped, because a truncated command could be mistaken for the whole command.
fn clean_asked(asked: AskedCommand) -> AskedCommand {
    let redacted = |text: String| redact::text_with_code(&text).into_owned();
    let about = asked.about.into_iter().take(MAX_OPTIONS).map(|text| redacted(truncate(text, MAX_TEXT_LEN)));
    AskedCommand {
        command: asked.command.filter(|command| command.len() <= MAX_SUBJECT_LEN).map(redacted),
        about: about.collect(),
    }
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
