//! Requests about the selected agent, other than answers.

use agtmux_api::wire::{ActionGuards, KillAction, KillSignal, OutputAction, ResumeAction, SendAction};

use super::{CLIENT_NAME, TuiEffect, preview};
use crate::editor::TextEditor;
use crate::model::{
    AgentKey, AgentTarget, ComposePurpose, ComposedText, ReaderSubject, TextReader, TuiModel, TuiNotice, TuiOverlay,
};

/// How many lines of the history the reader shows.
const OUTPUT_LINES: u32 = 2000;

pub(super) fn attach(model: &mut TuiModel) -> Vec<TuiEffect> {
    model.target().map(TuiEffect::Attach).into_iter().collect()
}

/// Opens the editor for a prompt, with the text that could not be sent before.
pub(super) fn compose(model: &mut TuiModel) {
    let Some(agent) = model.target() else { return };
    if let Some(why) = why_no_prompt(model, &agent.key) {
        return model.notice = Some(why);
    }
    let draft = model.drafts.get(&agent.key).cloned().unwrap_or_default();
    let editor = TextEditor::with_text(draft);
    model.overlay = Some(TuiOverlay::Compose(ComposedText { agent, editor, purpose: ComposePurpose::Send }));
}

/// Sends the prompt. The text stays a draft until the agent has it.
pub(super) fn submit_prompt(model: &mut TuiModel, agent: AgentTarget, text: String) -> Vec<TuiEffect> {
    model.drafts.insert(agent.key.clone(), text.clone());
    if let Some(why) = why_no_prompt(model, &agent.key) {
        model.notice = Some(why);
        return Vec::new();
    }
    model.notice = Some(TuiNotice::info(format!("sending to {}…", agent.label)));
    let action = SendAction { guards: guards(&agent), text: Some(text), ..SendAction::default() };
    vec![TuiEffect::Send { agent, action }]
}

/// Why no prompt can be sent now. Text in an open dialog could choose an option.
fn why_no_prompt(model: &TuiModel, key: &AgentKey) -> Option<TuiNotice> {
    let row = model.list.rows().find(|row| row.key == *key)?;
    if row.has_ended {
        return Some(TuiNotice::error("the agent has ended", Some("r resumes it".to_owned())));
    }
    row.item.dialog.as_ref()?;
    Some(TuiNotice::error("a dialog is open: answer it first", Some("f answers with free text".to_owned())))
}

pub(super) fn read_output(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(row) = model.list.selected() else { return Vec::new() };
    let action = OutputAction { lines: Some(OUTPUT_LINES), ..preview::output_of(row) };
    let key = row.key.clone();
    open_reader(model, "output of", ReaderSubject::Output);
    vec![TuiEffect::ReadOutput { key, action }]
}

pub(super) fn explain(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(AgentTarget { key, reference, .. }) = open_reader(model, "why this state:", ReaderSubject::Explanation)
    else {
        return Vec::new();
    };
    vec![TuiEffect::Explain { key, reference }]
}

pub(super) fn history(model: &mut TuiModel) -> Vec<TuiEffect> {
    let Some(AgentTarget { key, reference, .. }) = open_reader(model, "history of", ReaderSubject::History) else {
        return Vec::new();
    };
    vec![TuiEffect::History { key, reference }]
}

fn open_reader(model: &mut TuiModel, title: &str, subject: ReaderSubject) -> Option<AgentTarget> {
    let target = model.target()?;
    let reader = TextReader::new(format!("{title} {}", target.label), subject, Some(target.key.clone()));
    model.overlay = Some(TuiOverlay::Reader(reader));
    Some(target)
}

pub(super) fn confirm_kill(model: &mut TuiModel) {
    let has_ended = model.list.selected().is_some_and(|row| row.has_ended);
    match model.target().filter(|_| !has_ended) {
        Some(target) => model.overlay = Some(TuiOverlay::ConfirmKill(target)),
        None => model.notice = Some(TuiNotice::info("no agent runs here")),
    }
}

pub(super) fn kill(agent: AgentTarget, signal: KillSignal) -> Vec<TuiEffect> {
    let action = KillAction { guards: guards(&agent), signal };
    vec![TuiEffect::Kill { agent, action }]
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

/// The action applies only to the agent that the person selected.
fn guards(agent: &AgentTarget) -> ActionGuards {
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
