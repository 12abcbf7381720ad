//! The command line that agents call, and how it is known again.

use std::path::{Path, PathBuf};

/// `'/path/of/agtmux' hook claude Stop`
#[derive(Debug, Clone)]
pub(super) struct OurCommand {
    program: String,
    agent: &'static str,
}

impl OurCommand {
    pub(super) fn new(program: &str, agent: &'static str) -> Self {
        Self { program: program.to_owned(), agent }
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

    /// Also one that was made by an agtmux in another place.
    pub(super) fn is_one(&self, line: &str) -> bool {
        let Some((program, event)) = line.rsplit_once(&format!(" hook {} ", self.agent)) else { return false };
        let is_word = !event.is_empty() && event.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        is_word && unquoted(program).is_some_and(|program| is_agtmux(&program))
    }

    pub(super) fn are_words(&self, words: &[&str], event: &str) -> bool {
        matches!(words, [program, "hook", agent, what, ..]
            if *agent == self.agent && *what == event && is_agtmux(program))
    }
}

fn is_agtmux(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "agtmux")
}

/// For a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The program, if there is nothing else: a pipeline that ends with ours is somebody's own.
fn unquoted(text: &str) -> Option<String> {
    match text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inner) => {
            let inner = inner.replace(r"'\''", "\0");
            (!inner.contains('\'')).then(|| inner.replace('\0', "'"))
        }
        None => text.chars().all(|c| c.is_alphanumeric() || "/._-+~@%:,".contains(c)).then(|| text.to_owned()),
    }
}

/// Where this program is. A name on PATH that leads here outlives updates better than what it leads to.
pub(super) fn own_path() -> std::io::Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|real| Some(real) == exe.canonicalize().ok());
    Ok(on_path("agtmux").filter(same).unwrap_or(exe))
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
        for program in ["/usr/bin/agtmux", "/opt/it's here/agtmux", "agtmux"] {
            let line = OurCommand::new(program, "claude").line("Stop");
            assert!(OurCommand::new("/elsewhere/agtmux", "claude").is_one(&line), "{line}");
            assert!(!OurCommand::new(program, "codex").is_one(&line), "{line}");
        }
        assert_eq!(OurCommand::new("/a'b/agtmux", "gemini").line("X"), r"'/a'\''b/agtmux' hook gemini X");
    }

    #[test]
    fn what_others_wrote_is_not_ours() {
        let ours = OurCommand::new("/usr/bin/agtmux", "claude");
        for line in [
            "",
            "agtmux",
            "/usr/bin/other hook claude Stop",
            "agtmux hook claude Stop && rm x",
            "log | agtmux hook claude ",
            "notagtmux hook claude Stop",
        ] {
            assert!(!ours.is_one(line), "{line}");
        }
        assert!(ours.are_words(&["/x/agtmux", "hook", "claude", "notify", "--then", "y"], "notify"));
        assert!(!ours.are_words(&["/x/agtmux", "hook"], "notify"));
    }
}
