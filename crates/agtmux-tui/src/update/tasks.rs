//! The background tasks and their output.

use std::collections::BTreeSet;

use agtmux_api::wire::{ActionGuards, OutputAction, PaneIdentity};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::PaneRef;
use agtmux_core::state::State;
use agtmux_core::task::{TaskEvent, TaskEventKind};
use jiff::Timestamp;

use super::{CLIENT_NAME, TuiEffect};
use crate::age;
use crate::model::{
    AgentKey, AgentRow, EntryLook, ListedTask, PickerChoice, PickerEntry, PickerKind, ReaderSubject, TextReader,
    TuiModel, TuiOverlay, TuiPicker,
};

/// The name of the tmux server on which tasks run unless another is named.
const DEFAULT_SERVER: &str = "default";
/// How many lines of a pane are read for a task that has no log here.
const OUTPUT_LINES: u32 = 2000;

pub(super) fn open(model: &mut TuiModel) -> Vec<TuiEffect> {
    model.overlay = Some(TuiOverlay::Picker(TuiPicker::new(PickerKind::Tasks, Vec::new(), "reading…")));
    read_events(model)
}

/// Reads the events again if a task has changed while the list is open.
pub(super) fn refresh(model: &mut TuiModel) -> Vec<TuiEffect> {
    let is_open = matches!(&model.overlay, Some(TuiOverlay::Picker(picker)) if picker.kind == PickerKind::Tasks);
    if is_open && known_tasks(model) != model.tasks_read_at { read_events(model) } else { Vec::new() }
}

fn read_events(model: &mut TuiModel) -> Vec<TuiEffect> {
    model.tasks_read_at = known_tasks(model);
    vec![TuiEffect::ReadTasks]
}

fn known_tasks(model: &TuiModel) -> Vec<(AgentKey, Option<State>, bool)> {
    let tasks = model.list.all().iter().filter(|row| row.is_task());
    tasks.map(|row: &AgentRow| (row.key.clone(), row.item.state, row.has_ended)).collect()
}

/// Shows the newest event of each task, the newest task first.
pub(super) fn receive(model: &mut TuiModel, events: &[TaskEvent], now: Timestamp) {
    let mut seen = BTreeSet::new();
    let newest = events.iter().rev().filter(|event| seen.insert((event.session.to_string(), event.task.clone())));
    let entries: Vec<PickerEntry> = newest.map(|event| entry(model, event, now)).collect();
    if let Some(TuiOverlay::Picker(picker)) = &mut model.overlay
        && picker.kind == PickerKind::Tasks
    {
        picker.empty = "there are no tasks: agtmux task run NAME -- COMMAND".to_owned();
        picker.receive(entries);
    }
}

fn entry(model: &TuiModel, event: &TaskEvent, now: Timestamp) -> PickerEntry {
    let (look, state) = match (event.state(), event.kind) {
        (None, _) => (EntryLook::Done, "its window is closed".to_owned()),
        (Some(State::WaitingInput), _) => (EntryLook::Busy, "waits for input".to_owned()),
        (Some(State::Completed), _) => (EntryLook::Done, "ended with 0".to_owned()),
        (Some(_), TaskEventKind::Exited) => (EntryLook::Bad, ending(event)),
        (Some(_), _) => (EntryLook::Good, "running".to_owned()),
    };
    let age = age::age(event.at, now);
    let shown = event.prompt.clone().or_else(|| event.recent_output.last().cloned());
    PickerEntry {
        section: "",
        head: event.task.clone(),
        text: format!("{state:<20} {age:>3}  {}", event.session),
        note: shown.filter(|line| !line.trim().is_empty()),
        look,
        choice: PickerChoice::ReadTask(ListedTask {
            session: event.session.to_string(),
            task: event.task.clone(),
            pane: pane_of(model, event),
            recent: event.recent_output.clone(),
        }),
    }
}

fn ending(event: &TaskEvent) -> String {
    match (&event.signal, event.exit_code) {
        (Some(signal), _) => format!("ended by {signal}"),
        (None, Some(code)) => format!("ended with {code}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The pane of the task, if exactly one pane has its session, window and id. Several servers may have such a pane.
fn pane_of(model: &TuiModel, event: &TaskEvent) -> Option<PaneIdentity> {
    let session = event.session.to_string();
    let is_its_pane = |pane: &&PaneIdentity| {
        pane.target == TargetName::LOCAL
            && pane.session_name == session
            && pane.window_id == event.window_id
            && event.pane_id.is_none_or(|id| id == pane.pane_id)
    };
    let mut found = model.fleet.items().panes.keys().filter(is_its_pane);
    let pane = found.next()?;
    found.next().is_none().then(|| pane.clone())
}

/// Opens the output of a task: its log, else its pane, else the lines of its last event.
pub(super) fn read(model: &mut TuiModel, task: ListedTask) -> Vec<TuiEffect> {
    let reader = TextReader::new(format!("output of task {}", task.task), ReaderSubject::Output, None);
    let (reader, effects) = match task.pane {
        None => {
            let lines = task.recent.into_iter().chain(["(its window is closed)".to_owned()]).collect();
            (TextReader { lines: Some(lines), ..reader }, Vec::new())
        }
        Some(pane) if pane.server == DEFAULT_SERVER => {
            (reader, vec![TuiEffect::ReadTaskLog { session: task.session, task: task.task }])
        }
        Some(pane) => {
            let key = AgentKey::Pane(pane.clone());
            let action = OutputAction { lines: Some(OUTPUT_LINES), ansi: true, guards: guards(pane), again: false };
            let reader = TextReader { key: Some(key.clone()), ..reader };
            (reader, vec![TuiEffect::ReadOutput { key, action }])
        }
    };
    model.overlay = Some(TuiOverlay::Reader(reader));
    effects
}

fn guards(pane: PaneIdentity) -> ActionGuards {
    let reference = PaneRef::Path {
        target: pane.target,
        server: Some(pane.server),
        session: pane.session_name,
        window: pane.window_id,
        pane: pane.pane_id,
    };
    ActionGuards { r#ref: reference.to_string(), client: Some(CLIENT_NAME.to_owned()), ..ActionGuards::default() }
}
