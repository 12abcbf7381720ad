//! How an agent looks in the process table.

use serde::Deserialize;

use crate::command_line::{Invocation, InvokedProgram, file_name};
use crate::glob;
use crate::process::ProcessFacts;

/// How an agent looks in the process table.
#[derive(Debug, Deserialize)]
pub(crate) struct ProcessRules {
    /// Names of the executable, of `argv[0]`, or that the process gives itself as its title.
    programs: Vec<String>,
    /// Paths of executables whose names say nothing.
    #[serde(default)]
    executables: Vec<String>,
    /// Paths of scripts that an interpreter runs.
    #[serde(default)]
    scripts: Vec<String>,
    /// Python modules.
    #[serde(default)]
    modules: Vec<String>,
    /// First words after the program that make it something else than an agent to talk to, such as a server for
    /// other programs.
    #[serde(default)]
    helpers: Vec<Vec<String>>,
    /// Options, or first words after the program, that have it do one turn without anybody to talk to.
    #[serde(default)]
    headless: Vec<String>,
}

/// How sure a match is. What is certain wins over what may be a mere wrapper.
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
            return Some("'process.programs' are names, not paths: use 'executables' or 'scripts' for those");
        }
        // An empty list of words would call every process a helper.
        self.helpers.iter().any(Vec::is_empty).then_some("'process.helpers' must not hold an empty list")
    }

    pub(crate) fn programs(&self) -> &[String] {
        &self.programs
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
        let at_its_place = || process.exe_path().is_some_and(|path| any_matches(&self.executables, path));
        let interpreted = || match invocation.program {
            InvokedProgram::Script(path) => any_matches(&self.scripts, path),
            InvokedProgram::Module(module) => self.modules.iter().any(|m| m.as_bytes() == module),
            InvokedProgram::Itself | InvokedProgram::ShellScript(_) => false,
        };
        named || at_its_place() || interpreted()
    }

    /// A shell script of the agent's name, or a process that shows nothing but its short name, which the kernel takes
    /// from the script's name as well.
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

/// Whether the first words that are not options, or options' values, are these. Which options take a value is not
/// known, so one word after each is allowed to be one.
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
    fn helpers_are_told_by_their_first_words() {
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
