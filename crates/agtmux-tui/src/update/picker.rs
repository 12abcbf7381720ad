//! The palette, the list of keys, the tasks and the targets.

use agtmux_api::wire::{EvidenceKind, TargetItem};
use agtmux_core::target::{TargetHealth, TargetKind};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

use super::{TuiEffect, custom, keys, tasks};
use crate::keymap::{COMMANDS, MOUSE, TuiCommand};
use crate::model::{EntryLook, PickerChoice, PickerEntry, PickerKind, TuiModel, TuiNotice, TuiOverlay, TuiPicker};

pub(super) fn open_commands(model: &mut TuiModel, kind: PickerKind) {
    let picker = TuiPicker::new(kind, command_entries(model, kind), "no command matches");
    model.overlay = Some(TuiOverlay::Picker(picker));
}

fn command_entries(model: &TuiModel, kind: PickerKind) -> Vec<PickerEntry> {
    let is_keys = kind == PickerKind::Keys;
    let unicode = model.look.unicode;
    let of_table = COMMANDS.iter().filter(|entry| is_keys || entry.command != TuiCommand::Choose).map(|entry| {
        let keys = model.keys.labels(entry.command, unicode);
        PickerEntry {
            section: if is_keys { entry.section.title() } else { "" },
            head: if is_keys { keys.clone() } else { entry.name.to_owned() },
            text: if is_keys { entry.help.to_owned() } else { format!("{}  ({keys})", entry.help) },
            note: None,
            look: EntryLook::Key,
            choice: PickerChoice::Run(entry.command),
        }
    });
    let of_config = model.keys.custom().iter().enumerate().map(|(n, custom)| PickerEntry {
        section: if is_keys { "Your commands" } else { "" },
        head: if is_keys { custom.key.label(unicode) } else { custom.name.clone() },
        text: if is_keys { custom.name.clone() } else { custom.arguments.join(" ") },
        note: None,
        look: EntryLook::Key,
        choice: PickerChoice::RunCustom(n),
    });
    let of_mouse = MOUSE.iter().filter(|_| is_keys).map(|(what, help)| PickerEntry {
        section: "Mouse",
        head: (*what).to_owned(),
        text: (*help).to_owned(),
        note: None,
        look: EntryLook::Plain,
        choice: PickerChoice::Nothing,
    });
    of_table.chain(of_config).chain(of_mouse).collect()
}

pub(super) fn open_targets(model: &mut TuiModel) -> Vec<TuiEffect> {
    let picker = TuiPicker::new(PickerKind::Targets, Vec::new(), "reading…");
    model.overlay = Some(TuiOverlay::Picker(picker));
    vec![TuiEffect::ReadTargets]
}

/// Shows the targets if their list is still open.
pub(super) fn receive_targets(model: &mut TuiModel, targets: &[TargetItem], now: Timestamp) {
    if let Some(TuiOverlay::Picker(picker)) = &mut model.overlay
        && picker.kind == PickerKind::Targets
    {
        picker.empty = "no target: agtmux target add HOST".to_owned();
        picker.receive(targets.iter().map(|target| target_entry(target, now)).collect());
    }
}

fn target_entry(target: &TargetItem, now: Timestamp) -> PickerEntry {
    let status = &target.status;
    let look = match status.health {
        TargetHealth::Ok => EntryLook::Good,
        TargetHealth::Degraded => EntryLook::Busy,
        TargetHealth::Down => EntryLook::Bad,
    };
    let by = match (status.evidence, &status.agtmux_version) {
        _ if status.kind == TargetKind::Local => "this machine".to_owned(),
        (EvidenceKind::Native, Some(version)) => format!("agtmux {version}"),
        (EvidenceKind::Native, None) => "agtmux".to_owned(),
        (EvidenceKind::Screen, _) => "without agtmux".to_owned(),
        (EvidenceKind::Nothing, _) => "not connected".to_owned(),
    };
    let since = crate::age::age(status.since, now);
    let why = [status.message.clone(), status.hint.as_ref().map(|hint| format!("try: {hint}"))];
    let why: Vec<String> = why.into_iter().flatten().collect();
    PickerEntry {
        section: "",
        head: status.name.clone(),
        text: format!("{:<9} {since:>3}  {by:<16} agents {}, panes {}", status.health, target.agents, target.panes),
        note: (!why.is_empty()).then(|| why.join("; ")),
        look,
        choice: PickerChoice::Connect(status.name.clone()),
    }
}

pub(super) fn press(model: &mut TuiModel, mut picker: TuiPicker, key: KeyEvent, now: Timestamp) -> Vec<TuiEffect> {
    let page = isize::try_from(model.drawn.picker.len()).unwrap_or(1).max(1);
    let command = model.keys.command_of(key);
    let opened_it = match picker.kind {
        PickerKind::Keys => TuiCommand::Help,
        PickerKind::Palette => TuiCommand::Palette,
        PickerKind::Tasks => TuiCommand::Tasks,
        PickerKind::Targets => TuiCommand::Targets,
    };
    // In the palette every letter is typed. Elsewhere the first letter may be a key of the list.
    let is_closing = picker.kind != PickerKind::Palette
        && !picker.is_filtered()
        && (command == Some(opened_it) || command == Some(TuiCommand::Quit));
    match key.code {
        _ if is_closing => return Vec::new(),
        KeyCode::Esc if picker.is_filtered() => picker.editor = crate::editor::TextEditor::default(),
        KeyCode::Esc => return Vec::new(),
        KeyCode::Enter => return choose(model, picker, now),
        KeyCode::Down => picker.step(1),
        KeyCode::Up => picker.step(-1),
        KeyCode::Char('n') if key.modifiers.contains(KeyModifiers::CONTROL) => picker.step(1),
        KeyCode::Char('p') if key.modifiers.contains(KeyModifiers::CONTROL) => picker.step(-1),
        KeyCode::PageDown => picker.step(page),
        KeyCode::PageUp => picker.step(-page),
        _ => {
            if picker.editor.apply(key) {
                picker.select(0);
            }
        }
    }
    model.overlay = Some(TuiOverlay::Picker(picker));
    Vec::new()
}

/// Does what the selected entry says.
pub(super) fn choose(model: &mut TuiModel, picker: TuiPicker, now: Timestamp) -> Vec<TuiEffect> {
    match picker.selected().map(|entry| entry.choice.clone()) {
        Some(PickerChoice::Run(TuiCommand::Choose)) => {
            model.notice = Some(TuiNotice::info("press the number of the option"));
            Vec::new()
        }
        Some(PickerChoice::Run(command)) => keys::run(model, command, now),
        Some(PickerChoice::RunCustom(n)) => custom::run(model, n),
        Some(PickerChoice::ReadTask(task)) => tasks::read(model, task),
        Some(PickerChoice::Connect(name)) => {
            model.notice = Some(TuiNotice::info(format!("connecting to {name}…")));
            model.overlay = Some(TuiOverlay::Picker(picker));
            vec![TuiEffect::ConnectTarget(name)]
        }
        Some(PickerChoice::Nothing) | None => {
            model.overlay = Some(TuiOverlay::Picker(picker));
            Vec::new()
        }
    }
}
