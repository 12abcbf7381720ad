//! Installs hooks in JSON files. Removes the hooks together with the lists and objects that setup created for them.

use agtmux_agents::{SetupFile, SetupFormat};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::hook_format::{HOOKS, written_member};
use super::json::{self, JsonBrackets, member};
use super::{EditError, EditHints, SettingsEditor, apply, indent_at, newline_of};
use crate::commands::setup::command::HookCommand;

const VERSION: &str = "version";

/// The key in `EditHints::empty` for the list of an event's hooks.
fn path_of(event: &str) -> String {
    format!("{HOOKS}/{event}")
}

/// Edits the hooks of a file in one of the JSON formats.
pub(in crate::commands::setup) struct HookEditor {
    pub(in crate::commands::setup) file: &'static SetupFile,
    pub(in crate::commands::setup) hook_command: HookCommand,
}

impl SettingsEditor for HookEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        match json::parse(text)? {
            Some(Value::Object(_)) => {}
            Some(other) => return Err(EditError::at(text, other.start(), "the file is not a JSON object")),
            None => {
                let newline = newline_of(text);
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
                let (after, hints) = self.install(&format!("{text}{line_end}{{}}{newline}"))?;
                return Ok((after, EditHints { blank: Some(text.to_owned()), ..hints }));
            }
        }
        let mut hints = EditHints { events: self.file.events.clone(), ..EditHints::default() };
        let mut text = self.add_version(text, &mut hints)?;
        for event in &self.file.events {
            text = self.add_entry(&text, event, &mut hints)?;
        }
        Ok((text, hints))
    }

    fn installed_program(&self, text: &str, hints: &EditHints) -> Result<Option<String>, EditError> {
        let found = self.entries(text, hints)?.into_iter().next();
        Ok(found.and_then(|found| self.hook_command.program_in(&found.command, &found.event)))
    }

    fn is_current(&self, text: &str, hints: &EditHints) -> Result<bool, EditError> {
        let found = self.entries(text, hints)?.into_iter().map(|found| (found.event, found.command));
        let wanted = self.file.events.iter().map(|event| (event.clone(), self.hook_command.line(event)));
        let [mut found, mut wanted] = [found.collect(), wanted.collect::<Vec<_>>()];
        found.sort();
        wanted.sort();
        Ok(found == wanted)
    }

    /// Removes the entries of agtmux, the lists and objects that setup created for them, and the `version` field if
    /// setup added it.
    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError> {
        let mut left = text.to_owned();
        // Remove one entry at a time, because each removal moves the others.
        while let Some(entry) = self.entries(&left, hints)?.into_iter().next() {
            left = without_entry(&left, entry.around, hints);
        }
        if left == text {
            return Ok(left);
        }
        let hints = if self.file.format == SetupFormat::Own { &completed_for_own_file(hints) } else { hints };
        restore_blank(without_version(left, hints)?, hints)
    }
}

impl HookEditor {
    fn add_version(&self, text: &str, hints: &mut EditHints) -> Result<String, EditError> {
        let has_version = self.file.format != SetupFormat::Grouped;
        let root = json::root_object(text)?.filter(|root| has_version && member(root, VERSION).is_none());
        let Some(root) = root else { return Ok(text.to_owned()) };
        hints.version = true;
        Ok(append(
            "",
            &JsonBrackets::object(text, &root),
            &written_member(VERSION, &self.file.version.to_string()),
            hints,
        ))
    }

    fn add_entry(&self, text: &str, event: &str, hints: &mut EditHints) -> Result<String, EditError> {
        let item = self.item(event);
        let new_list = written_member(event, &format!("[{item}]"));
        let Some(root) = json::root_object(text)? else { return Ok(text.to_owned()) };
        let Some((_, hooks)) = member(&root, HOOKS) else {
            let root = JsonBrackets::object(text, &root);
            return Ok(append("", &root, &written_member(HOOKS, &root.nested(&new_list)), hints));
        };
        let not_an_object = || EditError::at(text, hooks.start(), "\"hooks\" is not an object");
        let hooks = hooks.as_object().ok_or_else(not_an_object)?;
        let Some((_, list)) = member(hooks, event) else {
            return Ok(append(HOOKS, &JsonBrackets::object(text, hooks), &new_list, hints));
        };
        let not_a_list = || EditError::at(text, list.start(), format!("\"hooks\".\"{event}\" is not a list"));
        let list = list.as_array().ok_or_else(not_a_list)?;
        Ok(append(&path_of(event), &JsonBrackets::list(text, list), &item, hints))
    }

    /// The entries that setup wrote, in the order in which they stand in the text.
    fn entries<'t>(&self, text: &'t str, hints: &EditHints) -> Result<Vec<InstalledEntry<'t>>, EditError> {
        let (mut found, root) = (Vec::new(), json::root_object(text)?);
        let hooks = root.as_ref().and_then(|root| Some((root, member(root, HOOKS)?)));
        let Some((root, (h, Value::Object(hooks)))) = hooks else { return Ok(found) };
        for (e, event) in hooks.properties.iter().enumerate() {
            let name = event.name.as_str();
            let is_known = self.file.events.iter().chain(&hints.events).any(|known| known == name);
            let Some(list) = event.value.as_array().filter(|_| is_known) else { continue };
            for (n, item) in list.elements.iter().enumerate() {
                for (command, in_group) in self.commands_in(item, name) {
                    let around = match in_group {
                        // The group has content of the user, so only this entry is removed.
                        Some((group, index)) => {
                            vec![(format!("{HOOKS}/{name}/{n}"), JsonBrackets::list(text, group), index)]
                        }
                        None => vec![
                            (String::new(), JsonBrackets::object(text, root), h),
                            (HOOKS.to_owned(), JsonBrackets::object(text, hooks), e),
                            (path_of(name), JsonBrackets::list(text, list), n),
                        ],
                    };
                    found.push(InstalledEntry { event: name.to_owned(), command: command.to_owned(), around });
                }
            }
        }
        Ok(found)
    }
}

/// One entry that setup wrote.
struct InstalledEntry<'t> {
    event: String,
    command: String,
    /// The brackets around the entry, the outermost first.
    around: Around<'t>,
}

/// Brackets, the outermost first. Each tuple holds the key of the brackets in `EditHints::empty`, the brackets, and the
/// index of the item that is the entry or contains it.
pub(super) type Around<'t> = Vec<(String, JsonBrackets<'t>, usize)>;

pub(super) fn append(path: &str, brackets: &JsonBrackets<'_>, item: &str, hints: &mut EditHints) -> String {
    if brackets.items.is_empty() {
        hints.empty.insert(path.to_owned(), brackets.inner().to_owned());
    }
    brackets.append(item)
}

/// Removes the entry, then the brackets around it from the inside out. Stops at brackets that hold other items or
/// comments, or that the user wrote. If the entry contains comments, this call only moves them out of the entry, and
/// the next call removes the entry.
///
/// `around` has the brackets around the entry, as [`InstalledEntry`] describes.
pub(super) fn without_entry(text: &str, mut around: Around<'_>, hints: &EditHints) -> String {
    if let Some((_, brackets, index)) = around.last().filter(|(_, brackets, index)| brackets.has_comments_in(*index)) {
        return lift_comments(text, &brackets.items[*index]);
    }
    while let Some((path, brackets, index)) = around.pop() {
        let inner = hints.empty.get(&path).map(String::as_str);
        let outer = around.last().filter(|(_, outer, index)| !outer.has_comments_in(*index));
        if brackets.items.len() > 1 || inner.is_some() || outer.is_none() {
            return brackets.without(index, inner);
        }
    }
    text.to_owned()
}

/// Moves the comments that are inside an item to the line above the item. They stay when the item is removed.
fn lift_comments(text: &str, item: &std::ops::Range<usize>) -> String {
    let (comments, indent) = (json::comments(text, item.clone()), indent_at(text, item.start));
    let lines = comments.iter().map(|range| format!("{}{}{indent}", &text[range.clone()], newline_of(text)));
    let removals = comments.iter().map(|range| (range.clone(), String::new()));
    apply(text, std::iter::once((item.start..item.start, lines.collect())).chain(removals))
}

/// Completes the hints for a file that only agtmux writes. Older versions of agtmux did not record whether setup added
/// the `version` field. This function assumes that setup added the field in two cases: an original text is recorded and
/// does not contain the word `version`, or neither an original text nor events are recorded. In the second case it also
/// assumes that the original text was empty.
fn completed_for_own_file(hints: &EditHints) -> EditHints {
    let was_blank = hints.blank.as_ref().map_or(hints.events.is_empty(), |blank| !blank.contains(VERSION));
    let blank = hints.blank.clone().or(was_blank.then(String::new));
    EditHints { version: hints.version || was_blank, blank, ..hints.clone() }
}

fn without_version(text: String, hints: &EditHints) -> Result<String, EditError> {
    let Some(root) = json::root_object(&text)?.filter(|_| hints.version) else { return Ok(text) };
    let brackets = JsonBrackets::object(&text, &root);
    // In a file that was blank originally, the version stays while other entries need it.
    let is_unused = hints.blank.is_none() || brackets.items.len() == 1;
    let version = member(&root, VERSION).filter(|(index, _)| is_unused && !brackets.has_comments_in(*index));
    let without = version.map(|(index, _)| brackets.without(index, hints.empty.get("").map(String::as_str)));
    Ok(without.unwrap_or(text))
}

/// Restores the original text if it contained no JSON value. Leaves the text unchanged if it contains anything besides
/// the original text and an empty object.
pub(super) fn restore_blank(text: String, hints: &EditHints) -> Result<String, EditError> {
    let (Some(blank), Some(root)) = (hints.blank_text(), json::root_object(&text)?) else { return Ok(text) };
    let is_empty = JsonBrackets::object(&text, &root).inner().trim().is_empty();
    let is_untouched = text[..root.start()].trim() == blank.trim() && text[root.end()..].trim().is_empty();
    Ok(if is_empty && is_untouched { blank.to_owned() } else { text })
}
