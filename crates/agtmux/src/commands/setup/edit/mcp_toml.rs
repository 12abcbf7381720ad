//! Registers the MCP server in a TOML file, as the table `[mcp_servers.agtmux]` at its end.

use std::ops::Range;

use toml_edit::Document;

use super::hook_format::quoted;
use super::{EditError, EditHints, SettingsEditor, newline_of};
use crate::commands::setup::command::{McpCommand, SERVER_NAME};

const SERVERS: &str = "mcp_servers";
/// The variables by which the server finds the daemon and tmux. The agent passes on only the variables that it is told to.
const VARIABLES: [&str; 9] = [
    "AGTMUX_CONFIG",
    "AGTMUX_SOCKET",
    "AGTMUX_STATE_DIR",
    "TMUX",
    "TMUX_PANE",
    "TMUX_TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

pub(in crate::commands::setup) struct McpTomlEditor {
    pub(in crate::commands::setup) command: McpCommand,
}

impl SettingsEditor for McpTomlEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        if server(text)?.is_some() {
            let why = format!("\"{SERVERS}\" already has a server \"{SERVER_NAME}\" that setup did not write");
            return Err(EditError::at(text, 0, why));
        }
        let newline = newline_of(text);
        let before = match text {
            "" => String::new(),
            _ if text.ends_with('\n') => newline.to_owned(),
            _ => newline.repeat(2),
        };
        let lines = [
            format!("[{SERVERS}.{SERVER_NAME}]"),
            format!("command = {}", quoted(&self.command.program)),
            "args = [\"mcp\"]".to_owned(),
            format!("env_vars = [{}]", VARIABLES.map(quoted).join(", ")),
        ];
        let after = format!("{text}{before}{}{newline}", lines.join(newline));
        // An inline table `mcp_servers = {…}` cannot be extended by another table.
        parse(&after)?;
        let mut hints = EditHints::default();
        hints.empty.insert(SERVERS.to_owned(), before);
        Ok((after, hints))
    }

    fn installed_program(&self, text: &str, _: &EditHints) -> Result<Option<String>, EditError> {
        Ok(server(text)?.flatten())
    }

    fn is_current(&self, text: &str, hints: &EditHints) -> Result<bool, EditError> {
        Ok(self.installed_program(text, hints)?.as_deref() == Some(self.command.program.as_str()))
    }

    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError> {
        if self.installed_program(text, hints)?.is_none() {
            return Ok(text.to_owned());
        }
        let mut left = text.to_owned();
        while let Some(lines) = own_lines(&left) {
            let before = hints.empty.get(SERVERS).filter(|before| left[..lines.start].ends_with(before.as_str()));
            let start = lines.start - before.map_or(0, String::len);
            left.replace_range(start..lines.end, "");
        }
        match server(&left)? {
            None => Ok(left),
            Some(_) => Err(EditError::at(text, 0, format!("remove {SERVERS}.{SERVER_NAME} from the file by hand"))),
        }
    }
}

fn parse(text: &str) -> Result<Document<String>, EditError> {
    Document::parse(text.to_owned()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        EditError::at(text, at, error.message().to_owned())
    })
}

/// The server in this text: `Some(None)` if another program than agtmux serves it.
fn server(text: &str) -> Result<Option<Option<String>>, EditError> {
    let document = parse(text)?;
    let entry = document.as_table().get(SERVERS).and_then(|servers| servers.get(SERVER_NAME));
    let words = |entry: &toml_edit::Item| -> Vec<String> {
        let command = entry.get("command").and_then(|command| command.as_str());
        let arguments = entry.get("args").and_then(|arguments| arguments.as_array());
        let arguments = arguments.into_iter().flatten().map(|word| word.as_str().unwrap_or_default());
        command.into_iter().chain(arguments).map(str::to_owned).collect()
    };
    Ok(entry.map(|entry| {
        let words = words(entry);
        McpCommand::program_in(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }))
}

/// The lines of the server's table, or of a table below it. Blank lines and comments after them stay.
fn own_lines(text: &str) -> Option<Range<usize>> {
    let own = format!("{SERVERS}.{SERVER_NAME}");
    let is_own = |line: &str| {
        let name = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name.trim());
        name.is_some_and(|name| name == own || name.strip_prefix(&own).is_some_and(|below| below.starts_with('.')))
    };
    let mut at = 0;
    let mut found: Option<Range<usize>> = None;
    for line in text.split_inclusive('\n') {
        let (start, trimmed) = (at, line.trim());
        at += line.len();
        match &mut found {
            None if is_own(line) => found = Some(start..at),
            Some(_) if trimmed.starts_with('[') => break,
            Some(lines) if !trimmed.is_empty() && !trimmed.starts_with('#') => lines.end = at,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor() -> McpTomlEditor {
        McpTomlEditor { command: McpCommand::new("/opt/agtmux") }
    }

    #[test]
    fn the_table_is_added_and_every_other_byte_stays() {
        for text in [
            "",
            "model = 'x'",
            "# mine\r\nmodel = 'x' # y\r\n\r\n[features]\r\na = true",
            "[mcp_servers.other]\ncommand = \"x\"\n",
            "[a]\nb = 1\n\n\n",
        ] {
            let (after, hints) = editor().install(text).expect("installs");
            assert_eq!(editor().is_current(&after, &hints), Ok(true), "{after}");
            assert_eq!(editor().remove(&after, &hints).as_deref(), Ok(text), "{after}");
            assert_eq!(editor().installed_program(text, &EditHints::default()), Ok(None));
        }
    }

    #[test]
    fn tables_that_the_agent_added_below_are_removed_too() {
        let (text, hints) = editor().install("a = 1\n").expect("installs");
        let grown =
            format!("{text}enabled = true\n\n[mcp_servers.agtmux.tools.bash]\napproval = \"x\"\n\n# end\n[z]\n");
        assert_eq!(editor().remove(&grown, &hints).as_deref(), Ok("a = 1\n\n# end\n[z]\n"));
    }

    #[test]
    fn other_values_are_refused() {
        for text in ["mcp_servers = {}", "[mcp_servers.agtmux]\ncommand = \"other\"\n", "a = "] {
            assert!(editor().install(text).is_err(), "{text}");
        }
    }
}
