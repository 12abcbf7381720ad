//! Converts evidence of this host to the protocol.

use std::collections::BTreeMap;

use agtmux_api::host_protocol::{
    AgentEvidence, HostAgent, HostObservation, HostOutage, HostPane, HostPlacement, HostProcess, HostServer,
    HostSubmission,
};
use agtmux_core::evidence::{Assertion, DialogKind, Source};
use agtmux_core::fleet::{Outage, Pane, Placement};
use agtmux_core::ids::{Generation, PaneId, ProcessRef, ServerName};
use agtmux_core::ledger::{Ledger, LedgerRecord};
use agtmux_core::runtime::Runtime;
use jiff::Timestamp;

use crate::submissions::Submission;

/// The name of each assertion in the protocol.
pub(super) const ASSERTIONS: [(&str, Assertion); 7] = [
    ("running", Assertion::Running),
    ("completed", Assertion::Completed),
    ("idle", Assertion::Idle),
    ("failed", Assertion::Failed),
    ("approval_dialog", Assertion::DialogOpen(DialogKind::Approval)),
    ("input_dialog", Assertion::DialogOpen(DialogKind::Input)),
    ("no_dialog", Assertion::NoDialog),
];

pub(super) fn server(name: &ServerName, generation: Generation) -> HostServer {
    HostServer { name: name.to_string(), pid: generation.pid, start_time: generation.start_time }
}

pub(super) fn outage(outage: &Outage) -> HostOutage {
    let code = serde_json::to_value(outage.code).ok().and_then(|code| Some(code.as_str()?.to_owned()));
    HostOutage { code: code.unwrap_or_default(), message: outage.message.clone() }
}

pub(super) fn pane(id: PaneId, pane: &Pane) -> HostPane {
    let placement = |placement: &Placement| HostPlacement {
        session: placement.session,
        session_name: placement.session_name.clone(),
        window_index: placement.window_index,
    };
    let agent = |runtime: &Runtime| HostAgent {
        agent_type: runtime.agent_type.as_str().to_owned(),
        process: host_process(runtime.process),
        suspended: runtime.suspended,
    };
    HostPane {
        pane: id,
        pane_index: pane.pane_index,
        window: pane.window,
        window_name: pane.window_name.clone(),
        placements: pane.placements.iter().map(placement).collect(),
        pid: pane.pid,
        tty: pane.tty.clone(),
        title: pane.title.clone(),
        dead: pane.dead.is_some(),
        exit_status: pane.dead.and_then(|exit| exit.status),
        exit_signal: pane.dead.and_then(|exit| exit.signal),
        command: pane.foreground.as_ref().map(|job| job.command.clone()),
        cwd: pane.foreground.as_ref().and_then(|job| job.cwd.clone()),
        agent: pane.runtime.as_ref().map(agent),
    }
}

fn host_process(process: ProcessRef) -> HostProcess {
    HostProcess { pid: process.pid, start: process.start }
}

pub(super) fn agent(
    server: HostServer,
    pane: PaneId,
    runtime: &Runtime,
    agent_id: Option<&str>,
    ledger: &Ledger,
    seen: bool,
) -> AgentEvidence {
    let mut observations: Vec<HostObservation> = ledger.records().map(observation).collect();
    observations.dedup();
    let refuted = ledger.contradictions();
    AgentEvidence {
        server,
        pane,
        process: host_process(runtime.process),
        runtime_id: runtime.id.to_string(),
        name: runtime.name.clone(),
        agent_id: agent_id.map(str::to_owned),
        observations,
        unrecognized_since: by_name(ledger.unrecognized_since()),
        last_running: by_name(&refuted.last_running),
        last_resting: by_name(&refuted.last_resting),
        last_cleared: by_name(&refuted.last_cleared),
        last_asked: by_name(&refuted.last_asked),
        seen,
        submission: None,
    }
}

pub(super) fn submission(submission: &Submission) -> HostSubmission {
    HostSubmission { at: submission.at, number: submission.number, pending: submission.is_pending() }
}

fn by_name(times: &BTreeMap<Source, Timestamp>) -> BTreeMap<String, Timestamp> {
    times.iter().map(|(source, at)| (source.to_string(), *at)).collect()
}

fn observation(record: &LedgerRecord) -> HostObservation {
    let observation = &record.observation;
    let name = ASSERTIONS.iter().find(|(_, assertion)| *assertion == observation.assertion).map(|(name, _)| *name);
    HostObservation {
        source: observation.source.to_string(),
        assertion: name.unwrap_or_default().to_owned(),
        conclusive: observation.conclusive,
        as_of: observation.as_of,
        settled: observation.settled,
        valid_for_ms: observation.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)),
        source_seq: observation.order.source_seq,
        event_time: observation.order.event_time,
        received_at: observation.order.ingested_at,
        event_id: observation.order.event_id.clone(),
        rule: observation.rule.name.clone(),
        rule_version: observation.rule.version,
        excerpt: observation.excerpt.clone(),
        tentative: observation.tentative,
        inferred_from_absence: observation.inferred_from_absence,
        no_turn_visible: observation.no_turn_visible,
        counts_from: observation.counts_from,
        dialog: observation.dialog.clone(),
        asked: observation.asked.clone(),
        recorded_at: record.recorded_at,
        demoted: record.demoted,
    }
}
