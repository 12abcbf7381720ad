//! Hooks in Cursor's format, without groups and with a required version:
//! `{"version": 1, "hooks": {"event": [{"command": "…"}]}}`

use super::json::{self, ItemLayout, JsonBrackets, JsonNode};
use super::remove_entries::{self, HOOKS, InstalledEntry, path_of};
use super::{EditError, EditHints, apply, content_start, entry_text, newline_of};
use crate::commands::setup::command::HookCommand;

const COMMAND: &str = "command";
const VERSION: &str = "version";

type EventNames = &'static [&'static str];

/// Adds an entry for each event. The text must not contain entries of agtmux.
pub(in crate::commands::setup) fn install(
    text: &str,
    events: EventNames,
    hook_command: &HookCommand,
) -> Result<(String, EditHints), EditError> {
    let Some(root) = json::parse(text)? else { return Ok(into_blank(text, events, hook_command)) };
    let root_brackets = object(text, &root, "the file is not a JSON object")?;
    let mut hints = EditHints::for_events(events);
    let (mut splices, mut members) = (Vec::new(), Vec::new());
    hints.version = root.member(VERSION).is_none();
    members.extend(hints.version.then(version));
    let layout = root_brackets.layout(text);
    match root.member(HOOKS) {
        None => members.push(hooks(events, &layout, hook_command)),
        Some((_, found)) => {
            let brackets = object(text, found, "\"hooks\" is not an object")?;
            let mut missing = Vec::new();
            for event in events {
                let Some((_, list)) = found.member(event) else {
                    missing.push(member(event, hook_command));
                    continue;
                };
                let list = array(text, list, event)?;
                note_if_empty(text, &list, &path_of(event), &mut hints);
                splices.extend(list.append(text, &list.layout(text), &[entry(event, hook_command)]));
            }
            if !missing.is_empty() {
                note_if_empty(text, &brackets, HOOKS, &mut hints);
                splices.extend(brackets.append(text, &brackets.layout(text), &missing));
            }
        }
    }
    if !members.is_empty() {
        note_if_empty(text, &root_brackets, "", &mut hints);
        splices.extend(root_brackets.append(text, &layout, &members));
    }
    Ok((apply(text, splices), hints))
}

fn into_blank(text: &str, events: EventNames, hook_command: &HookCommand) -> (String, EditHints) {
    let newline = newline_of(text);
    let layout = ItemLayout { newline, indent: Some("  ".into()), unit: "  ".into() };
    let separator = layout.separator();
    let object =
        format!("{{{separator}{},{separator}{}{newline}}}{newline}", version(), hooks(events, &layout, hook_command));
    let open_line = text.len() > content_start(text) && !text.ends_with('\n');
    let before = if open_line { newline } else { "" };
    let hints = EditHints { blank: Some(text.to_owned()), version: true, ..EditHints::for_events(events) };
    (format!("{text}{before}{object}"), hints)
}

fn version() -> String {
    entry_text::member(VERSION, "1")
}

fn hooks(events: EventNames, layout: &ItemLayout, hook_command: &HookCommand) -> String {
    let all: Vec<String> = events.iter().map(|event| member(event, hook_command)).collect();
    entry_text::member(HOOKS, &layout.object(&all))
}

fn member(event: &str, hook_command: &HookCommand) -> String {
    entry_text::member(event, &format!("[{}]", entry(event, hook_command)))
}

/// An entry without a timeout: the documentation is unclear about its unit, and the hook returns at once.
fn entry(event: &str, hook_command: &HookCommand) -> String {
    entry_text::object(&[(COMMAND, entry_text::string(&hook_command.line(event)))])
}

fn object(text: &str, node: &JsonNode, why: &str) -> Result<JsonBrackets, EditError> {
    let fits = matches!(node, JsonNode::Object(..));
    node.brackets().filter(|_| fits).ok_or_else(|| EditError::at(text, node.range().start, why))
}

fn array(text: &str, node: &JsonNode, event: &str) -> Result<JsonBrackets, EditError> {
    let fits = matches!(node, JsonNode::Array(..));
    let why = || EditError::at(text, node.range().start, format!("\"hooks\".\"{event}\" is not a list"));
    node.brackets().filter(|_| fits).ok_or_else(why)
}

fn note_if_empty(text: &str, brackets: &JsonBrackets, path: &str, hints: &mut EditHints) {
    if brackets.items.is_empty() {
        hints.empty.insert(path.to_owned(), text[brackets.inside.clone()].to_owned());
    }
}

/// The installed commands with their events, in the order of the text.
pub(in crate::commands::setup) fn installed(
    text: &str,
    events: EventNames,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<Vec<(String, String)>, EditError> {
    let root = json::parse(text)?;
    let found = root.iter().flat_map(|root| entries(root, events, hints, hook_command));
    Ok(found.map(|found| (found.event, found.command)).collect())
}

/// Whether the text contains exactly the entries that an installation adds.
pub(in crate::commands::setup) fn is_current(
    text: &str,
    events: EventNames,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<bool, EditError> {
    let mut found = installed(text, events, hints, hook_command)?;
    let mut wanted: Vec<_> = events.iter().map(|event| ((*event).to_owned(), hook_command.line(event))).collect();
    found.sort();
    wanted.sort();
    Ok(found == wanted)
}

/// Removes the entries, the brackets that held nothing else, and the version if setup added it.
pub(in crate::commands::setup) fn remove(
    text: &str,
    events: EventNames,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<String, EditError> {
    let mut text = remove_entries::remove_all(text, hints, |root| entries(root, events, hints, hook_command))?;
    if let Some(root) = json::parse(&text)?
        && hints.version
        // In a file that was blank originally, the version stays while other entries need it.
        && (hints.blank.is_none() || root.brackets().is_some_and(|brackets| brackets.items.len() == 1))
        && let (Some((index, _)), Some(brackets)) = (root.member(VERSION), root.brackets())
        && !json::comments(&text)?.iter().any(|comment| remove_entries::is_within(comment, &brackets.items[index]))
    {
        text = brackets.without(&text, index, hints.empty.get("").map(String::as_str));
    }
    remove_entries::restore_blank(text, hints)
}

/// The entries that setup wrote. An entry with any other form belongs to the user.
fn entries(root: &JsonNode, events: EventNames, hints: &EditHints, hook_command: &HookCommand) -> Vec<InstalledEntry> {
    let mut found = Vec::new();
    let Some((_, JsonNode::Object(members, _))) = root.member(HOOKS) else { return found };
    for (e, event) in members.iter().enumerate() {
        let name = event.name.as_str();
        let JsonNode::Array(list, _) = &event.value else { continue };
        if !events.contains(&name) && !hints.events.iter().any(|known| known == name) {
            continue;
        }
        for (n, entry) in list.iter().enumerate().filter(|(_, entry)| entry.has_exactly(&[COMMAND])) {
            if let Some(command) = entry.text_of(COMMAND).filter(|command| hook_command.matches_line(command, name)) {
                found.push(InstalledEntry {
                    event: name.to_owned(),
                    command: command.to_owned(),
                    at: (e, n),
                    in_group: None,
                });
            }
        }
    }
    found
}
