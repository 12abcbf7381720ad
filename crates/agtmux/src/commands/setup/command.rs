//! The command line that agents call, and how it is known again.

use std::path::{Path, PathBuf};

use crate::message::CliMessage;

/// What every entry of ours is known by.
const NAME: &str = "agtmux";

/// `'/path/of/agtmux' hook claude Stop`
#[derive(Debug, Clone)]
pub(super) struct HookCommand {
    program: String,
    agent: &'static str,
}

impl HookCommand {
    pub(super) fn new(program: &str, agent: &'static str) -> Self {
        Self { program: program.to_owned(), agent }
    }

    /// The same for an agtmux in another place.
    pub(super) fn with_program(&self, program: &str) -> Self {
        Self::new(program, self.agent)
    }

    pub(super) fn agent(&self) -> &'static str {
        self.agent
    }

    pub(super) fn program(&self) -> &str {
        &self.program
    }

    pub(super) fn line(&self, event: &str) -> String {
        format!("{} hook {} {event}", quoted(&self.program), self.agent)
    }

    /// The same as words, for agents that start programs without a shell.
    pub(super) fn words(&self, event: &str) -> Vec<String> {
        vec![self.program.clone(), "hook".into(), self.agent.into(), event.into()]
    }

    /// Just as we write it, also if that was an agtmux in another place.
    pub(super) fn matches_line(&self, line: &str, event: &str) -> bool {
        self.program_in(line, event).is_some()
    }

    /// The program that such a line calls.
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

/// By its full path: we never write another.
fn is_agtmux(program: &str) -> bool {
    let program = Path::new(program);
    program.is_absolute() && program.file_name().is_some_and(|name| name == NAME)
}

/// For a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The program, if there is nothing else: a pipeline that ends with ours is somebody's own.
fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?.replace(r"'\''", "\0");
    (!inner.contains('\'')).then(|| inner.replace('\0', "'"))
}

/// Where this program is. A name on PATH that leads here outlives updates better than what it leads to.
pub(super) fn own_path() -> std::io::Result<PathBuf> {
    let exe = without_deleted_suffix(std::env::current_exe()?);
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|real| Some(real) == exe.canonicalize().ok());
    Ok(on_path(NAME).filter(same).unwrap_or(exe))
}

/// An update that replaces the program while it runs puts another one in its place.
fn without_deleted_suffix(exe: PathBuf) -> PathBuf {
    let replaced = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    replaced.filter(|path| !exe.exists() && path.is_file()).unwrap_or(exe)
}

/// Why entries that call this program could not be taken out again, if so.
pub(super) fn name_problem(program: &Path) -> Option<CliMessage> {
    if program.file_name().is_some_and(|name| name == NAME) && program.is_file() {
        return None;
    }
    let path = program.display();
    let message = CliMessage::new("nothing was changed, because hooks that call this agtmux would not be known again");
    Some(if program.is_file() {
        message
            .because(format!("it is '{path}', and setup knows its own hooks by the name '{NAME}'"))
            .hint(format!("cp '{path}' ~/.local/bin/{NAME} && ~/.local/bin/{NAME} setup"))
    } else {
        message.because(format!("it was removed or replaced while it runs: '{path}'")).hint("agtmux setup")
    })
}

/// The first executable of this name.
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
    fn what_was_written_is_known_again() {
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
    fn what_others_wrote_is_not_ours() {
        let ours = HookCommand::new("/usr/bin/agtmux", "claude");
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
            assert!(!ours.matches_line(line, "Stop"), "{line}");
        }
        assert!(ours.matches_words(&["/x/agtmux", "hook", "claude", "notify"], "notify", "--then"));
        assert!(ours.matches_words(&["/x/agtmux", "hook", "claude", "notify", "--then", "y"], "notify", "--then"));
        assert!(!ours.matches_words(&["/x/agtmux", "hook", "claude", "notify", "--mine"], "notify", "--then"));
        assert!(!ours.matches_words(&["agtmux", "hook", "claude", "notify"], "notify", "--then"));
        assert!(!ours.matches_words(&["/x/agtmux", "hook"], "notify", "--then"));
    }
}
