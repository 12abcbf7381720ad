//! Applies evidence from remote hosts with the same engine and the same log as local evidence. A host cannot choose
//! which target it is, and its texts are shortened and redacted before they are kept.

use std::collections::BTreeSet;

use agtmux_api::collect::{AgentEvidence, EvidenceBatch, HostEvidence};
use agtmux_core::evidence::Observation;
use agtmux_core::fleet::{DetectedAgent, PaneKey, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_core::ledger::Ledger;
use agtmux_core::redact;
use agtmux_core::refs::is_agent_name;
use agtmux_core::resolver::ResolverInput;
use agtmux_core::runtime::RuntimeId;
use jiff::SignedDuration;

use super::{Engine, EngineHandle, EngineInput, EngineStep};

/// Longer texts are truncated: they are shown in full nowhere.
const MAX_TEXT_LEN: usize = 4096;
/// Lower than `MAX_TEXT_LEN`: a listing may hold thousands of names.
const MAX_NAME_LEN: usize = 1024;
const MAX_LABEL_LEN: usize = 256;
const MAX_OPTIONS: usize = 32;

/// An agent on another host: its runtime id there, and the ledger that the host sent.
#[derive(Debug)]
pub(super) struct RemoteAgent {
    pub(super) runtime_id: Option<String>,
    ledger: Ledger,
}

/// One batch of evidence from a remote host.
#[derive(Debug)]
pub(crate) struct RemoteBatch {
    pub(crate) target: TargetName,
    pub(crate) batch: EvidenceBatch,
    /// How far the local clock is ahead of the host's clock.
    pub(crate) clock_offset: SignedDuration,
}

impl EngineHandle {
    /// Returns when the batch is applied and stored.
    pub(crate) async fn receive_remote(&self, batch: RemoteBatch) {
        self.request(|done| EngineInput::RemoteBatch(Box::new(batch), done)).await;
    }

    /// The local runtime id of an agent on another host.
    pub(crate) async fn local_id(&self, target: TargetName, runtime_id: String) -> Option<RuntimeId> {
        self.request(|reply| EngineInput::LocalId(target, runtime_id, reply)).await.flatten()
    }
}

impl Engine {
    pub(super) fn apply_remote_batch(&mut self, batch: RemoteBatch, step: &mut EngineStep) {
        let RemoteBatch { target, batch, clock_offset } = batch;
        let mut reported_servers: BTreeSet<ServerName> = BTreeSet::new();
        if batch.full {
            self.truncated_targets.remove(&target);
        }
        for evidence in batch.evidence {
            match evidence {
                HostEvidence::Agent(evidence) => self.apply_remote_agent(&target, *evidence, clock_offset, step),
                evidence => {
                    reported_servers.extend(server_of(&evidence).cloned());
                    let Some(evidence) = self.limit_evidence(&target, evidence) else { continue };
                    if let Some(observation) = topology_update(&target, evidence) {
                        self.apply_topology(observation, step);
                    }
                }
            }
        }
        if batch.full {
            let gone = |key: &&ServerKey| key.target == target && !reported_servers.contains(&key.server);
            let gone: Vec<ServerKey> = self.fleet.servers().map(|(key, _)| key).filter(gone).cloned().collect();
            for server in gone {
                self.apply_topology(TopologyUpdate::ServerGone { server }, step);
            }
        }
        self.report_truncation(&target, step);
    }

    fn apply_remote_agent(
        &mut self,
        target: &TargetName,
        evidence: AgentEvidence,
        clock_offset: SignedDuration,
        step: &mut EngineStep,
    ) {
        let server = ServerKey { target: target.clone(), server: evidence.server };
        let same = self.fleet.server(&server).is_some_and(|server| server.generation == evidence.generation);
        let pane = PaneKey { server, pane: evidence.pane };
        let Some(runtime) = self.runtime_of(&pane, evidence.process).filter(|_| same) else { return };
        if let Some(name) = evidence.name.filter(|name| is_agent_name(name))
            && self.fleet.name_runtime(&pane, &runtime, &name)
        {
            step.mark_pane_changed(&self.fleet, &pane);
        }
        if let Some(agent_id) = evidence.agent_id.filter(|id| is_id(id))
            && self.states.agent_id(&runtime) != Some(&agent_id)
        {
            self.resolve(ResolverInput::AgentIdentified { runtime: runtime.clone(), agent_id }, None, step);
            step.mark_pane_changed(&self.fleet, &pane);
        }
        let mut ledger = evidence.ledger;
        ledger.shift_clock(clock_offset, step.now);
        ledger.observations_mut().for_each(clean_observation);
        let runtime_id = Some(evidence.runtime_id).filter(|id| is_id(id));
        self.remote_agents.insert(runtime.clone(), RemoteAgent { runtime_id, ledger });
        self.apply_remote_ledger(&runtime, step);
    }

    /// Applies the ledger that the agent's host sent, if the adapter is enabled. Returns whether there is one.
    pub(super) fn apply_remote_ledger(&mut self, runtime: &RuntimeId, step: &mut EngineStep) -> bool {
        let Some(remote) = self.remote_agents.get(runtime) else { return false };
        if self.is_adapter_enabled(runtime) && self.changes_ledger(runtime, &remote.ledger) {
            let (runtime, ledger) = (runtime.clone(), Box::new(remote.ledger.clone()));
            self.resolve(ResolverInput::LedgerReplaced { runtime, ledger }, None, step);
        }
        true
    }

    fn changes_ledger(&self, runtime: &RuntimeId, ledger: &Ledger) -> bool {
        let Some(current) = self.states.ledger(runtime) else { return false };
        let mut after = current.clone();
        after.replace_with(ledger.clone());
        after != *current
    }

    pub(super) fn local_id(&self, target: &TargetName, runtime_id: &str) -> Option<RuntimeId> {
        let is_on_target =
            |id: &RuntimeId| self.runtime_panes.get(id).is_some_and(|pane| pane.server.target == *target);
        let mut matching = self
            .remote_agents
            .iter()
            .filter(|(id, remote)| remote.runtime_id.as_deref() == Some(runtime_id) && is_on_target(id));
        matching.next().map(|(id, _)| id.clone())
    }
}

pub(super) fn server_of(evidence: &HostEvidence) -> Option<&ServerName> {
    match evidence {
        HostEvidence::Listed { server, .. }
        | HostEvidence::Reread { server, .. }
        | HostEvidence::Processes { server, .. }
        | HostEvidence::ServerOutage { server, .. } => Some(server),
        HostEvidence::ServerGone { .. } | HostEvidence::TargetOutage { .. } | HostEvidence::Agent(_) => None,
    }
}

/// None for evidence that is not about topology, and for server names that are too long.
fn topology_update(target: &TargetName, evidence: HostEvidence) -> Option<TopologyUpdate> {
    let key = |server: ServerName| ServerKey { target: target.clone(), server };
    if server_of(&evidence).is_some_and(|server| server.as_str().len() > MAX_NAME_LEN) {
        return None;
    }
    Some(match evidence {
        HostEvidence::Listed { server, generation, rows } => TopologyUpdate::Listed {
            server: key(server),
            generation,
            rows: rows.into_iter().map(truncate_row).collect(),
        },
        HostEvidence::Reread { server, generation, rows } => TopologyUpdate::Reread {
            server: key(server),
            generation,
            rows: rows.into_iter().map(truncate_row).collect(),
        },
        HostEvidence::Processes { server, generation, panes } => {
            let panes = panes.into_iter().map(clean_process).collect();
            TopologyUpdate::Processes { server: key(server), generation, panes }
        }
        HostEvidence::ServerGone { server } => TopologyUpdate::ServerGone { server: key(server) },
        HostEvidence::ServerOutage { server, generation, code, message } => {
            TopologyUpdate::ServerOutage { server: key(server), generation, code, message: truncate_text(message) }
        }
        HostEvidence::TargetOutage { outage } => {
            let outage = outage.map(|(code, message)| (code, truncate_text(message)));
            TopologyUpdate::TargetOutage { target: target.clone(), outage }
        }
        HostEvidence::Agent(_) => return None,
    })
}

fn truncate_row(row: PaneRow) -> PaneRow {
    PaneRow {
        session_name: truncate_name(row.session_name),
        window_name: truncate_name(row.window_name),
        title: truncate_name(row.title),
        tty: truncate_name(row.tty),
        ..row
    }
}

fn clean_process(mut process: PaneProcess) -> PaneProcess {
    if let Some(foreground) = &mut process.foreground {
        foreground.command = truncate_name(std::mem::take(&mut foreground.command));
        foreground.cwd = foreground.cwd.take().map(truncate_name);
    }
    let has_valid_type = |agent: &DetectedAgent| is_agent_name(agent.agent_type.as_str());
    process.agent = process.agent.filter(has_valid_type);
    process
}

fn clean_observation(observation: &mut Observation) {
    let clean_text = |text: &mut String| *text = redact::text(&truncate_text(std::mem::take(text))).into_owned();
    clean_text(&mut observation.excerpt);
    observation.rule.name = truncate_name(std::mem::take(&mut observation.rule.name));
    observation.order.event_id = truncate_name(std::mem::take(&mut observation.order.event_id));
    if let Some(dialog) = &mut observation.dialog {
        clean_text(&mut dialog.question);
        dialog.subject.iter_mut().for_each(clean_text);
        dialog.options.truncate(MAX_OPTIONS);
        for option in &mut dialog.options {
            clean_text(&mut option.label);
            option.label.truncate(option.label.floor_char_boundary(MAX_LABEL_LEN));
        }
        dialog.fingerprint = truncate_name(std::mem::take(&mut dialog.fingerprint));
    }
}

fn truncate_text(text: String) -> String {
    truncate(text, MAX_TEXT_LEN)
}

fn truncate_name(text: String) -> String {
    truncate(text, MAX_NAME_LEN)
}

fn truncate(mut text: String, max_len: usize) -> String {
    text.truncate(text.floor_char_boundary(max_len));
    text
}

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
