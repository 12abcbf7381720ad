//! What another host tells of its agents. It decides here as what is found out on this host does: by the same engine, into
//! the same log. The host cannot say of which target it is, and what it says is bounded and cleaned before it is kept.

use std::collections::BTreeSet;

use agtmux_api::collect::{Batch, Evidence, Known};
use agtmux_core::engine as states;
use agtmux_core::evidence::Statement;
use agtmux_core::fleet::{AgentSighting, Observation, PaneKey, PaneRow, ProcessSighting};
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_core::mind::Mind;
use agtmux_core::redact;
use agtmux_core::refs::is_name;
use agtmux_core::runtime::RuntimeId;
use jiff::SignedDuration;

use super::{Engine, EngineHandle, Input, Step};

/// Longer texts are cut: nobody reads them to the end.
const LONGEST_TEXT: usize = 4096;
/// There may be thousands of these.
const LONGEST_NAME: usize = 1024;
const LONGEST_LABEL: usize = 256;
const MOST_OPTIONS: usize = 32;

/// An agent of another host: what it is called there, and all that is known of it there.
#[derive(Debug)]
pub(super) struct FarAgent {
    pub(super) runtime_id: Option<String>,
    mind: Mind,
}

/// What came from a host.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) target: TargetName,
    pub(crate) batch: Batch,
    /// How much our clock is ahead of the one there.
    pub(crate) ahead: SignedDuration,
}

impl EngineHandle {
    /// Returns when it is applied and stored.
    pub(crate) async fn receive(&self, received: Received) {
        self.ask(|done| Input::Received(Box::new(received), done)).await;
    }

    /// What an agent of another host is called here.
    pub(crate) async fn near(&self, target: TargetName, runtime_id: String) -> Option<RuntimeId> {
        self.ask(|reply| Input::Near(target, runtime_id, reply)).await.flatten()
    }
}

impl Engine {
    pub(super) fn receive(&mut self, received: Received, step: &mut Step) {
        let Received { target, batch, ahead } = received;
        let mut told: BTreeSet<ServerName> = BTreeSet::new();
        if batch.full {
            self.overfull.remove(&target);
        }
        for evidence in batch.evidence {
            match evidence {
                Evidence::Known(known) => self.recall_far(&target, *known, ahead, step),
                evidence => {
                    told.extend(server_of(&evidence).cloned());
                    let Some(evidence) = self.fitting(&target, evidence) else { continue };
                    if let Some(observation) = observation(&target, evidence) {
                        self.observe(observation, step);
                    }
                }
            }
        }
        if batch.full {
            let gone = |key: &&ServerKey| key.target == target && !told.contains(&key.server);
            let gone: Vec<ServerKey> = self.fleet.servers().map(|(key, _)| key).filter(gone).cloned().collect();
            for server in gone {
                self.observe(Observation::ServerGone { server }, step);
            }
        }
        self.tell_overfull(&target, step);
    }

    fn recall_far(&mut self, target: &TargetName, known: Known, ahead: SignedDuration, step: &mut Step) {
        let server = ServerKey { target: target.clone(), server: known.server };
        let same = self.fleet.server(&server).is_some_and(|server| server.generation == known.generation);
        let pane = PaneKey { server, pane: known.pane };
        let Some(runtime) = self.runtime_of(&pane, known.process).filter(|_| same) else { return };
        if let Some(name) = known.name.filter(|name| is_name(name))
            && self.fleet.name_runtime(&pane, &runtime, &name)
        {
            step.touch(&self.fleet, &pane);
        }
        if let Some(agent_id) = known.agent_id.filter(|id| is_id(id))
            && self.states.agent_id(&runtime) != Some(&agent_id)
        {
            self.decide(states::Input::Named { runtime: runtime.clone(), agent_id }, None, step);
            step.touch(&self.fleet, &pane);
        }
        let mut mind = known.mind;
        mind.shift(ahead, step.now);
        mind.statements_mut().for_each(clean);
        let runtime_id = Some(known.runtime_id).filter(|id| is_id(id));
        self.far.insert(runtime.clone(), FarAgent { runtime_id, mind });
        self.believe_far(&runtime, step);
    }

    /// All that its host has told of an agent counts, if what is told of agents of its kind does. Says whether a host told anything.
    pub(super) fn believe_far(&mut self, runtime: &RuntimeId, step: &mut Step) -> bool {
        let Some(far) = self.far.get(runtime) else { return false };
        if self.listens_to(runtime) && self.is_other(runtime, &far.mind) {
            let (runtime, mind) = (runtime.clone(), Box::new(far.mind.clone()));
            self.decide(states::Input::Recalled { runtime, mind }, None, step);
        }
        true
    }

    fn is_other(&self, runtime: &RuntimeId, mind: &Mind) -> bool {
        let Some(current) = self.states.mind(runtime) else { return false };
        let mut after = current.clone();
        after.recall(mind.clone());
        after != *current
    }

    pub(super) fn near(&self, target: &TargetName, runtime_id: &str) -> Option<RuntimeId> {
        let lives_there = |id: &RuntimeId| self.homes.get(id).is_some_and(|home| home.server.target == *target);
        let mut fitting =
            self.far.iter().filter(|(id, far)| far.runtime_id.as_deref() == Some(runtime_id) && lives_there(id));
        fitting.next().map(|(id, _)| id.clone())
    }
}

pub(super) fn server_of(evidence: &Evidence) -> Option<&ServerName> {
    match evidence {
        Evidence::Listed { server, .. }
        | Evidence::Reread { server, .. }
        | Evidence::Processes { server, .. }
        | Evidence::ServerOutage { server, .. } => Some(server),
        Evidence::ServerGone { .. } | Evidence::TargetOutage { .. } | Evidence::Known(_) => None,
    }
}

/// None for what no host has.
fn observation(target: &TargetName, evidence: Evidence) -> Option<Observation> {
    let key = |server: ServerName| ServerKey { target: target.clone(), server };
    if server_of(&evidence).is_some_and(|server| server.as_str().len() > LONGEST_NAME) {
        return None;
    }
    Some(match evidence {
        Evidence::Listed { server, generation, rows } => {
            Observation::Listed { server: key(server), generation, rows: rows.into_iter().map(row).collect() }
        }
        Evidence::Reread { server, generation, rows } => {
            Observation::Reread { server: key(server), generation, rows: rows.into_iter().map(row).collect() }
        }
        Evidence::Processes { server, generation, panes } => {
            let panes = panes.into_iter().map(sighting).collect();
            Observation::Processes { server: key(server), generation, panes }
        }
        Evidence::ServerGone { server } => Observation::ServerGone { server: key(server) },
        Evidence::ServerOutage { server, generation, code, message } => {
            Observation::ServerOutage { server: key(server), generation, code, message: cut(message) }
        }
        Evidence::TargetOutage { outage } => {
            let outage = outage.map(|(code, message)| (code, cut(message)));
            Observation::TargetOutage { target: target.clone(), outage }
        }
        Evidence::Known(_) => return None,
    })
}

fn row(row: PaneRow) -> PaneRow {
    PaneRow {
        session_name: name(row.session_name),
        window_name: name(row.window_name),
        title: name(row.title),
        tty: name(row.tty),
        ..row
    }
}

fn sighting(mut sighting: ProcessSighting) -> ProcessSighting {
    if let Some(foreground) = &mut sighting.foreground {
        foreground.command = name(std::mem::take(&mut foreground.command));
        foreground.cwd = foreground.cwd.take().map(name);
    }
    let plain = |agent: &AgentSighting| is_name(agent.agent_type.as_str());
    sighting.agent = sighting.agent.filter(plain);
    sighting
}

fn clean(statement: &mut Statement) {
    let harmless = |text: &mut String| *text = redact::text(&cut(std::mem::take(text))).into_owned();
    harmless(&mut statement.excerpt);
    statement.rule.name = name(std::mem::take(&mut statement.rule.name));
    statement.order.event_id = name(std::mem::take(&mut statement.order.event_id));
    if let Some(dialog) = &mut statement.dialog {
        harmless(&mut dialog.question);
        dialog.subject.iter_mut().for_each(harmless);
        dialog.options.truncate(MOST_OPTIONS);
        for option in &mut dialog.options {
            harmless(&mut option.label);
            option.label.truncate(option.label.floor_char_boundary(LONGEST_LABEL));
        }
        dialog.fingerprint = name(std::mem::take(&mut dialog.fingerprint));
    }
}

fn cut(text: String) -> String {
    to_length(text, LONGEST_TEXT)
}

fn name(text: String) -> String {
    to_length(text, LONGEST_NAME)
}

fn to_length(mut text: String, longest: usize) -> String {
    text.truncate(text.floor_char_boundary(longest));
    text
}

fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
