//! The command line that setup writes into hooks, and by which setup recognises agtmux's hooks.

use std::path::{Path, PathBuf};

use crate::message::CliMessage;

/// The file name that identifies hooks of agtmux.
const NAME: &str = "agtmux";

/// The command that runs as an agent's hook, such as `'/path/of/agtmux' hook claude Stop`.
#[derive(Debug, Clone)]
pub(super) struct HookCommand {
    pub(super) program: String,
    pub(super) agent: &'static str,
}

impl HookCommand {
    pub(super) fn new(program: &str, agent: &'static str) -> Self {
        Self { program: program.to_owned(), agent }
    }

    pub(super) fn line(&self, event: &str) -> String {
        format!("{} hook {} {event}", quoted(&self.program), self.agent)
    }

    /// The command as separate arguments, for agents that start programs without a shell.
    pub(super) fn words(&self, event: &str) -> Vec<String> {
        vec![self.program.clone(), "hook".into(), self.agent.into(), event.into()]
    }

    /// Whether setup wrote this line. The line may contain an earlier path of agtmux.
    pub(super) fn matches_line(&self, line: &str, event: &str) -> bool {
        self.program_in(line, event).is_some()
    }

    /// The path of agtmux in a line that setup wrote.
    pub(super) fn program_in(&self, line: &str, event: &str) -> Option<String> {
        let program = line.strip_suffix(&format!(" hook {} {event}", self.agent))?;
        unquoted(program).filter(|program| is_agtmux(program))
    }

    pub(super) fn matches_words(&self, words: &[&str], event: &str, then: &str) -> bool {
        matches!(words, [program, "hook", agent, what, rest @ ..]
            if *agent == self.agent && *what == event && is_agtmux(program)
                && rest.first().is_none_or(|next| *next == then))
    }
}

/// The name under which agents know the MCP server.
pub(super) const SERVER_NAME: &str = "agtmux";

/// The command that an agent runs as MCP server: `/path/of/agtmux mcp`.
#[derive(Debug, Clone)]
pub(super) struct McpCommand {
    pub(super) program: String,
}

impl McpCommand {
    pub(super) fn new(program: &str) -> Self {
        Self { program: program.to_owned() }
    }

    /// The path of agtmux in a command with its arguments. The user may have added arguments.
    pub(super) fn program_in(words: &[&str]) -> Option<String> {
        match words {
            [program, "mcp", ..] if is_agtmux(program) => Some((*program).to_owned()),
            _ => None,
        }
    }
}

/// Whether this is an absolute path of agtmux. Setup writes no relative paths.
fn is_agtmux(program: &str) -> bool {
    let program = Path::new(program);
    program.is_absolute() && program.file_name().is_some_and(|name| name == NAME)
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The path of the program, if the text is one quoted word. The user wrote any other text, such as a pipeline that ends
/// with agtmux.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?.replace(r"'\''", "\0");
    (!inner.contains('\'')).then(|| inner.replace('\0', "'"))
}

/// The path of this program. Prefers the path found through `$PATH` if it is the same program. That path is often a
/// symbolic link, which an update points to the new version; the resolved path would go stale.
pub(super) fn own_path() -> std::io::Result<PathBuf> {
    let exe = without_deleted_suffix(std::env::current_exe()?);
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|real| Some(real) == exe.canonicalize().ok());
    Ok(on_path(NAME).filter(same).unwrap_or(exe))
}

/// The path without the suffix " (deleted)". Linux appends this suffix when an update has replaced the running program.
/// The result is the path of the new program.
fn without_deleted_suffix(exe: PathBuf) -> PathBuf {
    let replaced = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    replaced.filter(|path| !exe.exists() && path.is_file()).unwrap_or(exe)
}

/// The error message if a later uninstall could not recognise hooks with this program path.
pub(super) fn name_problem(program: &Path) -> Option<CliMessage> {
    if program.file_name().is_some_and(|name| name == NAME) && program.is_file() {
        return None;
    }
    let path = program.display();
    let message = CliMessage::new(
        "nothing was changed: with this path of agtmux, `agtmux setup` could not update or remove the hooks later",
    );
    Some(if program.is_file() {
        message
            .because(format!("the program is '{path}', but its file name must be '{NAME}'"))
            .hint(format!("cp '{path}' ~/.local/bin/{NAME} && ~/.local/bin/{NAME} setup"))
    } else {
        message.because(format!("the running agtmux was removed or replaced on disk: '{path}'")).hint("agtmux setup")
    })
}

/// The first executable with this name on PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    let dirs = std::env::var_os("PATH")?;
    std::env::split_paths(&dirs).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)).find(executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_lines_are_recognized_with_any_path() {
        for program in ["/usr/bin/agtmux", "/opt/it's here/agtmux"] {
            let line = HookCommand::new(program, "claude").line("Stop");
            let elsewhere = HookCommand::new("/elsewhere/agtmux", "claude");
            assert_eq!(elsewhere.program_in(&line, "Stop").as_deref(), Some(program));
            assert!(!elsewhere.matches_line(&line, "PreToolUse"), "{line}");
            assert!(!HookCommand::new(program, "codex").matches_line(&line, "Stop"), "{line}");
        }
        assert_eq!(HookCommand::new("/a'b/agtmux", "gemini").line("X"), r"'/a'\''b/agtmux' hook gemini X");
    }

    #[test]
    fn lines_of_the_user_are_not_recognized() {
        let hook_command = HookCommand::new("/usr/bin/agtmux", "claude");
        for line in [
            "",
            "agtmux",
            "agtmux hook claude Stop",
            "'agtmux' hook claude Stop",
            "/usr/bin/agtmux hook claude Stop",
            "'/usr/bin/other' hook claude Stop",
            "'/usr/bin/notagtmux' hook claude Stop",
            "'/usr/bin/agtmux' hook claude Stop && rm x",
            "log | '/usr/bin/agtmux' hook claude Stop",
            "'log' | '/usr/bin/agtmux' hook claude Stop",
        ] {
            assert!(!hook_command.matches_line(line, "Stop"), "{line}");
        }
        assert!(hook_command.matches_words(&["/x/agtmux", "hook", "claude", "notify"], "notify", "--then"));
        assert!(hook_command.matches_words(
            &["/x/agtmux", "hook", "claude", "notify", "--then", "y"],
            "notify",
            "--then"
        ));
        assert!(!hook_command.matches_words(&["/x/agtmux", "hook", "claude", "notify", "--mine"], "notify", "--then"));
        assert!(!hook_command.matches_words(&["agtmux", "hook", "claude", "notify"], "notify", "--then"));
        assert!(!hook_command.matches_words(&["/x/agtmux", "hook"], "notify", "--then"));
    }
}
