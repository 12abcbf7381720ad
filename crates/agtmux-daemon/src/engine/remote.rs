//! What another host tells of its agents. It decides here as what is found out on this host does: by the same engine, into
//! the same log. The host cannot say of which target it is, and what it says is bounded and cleaned before it is kept.

use std::collections::BTreeSet;

use agtmux_api::collect::{AgentEvidence, EvidenceBatch, HostEvidence};
use agtmux_core::evidence::Observation;
use agtmux_core::fleet::{DetectedAgent, PaneKey, PaneProcess, PaneRow, TopologyUpdate};
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_core::ledger::Ledger;
use agtmux_core::redact;
use agtmux_core::refs::is_agent_name;
use agtmux_core::resolver as states;
use agtmux_core::runtime::RuntimeId;
use jiff::SignedDuration;

use super::{Engine, EngineHandle, EngineInput, EngineStep};

/// Longer texts are cut: nobody reads them to the end.
const MAX_TEXT_LEN: usize = 4096;
/// There may be thousands of these.
const MAX_NAME_LEN: usize = 1024;
const MAX_LABEL_LEN: usize = 256;
const MAX_OPTIONS: usize = 32;

/// An agent of another host: what it is called there, and all that is known of it there.
#[derive(Debug)]
pub(super) struct RemoteAgent {
    pub(super) runtime_id: Option<String>,
    ledger: Ledger,
}

/// What came from a host.
#[derive(Debug)]
pub(crate) struct RemoteBatch {
    pub(crate) target: TargetName,
    pub(crate) batch: EvidenceBatch,
    /// How much our clock is ahead of the one there.
    pub(crate) clock_offset: SignedDuration,
}

impl EngineHandle {
    /// Returns when it is applied and stored.
    pub(crate) async fn receive_remote(&self, received: RemoteBatch) {
        self.request(|done| EngineInput::RemoteBatch(Box::new(received), done)).await;
    }

    /// What an agent of another host is called here.
    pub(crate) async fn local_id(&self, target: TargetName, runtime_id: String) -> Option<RuntimeId> {
        self.request(|reply| EngineInput::LocalId(target, runtime_id, reply)).await.flatten()
    }
}

impl Engine {
    pub(super) fn apply_remote_batch(&mut self, received: RemoteBatch, step: &mut EngineStep) {
        let RemoteBatch { target, batch, clock_offset: ahead } = received;
        let mut told: BTreeSet<ServerName> = BTreeSet::new();
        if batch.full {
            self.truncated_targets.remove(&target);
        }
        for evidence in batch.evidence {
            match evidence {
                HostEvidence::Agent(known) => self.apply_remote_agent(&target, *known, ahead, step),
                evidence => {
                    told.extend(server_of(&evidence).cloned());
                    let Some(evidence) = self.limit_evidence(&target, evidence) else { continue };
                    if let Some(observation) = topology_update(&target, evidence) {
                        self.apply_topology(observation, step);
                    }
                }
            }
        }
        if batch.full {
            let gone = |key: &&ServerKey| key.target == target && !told.contains(&key.server);
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
        known: AgentEvidence,
        ahead: SignedDuration,
        step: &mut EngineStep,
    ) {
        let server = ServerKey { target: target.clone(), server: known.server };
        let same = self.fleet.server(&server).is_some_and(|server| server.generation == known.generation);
        let pane = PaneKey { server, pane: known.pane };
        let Some(runtime) = self.runtime_of(&pane, known.process).filter(|_| same) else { return };
        if let Some(name) = known.name.filter(|name| is_agent_name(name))
            && self.fleet.name_runtime(&pane, &runtime, &name)
        {
            step.mark_pane_changed(&self.fleet, &pane);
        }
        if let Some(agent_id) = known.agent_id.filter(|id| is_id(id))
            && self.states.agent_id(&runtime) != Some(&agent_id)
        {
            self.resolve(states::ResolverInput::AgentIdentified { runtime: runtime.clone(), agent_id }, None, step);
            step.mark_pane_changed(&self.fleet, &pane);
        }
        let mut mind = known.ledger;
        mind.shift_clock(ahead, step.now);
        mind.observations_mut().for_each(clean_observation);
        let runtime_id = Some(known.runtime_id).filter(|id| is_id(id));
        self.remote_agents.insert(runtime.clone(), RemoteAgent { runtime_id, ledger: mind });
        self.apply_remote_ledger(&runtime, step);
    }

    /// All that its host has told of an agent counts, if what is told of agents of its kind does. Says whether a host told anything.
    pub(super) fn apply_remote_ledger(&mut self, runtime: &RuntimeId, step: &mut EngineStep) -> bool {
        let Some(far) = self.remote_agents.get(runtime) else { return false };
        if self.is_adapter_enabled(runtime) && self.changes_ledger(runtime, &far.ledger) {
            let (runtime, mind) = (runtime.clone(), Box::new(far.ledger.clone()));
            self.resolve(states::ResolverInput::LedgerReplaced { runtime, ledger: mind }, None, step);
        }
        true
    }

    fn changes_ledger(&self, runtime: &RuntimeId, mind: &Ledger) -> bool {
        let Some(current) = self.states.ledger(runtime) else { return false };
        let mut after = current.clone();
        after.replace_with(mind.clone());
        after != *current
    }

    pub(super) fn local_id(&self, target: &TargetName, runtime_id: &str) -> Option<RuntimeId> {
        let lives_there = |id: &RuntimeId| self.runtime_panes.get(id).is_some_and(|home| home.server.target == *target);
        let mut fitting = self
            .remote_agents
            .iter()
            .filter(|(id, far)| far.runtime_id.as_deref() == Some(runtime_id) && lives_there(id));
        fitting.next().map(|(id, _)| id.clone())
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

/// None for what no host has.
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
            let panes = panes.into_iter().map(clean_sighting).collect();
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

fn clean_sighting(mut sighting: PaneProcess) -> PaneProcess {
    if let Some(foreground) = &mut sighting.foreground {
        foreground.command = truncate_name(std::mem::take(&mut foreground.command));
        foreground.cwd = foreground.cwd.take().map(truncate_name);
    }
    let plain = |agent: &DetectedAgent| is_agent_name(agent.agent_type.as_str());
    sighting.agent = sighting.agent.filter(plain);
    sighting
}

fn clean_observation(statement: &mut Observation) {
    let harmless = |text: &mut String| *text = redact::text(&truncate_text(std::mem::take(text))).into_owned();
    harmless(&mut statement.excerpt);
    statement.rule.name = truncate_name(std::mem::take(&mut statement.rule.name));
    statement.order.event_id = truncate_name(std::mem::take(&mut statement.order.event_id));
    if let Some(dialog) = &mut statement.dialog {
        harmless(&mut dialog.question);
        dialog.subject.iter_mut().for_each(harmless);
        dialog.options.truncate(MAX_OPTIONS);
        for option in &mut dialog.options {
            harmless(&mut option.label);
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

fn truncate(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
