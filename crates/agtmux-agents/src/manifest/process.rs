//! Rules that recognise an agent in the process table.

use serde::Deserialize;

use crate::command_line::{Invocation, InvokedProgram, file_name};
use crate::glob;
use crate::process::ProcessFacts;

/// Recognises an agent in the process table.
#[derive(Debug, Deserialize)]
pub(crate) struct ProcessRules {
    /// Program names, compared with the executable, with `argv[0]` and with the process title.
    pub(crate) programs: Vec<String>,
    /// Paths of the agent's executables. Needed if the file names alone do not identify the agent.
    #[serde(default)]
    executables: Vec<String>,
    /// Paths of the agent's scripts, which an interpreter runs.
    #[serde(default)]
    scripts: Vec<String>,
    /// Names of Python modules that are the agent's program.
    #[serde(default)]
    modules: Vec<String>,
    /// Lists of words. If a process's arguments start with one of these lists, the process is not an interactive agent.
    /// It may be, for example, a server for other programs.
    #[serde(default)]
    helpers: Vec<Vec<String>>,
    /// Options such as `-p` and commands such as `exec` with which the agent runs a single turn without user
    /// interaction. A command must be the first argument that is not an option.
    #[serde(default)]
    headless: Vec<String>,
}

/// How certain it is that a process is the agent. With a weak match, the process may be only a wrapper of the agent. A
/// direct match wins over a weak one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchStrength {
    Weak,
    Direct,
}

impl ProcessRules {
    pub(super) fn problem(&self) -> Option<&'static str> {
        if self.programs.is_empty() {
            return Some("'process.programs' must name at least one program");
        }
        if self.programs.iter().any(|name| name.is_empty() || name.contains('/')) {
            return Some("'process.programs' must be names, not paths: use 'executables' or 'scripts' for paths");
        }
        // An empty list of words would match every process.
        self.helpers.iter().any(Vec::is_empty).then_some("'process.helpers' must not contain an empty list")
    }

    pub(crate) fn match_process(
        &self,
        process: &ProcessFacts<'_>,
        invocation: &Invocation<'_>,
    ) -> Option<MatchStrength> {
        if self.helpers.iter().any(|words| starts_with_words(invocation.args, words)) {
            return None;
        }
        if self.is_direct(process, invocation) {
            return Some(MatchStrength::Direct);
        }
        self.is_weak(process, invocation).then_some(MatchStrength::Weak)
    }

    pub(crate) fn is_headless(&self, invocation: &Invocation<'_>) -> bool {
        let (options, words): (Vec<&String>, Vec<&String>) = self.headless.iter().partition(|w| w.starts_with('-'));
        let given = |arg: &Vec<u8>, option: &String| {
            arg.strip_prefix(option.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
        };
        invocation
            .args
            .iter()
            .take_while(|arg| *arg != b"--")
            .any(|arg| options.iter().any(|option| given(arg, option)))
            || words.iter().any(|word| starts_with_words(invocation.args, std::slice::from_ref(*word)))
    }

    fn is_direct(&self, process: &ProcessFacts<'_>, invocation: &Invocation<'_>) -> bool {
        let named =
            [invocation.exe_name, invocation.own_name].into_iter().flatten().any(|name| self.is_program_name(name));
        let path_matches = || process.exe_path().is_some_and(|path| any_matches(&self.executables, path));
        let interpreted = || match invocation.program {
            InvokedProgram::Script(path) => any_matches(&self.scripts, path),
            InvokedProgram::Module(module) => self.modules.iter().any(|m| m.as_bytes() == module),
            InvokedProgram::Itself | InvokedProgram::ShellScript(_) => false,
        };
        named || path_matches() || interpreted()
    }

    /// Whether the process may be either the agent or a wrapper of the agent. There are two such cases: a shell script
    /// with the agent's name, and a process without a command line whose name in the kernel is the agent's name. In the
    /// second case, the kernel may have taken the name from a script.
    fn is_weak(&self, process: &ProcessFacts<'_>, invocation: &Invocation<'_>) -> bool {
        match invocation.program {
            InvokedProgram::ShellScript(path) => self.is_program_name(file_name(path)),
            _ => process.argv.is_empty() && self.is_program_name(process.name),
        }
    }

    fn is_program_name(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| program.as_bytes() == name)
    }
}

fn any_matches(patterns: &[String], path: &[u8]) -> bool {
    patterns.iter().any(|pattern| glob::matches(pattern, path))
}

/// Whether the arguments start with these words, apart from leading options and their values. The manifest does not say
/// which options take a value, so the argument after an option may be a value or the first of the words.
fn starts_with_words(args: &[Vec<u8>], words: &[String]) -> bool {
    let starts_here = |rest: &[Vec<u8>]| {
        rest.len() >= words.len() && rest.iter().zip(words).all(|(arg, word)| arg == word.as_bytes())
    };
    let mut after_option = false;
    for (at, arg) in args.iter().enumerate() {
        if starts_here(&args[at..]) {
            return true;
        }
        let is_option = arg.starts_with(b"-");
        if arg == b"--" || !(is_option || after_option) {
            return false;
        }
        after_option = is_option && !arg.contains(&b'=');
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_recognized_by_their_first_words() {
        let leads = |args: &str, words: &str| {
            let args: Vec<Vec<u8>> = args.split(' ').map(|a| a.as_bytes().to_vec()).collect();
            let words: Vec<String> = words.split(' ').map(Into::into).collect();
            starts_with_words(&args, &words)
        };
        assert!(leads("serve --port 1", "serve"));
        assert!(leads("-c model=x --verbose serve", "serve"));
        assert!(leads("mcp serve", "mcp serve"));
        assert!(leads("--mode rpc", "--mode rpc"));
        assert!(!leads("mcp", "mcp serve"));
        assert!(!leads("run explain how we serve", "serve"));
        assert!(!leads("-- serve", "serve"));
        assert!(!leads("--flag=1 prompt serve", "serve"));
    }
}
