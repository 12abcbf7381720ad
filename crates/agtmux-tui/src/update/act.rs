//! Requests about the selected agents, other than answers.

use agtmux_api::wire::{ActionGuards, KillAction, KillSignal, OutputAction, ResumeAction, SeenAction, SendAction};

use super::{CLIENT_NAME, TuiEffect, preview};
use crate::editor::TextEditor;
use crate::keymap::TuiCommand;
use crate::model::{
    AgentKey, AgentTarget, ComposePurpose, ComposedText, MenuChoice, MenuItem, ReaderSubject, TextReader, TuiMenu,
    TuiModel, TuiNotice, TuiOverlay,
};

/// How many lines of the history the reader shows.
const OUTPUT_LINES: u32 = 2000;

pub(super) fn attach(model: &mut TuiModel) -> Vec<TuiEffect> {
    model.target().map(TuiEffect::Attach).into_iter().collect()
}

/// Opens the editor for a prompt, with the text that could not be sent before.
pub(super) fn compose(model: &mut TuiModel) {
    let agents = model.targets();
    let Some(first) = agents.first() else { return };
    if let Some(why) = agents.iter().find_map(|agent| why_no_prompt(model, &agent.key)) {
        return model.notice = Some(why);
    }
    let draft = model.drafts.get(&first.key).cloned().unwrap_or_default();
    let editor = TextEditor::with_text(draft);
    model.overlay = Some(TuiOverlay::Compose(ComposedText { agents, editor, purpose: ComposePurpose::Send }));
}

/// Sends the prompt to each agent. If that fails, the text is a draft again.
pub(super) fn submit_prompt(model: &mut TuiModel, agents: Vec<AgentTarget>, text: &str) -> Vec<TuiEffect> {
    let mut effects = Vec::new();
    let mut refused = None;
    for agent in agents {
        match why_no_prompt(model, &agent.key) {
            Some(why) => {
                refused = Some(TuiNotice { text: format!("{}: {}", agent.label, why.text), ..why });
                model.drafts.insert(agent.key, text.to_owned());
            }
            None => {
                model.drafts.remove(&agent.key);
                model.texts_in_flight.entry(agent.key.clone()).or_default().push_back(text.to_owned());
                let action =
                    SendAction { guards: guards(&agent), text: Some(text.to_owned()), ..SendAction::default() };
                effects.push(TuiEffect::Send { agent, action });
            }
        }
    }
    let to = match effects.as_slice() {
        [TuiEffect::Send { agent, .. }] => agent.label.clone(),
        sends => format!("{} agents", sends.len()),
    };
    model.notice = refused.or_else(|| Some(TuiNotice::info(format!("sending to {to}…"))));
    model.chosen.clear();
    effects
}

/// Why no prompt can be sent now. Text in an open dialog could choose an option.
fn why_no_prompt(model: &TuiModel, key: &AgentKey) -> Option<TuiNotice> {
    let row = model.list.all().iter().find(|row| row.key == *key)?;
    if row.has_ended {
        return Some(TuiNotice::error(
            "the agent has ended",
            Some(format!("{} resumes it", model.key(TuiCommand::Resume))),
        ));
    }
    row.item.dialog.as_ref()?;
    Some(TuiNotice::error(
        "a dialog is open: answer it first",
        Some(format!("{} answers with free text", model.key(TuiCommand::FreeText))),
    ))
}

pub(super) fn read_output(model: &mut TuiModel) -> Vec<TuiEffect> {
    model.target().map(|target| read_output_of(model, &target)).unwrap_or_default()
}

/// Opens the output of this agent or task.
pub(super) fn read_output_of(model: &mut TuiModel, target: &AgentTarget) -> Vec<TuiEffect> {
    let row = model.list.all().iter().find(|row| row.key == target.key);
    let Some(action) = row.map(|row| OutputAction { lines: Some(OUTPUT_LINES), ..preview::output_of(row) }) else {
        return Vec::new();
    };
    open_reader(model, "output of", ReaderSubject::Output, target);
    vec![TuiEffect::ReadOutput { key: target.key.clone(), action }]
}

pub(super) fn explain(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(target) = model.target() else { return Vec::new() };
    open_reader(model, "why this state:", ReaderSubject::Explanation, &target);
    vec![TuiEffect::Explain { key: target.key, reference: target.reference }]
}

pub(super) fn history(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(target) = model.target() else { return Vec::new() };
    open_reader(model, "history of", ReaderSubject::History, &target);
    vec![TuiEffect::History { key: target.key, reference: target.reference }]
}

pub(super) fn audit(model: &mut TuiModel) -> Vec<TuiEffect> {
    let title = "audit: the newest actions first".to_owned();
    model.overlay = Some(TuiOverlay::Reader(TextReader::new(title, ReaderSubject::Audit, None)));
    vec![TuiEffect::Audit]
}

fn open_reader(model: &mut TuiModel, title: &str, subject: ReaderSubject, target: &AgentTarget) {
    let reader = TextReader::new(format!("{title} {}", target.label), subject, Some(target.key.clone()));
    model.overlay = Some(TuiOverlay::Reader(reader));
}

pub(super) fn confirm_kill(model: &mut TuiModel) {
    let mut agents = model.targets();
    let runs = |agent: &AgentTarget| model.list.all().iter().any(|row| row.key == agent.key && !row.has_ended);
    agents.retain(runs);
    let (title, body) = match agents.as_slice() {
        [] => return model.notice = Some(TuiNotice::info("no agent runs here")),
        [agent] => (format!("stop {}?", agent.label), Vec::new()),
        several => {
            let room = usize::from(model.drawn.body_height).saturating_sub(8);
            if several.len() > room {
                let text = format!("this screen can list only {room} agents: make it larger, or select fewer");
                return model.notice = Some(TuiNotice::error(text, None));
            }
            let body = several.iter().map(|agent| agent.label.clone()).collect();
            (format!("stop {} agents?", several.len()), body)
        }
    };
    let it = if agents.len() == 1 { "it" } else { "them" };
    let item = |key, (verb, way): (&str, &str), signal| MenuItem {
        key,
        label: format!("{verb} {it} with {way}"),
        choice: MenuChoice::Kill { agents: agents.clone(), signal },
    };
    let items = vec![
        item('y', ("interrupt", "Ctrl-C"), KillSignal::Int),
        item('t', ("end", "SIGTERM"), KillSignal::Term),
        item('K', ("end", "SIGKILL"), KillSignal::Kill),
    ];
    model.overlay = Some(TuiOverlay::Menu(TuiMenu { title, body, items, dismissed: "nothing was sent" }));
}

pub(super) fn kill(model: &mut TuiModel, agents: Vec<AgentTarget>, signal: KillSignal) -> Vec<TuiEffect> {
    model.chosen.clear();
    let kill = |agent: AgentTarget| {
        let action = KillAction { guards: guards(&agent), signal };
        TuiEffect::Kill { agent, action }
    };
    agents.into_iter().map(kill).collect()
}

pub(super) fn resume(model: &mut TuiModel) -> Vec<TuiEffect> {
    let has_ended = model.list.selected().is_some_and(|row| row.has_ended);
    let Some(agent) = model.target().filter(|_| has_ended) else {
        model.notice = Some(TuiNotice::info("only an agent that has ended can be resumed"));
        return Vec::new();
    };
    model.notice = Some(TuiNotice::info(format!("resuming {}…", agent.label)));
    let action = ResumeAction { guards: guards(&agent) };
    vec![TuiEffect::Resume { agent, action }]
}

/// Marks the results of the selected agents as seen.
pub(super) fn seen(model: &mut TuiModel) -> Vec<TuiEffect> {
    let is_unseen = |agent: &AgentTarget| {
        model.list.all().iter().any(|row| row.key == agent.key && row.item.unseen && !row.has_ended)
    };
    let agents: Vec<AgentTarget> = model.targets().into_iter().filter(is_unseen).collect();
    if agents.is_empty() {
        model.notice = Some(TuiNotice::info("there is no result that you have not seen"));
    }
    model.chosen.clear();
    let mark = |agent: AgentTarget| {
        let action = SeenAction { r#ref: agent.reference.clone() };
        TuiEffect::MarkSeen { agent, action }
    };
    agents.into_iter().map(mark).collect()
}

/// The action applies only to the agent that the person selected.
pub(super) fn guards(agent: &AgentTarget) -> ActionGuards {
    let if_runtime = match &agent.key {
        AgentKey::Runtime(id) => Some(id.clone()),
        AgentKey::Pane(_) => None,
    };
    ActionGuards {
        r#ref: agent.reference.clone(),
        if_runtime,
        client: Some(CLIENT_NAME.to_owned()),
        ..ActionGuards::default()
    }
}
