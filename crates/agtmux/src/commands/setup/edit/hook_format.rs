//! The JSON formats of hooks. Writes hook entries and recognises the entries that setup wrote.

use agtmux_agents::SetupFormat;
use jsonc_parser::ast::{Array, Value};
use serde_json::Value as JsonValue;

use super::hooks::HookEditor;
use super::json::{member, text_of};

pub(super) const HOOKS: &str = "hooks";
const MATCHER: &str = "matcher";
/// The name of an entry, if the format has names.
const NAME: &str = "agtmux";

impl HookEditor {
    /// The matcher of each hook group. `None` if the format has no groups, `Some(None)` if its groups have no matcher.
    fn grouped(&self) -> Option<Option<&'static str>> {
        (self.file.format == SetupFormat::Grouped).then_some(self.file.matcher.as_deref())
    }

    /// The fields of a hook entry, in the format of the settings file:
    ///
    /// - Grouped, the format of Claude Code, which other agents use too:
    ///   `{"hooks": {"Event": [{"matcher": "…", "hooks": [{"type": "command", "command": "…"}]}]}}`
    /// - Own, the format of Copilot: `{"version": 1, "hooks": {"event": [{"type": "command", "bash": "…"}]}}`
    /// - Flat, the format of Cursor: `{"version": 1, "hooks": {"event": [{"command": "…"}]}}`. Setup writes no timeout,
    ///   because Cursor's documentation is unclear about the unit, and because the hook returns at once.
    fn fields(&self, command: &str) -> Vec<(&'static str, JsonValue)> {
        let (kind, command, timeout) = (JsonValue::from("command"), JsonValue::from(command), self.file.timeout.into());
        match self.file.format {
            SetupFormat::Grouped => {
                let name = self.file.named.then(|| ("name", NAME.into()));
                name.into_iter().chain([("type", kind), ("command", command), ("timeout", timeout)]).collect()
            }
            SetupFormat::Own => vec![("type", kind), ("bash", command), ("timeoutSec", timeout)],
            _ => vec![("command", command)],
        }
    }

    /// The item that setup adds to the list of an event: an entry, or in the grouped format a group with one entry.
    pub(super) fn item(&self, event: &str) -> String {
        let fields = self.fields(&self.hook_command.line(event)).into_iter();
        let entry = object(fields.map(|(key, value)| written_member(key, &value.to_string())));
        let Some(matcher) = self.grouped() else { return entry };
        let matcher = matcher.map(|matcher| written_member(MATCHER, &quoted(matcher)));
        object(matcher.into_iter().chain([written_member(HOOKS, &format!("[{entry}]"))]))
    }

    /// The commands of agtmux in one item of an event's list. If the item is a group that also holds content of the
    /// user, each command comes with its place: the list of the group, and the index of the command's entry in this
    /// list.
    pub(super) fn commands_in<'v, 't>(
        &self,
        item: &'v Value<'t>,
        event: &str,
    ) -> Vec<(&'v str, Option<(&'v Array<'t>, usize)>)> {
        let Some(matcher) = self.grouped() else {
            return self.command_of(item, event).map(|command| (command, None)).into_iter().collect();
        };
        let Some(group) = item.as_object() else { return Vec::new() };
        let has_matcher = text_of(group, MATCHER) == matcher && member(group, MATCHER).is_some() == matcher.is_some();
        let list = member(group, HOOKS).filter(|_| has_matcher).and_then(|(_, list)| list.as_array());
        let is_own = group.properties.len() == 1 + usize::from(matcher.is_some());
        let commands = list.iter().flat_map(|list| list.elements.iter().enumerate().map(move |entry| (list, entry)));
        let commands = commands.filter_map(|(list, (index, entry))| {
            let in_group = (!is_own || list.elements.len() > 1).then_some((*list, index));
            Some((self.command_of(entry, event)?, in_group))
        });
        commands.collect()
    }

    /// The command of this entry, if setup wrote the entry. An entry of any other form belongs to the user.
    fn command_of<'v>(&self, entry: &'v Value<'_>, event: &str) -> Option<&'v str> {
        let entry = entry.as_object()?;
        let command = text_of(entry, "command").or(text_of(entry, "bash"))?;
        let fields = self.fields(command);
        let has = |(key, value): &(&str, JsonValue)| match value {
            // The user may change the timeout.
            JsonValue::Number(_) => member(entry, key).is_some(),
            _ => text_of(entry, key) == value.as_str(),
        };
        let is_entry = entry.properties.len() == fields.len() && fields.iter().all(has);
        (is_entry && self.hook_command.matches_line(command, event)).then_some(command)
    }
}

/// An object on one line: `{ "type": "command", … }`.
fn object(members: impl Iterator<Item = String>) -> String {
    format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
}

pub(super) fn written_member(name: &str, value: &str) -> String {
    format!("{}: {value}", quoted(name))
}

/// A string in JSON, which is valid in TOML too.
pub(super) fn quoted(text: &str) -> String {
    JsonValue::from(text).to_string()
}
