//! Hooks in the format of Claude Code, which other agents use too:
//! `{"hooks": {"Event": [{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}]}}`

use super::json::{self, JsonBrackets, JsonNode};
use super::remove_entries::{self, HOOKS, InstalledEntry, path_of};
use super::{EditError, EditHints, TextSplice, apply, content_start, entry_text, newline_of};
use crate::commands::setup::command::HookCommand;

/// The hook format of an agent.
#[derive(Debug)]
pub(in crate::commands::setup) struct HookFormat {
    pub(in crate::commands::setup) events: &'static [&'static str],
    pub(in crate::commands::setup) shape: HookShape,
    /// In the unit of the agent.
    pub(in crate::commands::setup) timeout: u32,
}

#[derive(Debug)]
pub(in crate::commands::setup) enum HookShape {
    /// The format of Claude Code.
    Grouped {
        matcher: Option<&'static str>,
        /// Whether a hook has a name that the agent shows.
        named: bool,
    },
    /// The format of Copilot, without groups, in a file that only agtmux writes: `{"version": 1, "hooks": {"event":
    /// [{"type": "command", "bash": "…"}]}}`
    Own { version: u32 },
}

const MATCHER: &str = "matcher";
const VERSION: &str = "version";
/// The name of an entry, if the format has names.
const NAME: &str = "agtmux";

/// Adds an entry for each event. The text must not contain entries of agtmux.
pub(in crate::commands::setup) fn install(
    text: &str,
    format: &HookFormat,
    hook_command: &HookCommand,
) -> Result<(String, EditHints), EditError> {
    let mut hints = EditHints::for_events(format.events);
    let Some(root) = json::parse(text)? else { return Ok(into_blank(text, format, hook_command)) };
    let root_brackets = brackets(text, &root, "the file is not a JSON object", true)?;
    if version_of(format).is_some_and(|version| is_alone(&version, text)) {
        hints.blank = Some(text.to_owned());
    }
    let Some((_, hooks)) = root.member(HOOKS) else {
        note_if_empty(text, &root_brackets, "", &mut hints);
        let layout = root_brackets.layout(text);
        let all: Vec<String> = format.events.iter().map(|event| member(event, format, hook_command)).collect();
        let item = entry_text::member(HOOKS, &layout.object(&all));
        return Ok((apply(text, root_brackets.append(text, &layout, &[item])), hints));
    };
    let hooks_brackets = brackets(text, hooks, "\"hooks\" is not an object", true)?;
    let (mut splices, mut missing) = (Vec::new(), Vec::new());
    for event in format.events {
        match hooks.member(event) {
            Some((_, list)) => {
                splices.extend(into_list(text, event, list, &group(event, format, hook_command), &mut hints)?)
            }
            None => missing.push(member(event, format, hook_command)),
        }
    }
    if !missing.is_empty() {
        note_if_empty(text, &hooks_brackets, HOOKS, &mut hints);
        splices.extend(hooks_brackets.append(text, &hooks_brackets.layout(text), &missing));
    }
    Ok((apply(text, splices), hints))
}

fn into_blank(text: &str, format: &HookFormat, hook_command: &HookCommand) -> (String, EditHints) {
    let newline = newline_of(text);
    let all: Vec<String> = format.events.iter().map(|event| member(event, format, hook_command)).collect();
    let outer = json::ItemLayout { newline, indent: Some("  ".into()), unit: "  ".into() };
    let members: Vec<String> =
        version_of(format).into_iter().chain([entry_text::member(HOOKS, &outer.object(&all))]).collect();
    let separator = outer.separator();
    let object = format!("{{{separator}{}{newline}}}{newline}", members.join(&format!(",{separator}")));
    let open_line = text.len() > content_start(text) && !text.ends_with('\n');
    let before = if open_line { newline } else { "" };
    (
        format!("{text}{before}{object}"),
        EditHints { blank: Some(text.to_owned()), ..EditHints::for_events(format.events) },
    )
}

fn into_list(
    text: &str,
    event: &str,
    list: &JsonNode,
    group: &str,
    hints: &mut EditHints,
) -> Result<Vec<TextSplice>, EditError> {
    let list = brackets(text, list, &format!("\"hooks\".\"{event}\" is not a list"), false)?;
    note_if_empty(text, &list, &path_of(event), hints);
    Ok(list.append(text, &list.layout(text), &[group.to_owned()]))
}

fn brackets(text: &str, node: &JsonNode, why: &str, object: bool) -> Result<JsonBrackets, EditError> {
    let fits = matches!((node, object), (JsonNode::Object(..), true) | (JsonNode::Array(..), false));
    node.brackets().filter(|_| fits).ok_or_else(|| EditError::at(text, node.range().start, why))
}

fn note_if_empty(text: &str, brackets: &JsonBrackets, path: &str, hints: &mut EditHints) {
    if brackets.items.is_empty() {
        hints.empty.insert(path.to_owned(), text[brackets.inside.clone()].to_owned());
    }
}

fn member(event: &str, format: &HookFormat, hook_command: &HookCommand) -> String {
    entry_text::member(event, &format!("[{}]", group(event, format, hook_command)))
}

fn group(event: &str, format: &HookFormat, hook_command: &HookCommand) -> String {
    let value = |key: &&'static str| match *key {
        "name" => entry_text::string(NAME),
        "type" => entry_text::string("command"),
        "timeout" | "timeoutSec" => format.timeout.to_string(),
        _ => entry_text::string(&hook_command.line(event)),
    };
    let fields: Vec<_> = format.shape.entry_keys().iter().map(|key| (*key, value(key))).collect();
    let entry = entry_text::object(&fields);
    match format.shape {
        HookShape::Own { .. } => entry,
        HookShape::Grouped { matcher, .. } => {
            let matcher = matcher.map(|matcher| (MATCHER, entry_text::string(matcher)));
            let group: Vec<_> = matcher.into_iter().chain([(HOOKS, format!("[{entry}]"))]).collect();
            entry_text::object(&group)
        }
    }
}

impl HookShape {
    fn entry_keys(&self) -> &'static [&'static str] {
        match self {
            Self::Grouped { named: true, .. } => &["name", "type", "command", "timeout"],
            Self::Grouped { named: false, .. } => &["type", "command", "timeout"],
            Self::Own { .. } => &["type", "bash", "timeoutSec"],
        }
    }

    fn command_key(&self) -> &'static str {
        if matches!(self, Self::Own { .. }) { "bash" } else { "command" }
    }
}

/// The version member of a file that only agtmux writes.
fn version_of(format: &HookFormat) -> Option<String> {
    match format.shape {
        HookShape::Own { version } => Some(entry_text::member(VERSION, &version.to_string())),
        HookShape::Grouped { .. } => None,
    }
}

/// The installed commands with their events, in the order of the text.
pub(in crate::commands::setup) fn installed(
    text: &str,
    format: &HookFormat,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<Vec<(String, String)>, EditError> {
    let root = json::parse(text)?;
    let found = root.iter().flat_map(|root| entries(root, format, hints, hook_command));
    Ok(found.map(|found| (found.event, found.command)).collect())
}

/// Whether the text contains exactly the entries that an installation adds.
pub(in crate::commands::setup) fn is_current(
    text: &str,
    format: &HookFormat,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<bool, EditError> {
    let mut found = installed(text, format, hints, hook_command)?;
    let mut wanted: Vec<_> =
        format.events.iter().map(|event| ((*event).to_owned(), hook_command.line(event))).collect();
    found.sort();
    wanted.sort();
    Ok(found == wanted)
}

/// Removes the entries and the brackets that held nothing else.
pub(in crate::commands::setup) fn remove(
    text: &str,
    format: &HookFormat,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<String, EditError> {
    let left = remove_entries::remove_all(text, hints, |root| entries(root, format, hints, hook_command))?;
    if left == text {
        return Ok(left);
    }
    let only_version = version_of(format).is_some_and(|version| is_alone(&version, &left));
    if only_version { Ok(hints.blank.clone().unwrap_or_default()) } else { remove_entries::restore_blank(left, hints) }
}

/// Whether the object has only this member.
fn is_alone(member: &str, text: &str) -> bool {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| inner.trim() == member)
}

/// The entries that setup wrote. An entry with any other form belongs to the user.
fn entries(root: &JsonNode, format: &HookFormat, hints: &EditHints, hook_command: &HookCommand) -> Vec<InstalledEntry> {
    let mut found = Vec::new();
    let Some((_, JsonNode::Object(events, _))) = root.member(HOOKS) else { return found };
    for (e, event) in events.iter().enumerate() {
        let name = event.name.as_str();
        let JsonNode::Array(items, _) = &event.value else { continue };
        if !format.events.contains(&name) && !hints.events.iter().any(|known| known == name) {
            continue;
        }
        for (n, item) in items.iter().enumerate() {
            let commands = commands_in(item, name, format, hook_command).into_iter();
            found.extend(commands.map(|(in_group, command)| InstalledEntry {
                event: name.to_owned(),
                command: command.to_owned(),
                at: (e, n),
                in_group,
            }));
        }
    }
    found
}

/// The commands of agtmux in one list item. The index is set if the group also holds entries of the user.
fn commands_in<'n>(
    item: &'n JsonNode,
    event: &str,
    format: &HookFormat,
    hook_command: &HookCommand,
) -> Vec<(Option<usize>, &'n str)> {
    let HookShape::Grouped { matcher, .. } = format.shape else {
        return command_of(item, event, format, hook_command).map(|command| (None, command)).into_iter().collect();
    };
    let Some((_, JsonNode::Array(list, _))) = item.member(HOOKS) else { return Vec::new() };
    if item.text_of(MATCHER) != matcher || item.member(MATCHER).is_some() != matcher.is_some() {
        return Vec::new();
    }
    let keys: &[&str] = if matcher.is_some() { &[MATCHER, HOOKS] } else { &[HOOKS] };
    let is_own = list.len() == 1 && item.has_exactly(keys);
    let all = list.iter().enumerate();
    all.filter_map(|(n, entry)| Some(((!is_own).then_some(n), command_of(entry, event, format, hook_command)?)))
        .collect()
}

fn command_of<'n>(
    entry: &'n JsonNode,
    event: &str,
    format: &HookFormat,
    hook_command: &HookCommand,
) -> Option<&'n str> {
    let keys = format.shape.entry_keys();
    let fits = entry.has_exactly(keys)
        && entry.text_of("type") == Some("command")
        && (!keys.contains(&"name") || entry.text_of("name") == Some(NAME));
    entry.text_of(format.shape.command_key()).filter(|command| fits && hook_command.matches_line(command, event))
}
