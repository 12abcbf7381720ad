//! Registers the MCP server in a JSON file: `{"mcpServers": {"agtmux": {"command": "/path/of/agtmux", "args": ["mcp"]}}}`.

use agtmux_agents::SetupFile;
use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::hook_format::{quoted, written_member};
use super::hooks::{append, restore_blank, without_entry};
use super::json::{self, JsonBrackets, member};
use super::{EditError, EditHints, SettingsEditor, newline_of};
use crate::commands::setup::command::{McpCommand, SERVER_NAME};

/// Stands for the path of agtmux in the manifests.
const PROGRAM: &str = "\"PROGRAM\"";

pub(in crate::commands::setup) struct McpJsonEditor {
    pub(in crate::commands::setup) file: &'static SetupFile,
    pub(in crate::commands::setup) command: McpCommand,
}

impl SettingsEditor for McpJsonEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        let root = match json::parse(text)? {
            Some(Value::Object(root)) => root,
            Some(other) => return Err(EditError::at(text, other.start(), "the file is not a JSON object")),
            None => {
                let newline = newline_of(text);
                let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
                let (after, hints) = self.install(&format!("{text}{line_end}{{}}{newline}"))?;
                return Ok((after, EditHints { blank: Some(text.to_owned()), ..hints }));
            }
        };
        let key = self.file.key.as_str();
        let (mut hints, server) = (EditHints::default(), written_member(SERVER_NAME, &self.entry()));
        let after = match member(&root, key) {
            None => {
                let servers = written_member(key, &format!("{{{server}}}"));
                append("", &JsonBrackets::object(text, &root), &servers, &mut hints)
            }
            Some((_, Value::Object(servers))) => {
                if let Some((_, taken)) = member(servers, SERVER_NAME) {
                    let why = format!("\"{key}\" already has a server \"{SERVER_NAME}\" that setup did not write");
                    return Err(EditError::at(text, taken.start(), why));
                }
                append(key, &JsonBrackets::object(text, servers), &server, &mut hints)
            }
            Some((_, other)) => return Err(EditError::at(text, other.start(), format!("\"{key}\" is not an object"))),
        };
        Ok((after, hints))
    }

    fn installed_program(&self, text: &str, _: &EditHints) -> Result<Option<String>, EditError> {
        let Some(root) = json::root_object(text)? else { return Ok(None) };
        Ok(self.servers(&root).and_then(|(_, servers)| program_of(member(servers, SERVER_NAME)?.1)))
    }

    fn is_current(&self, text: &str, hints: &EditHints) -> Result<bool, EditError> {
        Ok(self.installed_program(text, hints)?.as_deref() == Some(self.command.program.as_str()))
    }

    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError> {
        let mut left = text.to_owned();
        while self.installed_program(&left, hints)?.is_some() {
            let Some(root) = json::root_object(&left)? else { break };
            let Some((at, servers)) = self.servers(&root) else { break };
            let Some((index, _)) = member(servers, SERVER_NAME) else { break };
            let around = vec![
                (String::new(), JsonBrackets::object(&left, &root), at),
                (self.file.key.clone(), JsonBrackets::object(&left, servers), index),
            ];
            left = without_entry(&left, around, hints);
        }
        if left == text { Ok(left) } else { restore_blank(left, hints) }
    }
}

impl McpJsonEditor {
    /// The entry of the server, as JSON.
    fn entry(&self) -> String {
        self.file.entry.replace(PROGRAM, &quoted(&self.command.program))
    }

    fn servers<'v, 't>(&self, root: &'v Object<'t>) -> Option<(usize, &'v Object<'t>)> {
        let (at, servers) = member(root, &self.file.key)?;
        Some((at, servers.as_object()?))
    }
}

/// The path of agtmux, if this entry starts its MCP server. The user may have added arguments and fields.
fn program_of(entry: &Value<'_>) -> Option<String> {
    let entry = entry.as_object()?;
    let words = |name: &str| -> Vec<&str> {
        match member(entry, name) {
            Some((_, Value::Array(list))) => {
                list.elements.iter().map(|item| item.as_string_lit().map_or("", |text| text.value.as_ref())).collect()
            }
            Some((_, Value::StringLit(text))) => vec![text.value.as_ref()],
            _ => Vec::new(),
        }
    };
    McpCommand::program_in(&[words("command"), words("args")].concat())
}

#[cfg(test)]
mod tests {
    use agtmux_agents::AgentRegistry;

    use super::*;

    fn editors() -> Vec<McpJsonEditor> {
        let agents = AgentRegistry::builtin().agents().iter();
        let files = agents.filter_map(|agent| agent.setup()).flat_map(|setup| &setup.mcp_files);
        let files = files.filter(|file| !file.key.is_empty());
        files.map(|file| McpJsonEditor { file, command: McpCommand::new("/opt/it's/agtmux") }).collect()
    }

    #[test]
    fn the_server_is_added_and_every_other_byte_stays() {
        let editors = editors();
        assert_eq!(editors.len(), 6);
        for editor in editors {
            let key = &editor.file.key;
            for text in [
                String::new(),
                "{}".into(),
                "{\n}\n".into(),
                "{\"a\": 1}".into(),
                format!("{{\n  \"{key}\": {{}}\n}}\n"),
                format!("{{\n  \"{key}\": {{\n    \"x\": {{\"command\": \"y\"}} // mine\n  }},\n  \"z\": 1\n}}\n"),
                format!("{{\r\n\t\"{key}\": {{ /* none */ }}\r\n}}"),
            ] {
                let (after, hints) = editor.install(&text).expect("installs");
                assert_eq!(editor.is_current(&after, &hints), Ok(true), "{after}");
                assert!(json::parse(&after).is_ok() && after.contains("/opt/it's/agtmux"), "{after}");
                assert_eq!(editor.remove(&after, &hints).as_deref(), Ok(text.as_str()), "{after}");
                assert_eq!(editor.installed_program(&text, &EditHints::default()), Ok(None));
            }
        }
    }

    #[test]
    fn an_entry_with_arguments_of_the_user_is_kept_and_removed() {
        let editor = &editors()[0];
        let text =
            r#"{"mcpServers": {"agtmux": {"command": "/opt/it's/agtmux", "args": ["mcp", "--read-only"]}, "b": {}}}"#;
        assert_eq!(editor.is_current(text, &EditHints::default()), Ok(true));
        let left = editor.remove(text, &EditHints::default()).expect("removes");
        assert_eq!(left, r#"{"mcpServers": { "b": {}}}"#);
    }

    #[test]
    fn other_values_are_refused() {
        for text in ["[]", "{\"mcpServers\": 1}", "{", "{\"mcpServers\": {\"agtmux\": {\"command\": \"other\"}}}"] {
            assert!(editors()[0].install(text).is_err(), "{text}");
        }
    }
}
