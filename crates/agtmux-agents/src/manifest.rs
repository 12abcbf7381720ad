//! One agent, described as data.

use agtmux_core::ids::AgentType;
use serde::Deserialize;

use crate::command_line::{Invocation, Runs, last_part};
use crate::glob;
use crate::process::ProcessFacts;

/// The version of the manifests' language that this build reads.
pub const CONTRACT: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("{file}: {source}")]
    Syntax { file: String, source: Box<toml::de::Error> },
    #[error(
        "{file}: written for contract {found}, this build reads contract {CONTRACT}; update agtmux or the manifest"
    )]
    Contract { file: String, found: u32 },
    #[error("{file}: {problem}")]
    Invalid { file: String, problem: String },
    #[error("{file}: there is already an agent named '{name}'")]
    Duplicate { file: String, name: AgentType },
}

/// Read first and leniently: a newer contract may have keys that this build would call mistakes.
#[derive(Deserialize)]
struct Header {
    contract: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    #[serde(rename = "contract")]
    _contract: u32,
    pub(crate) name: AgentType,
    pub(crate) process: ProcessRules,
}

/// How an agent looks in the process table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
}

/// How sure a match is. What is certain wins over what may be a mere wrapper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    Weak,
    Direct,
}

impl Manifest {
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ManifestError> {
        let syntax = |source| ManifestError::Syntax { file: file.into(), source: Box::new(source) };
        let header: Header = toml::from_str(text).map_err(syntax)?;
        if header.contract != CONTRACT {
            return Err(ManifestError::Contract { file: file.into(), found: header.contract });
        }
        let manifest: Self = toml::from_str(text).map_err(syntax)?;
        match manifest.problem() {
            Some(problem) => Err(ManifestError::Invalid { file: file.into(), problem: problem.into() }),
            None => Ok(manifest),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let name_is_plain = |name: &str| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !name_is_plain(self.name.as_str()) {
            return Some("'name' must consist of lower case letters, digits and '-'");
        }
        self.process.problem()
    }
}

impl ProcessRules {
    fn problem(&self) -> Option<&'static str> {
        if self.programs.is_empty() {
            return Some("'process.programs' must name at least one program");
        }
        if self.programs.iter().any(|name| name.is_empty() || name.contains('/')) {
            return Some("'process.programs' are names, not paths: use 'executables' or 'scripts' for those");
        }
        // An empty list of words would call every process a helper.
        self.helpers.iter().any(Vec::is_empty).then_some("'process.helpers' must not hold an empty list")
    }

    pub(crate) fn judge(&self, process: &ProcessFacts<'_>, invocation: &Invocation<'_>) -> Option<Strength> {
        if self.helpers.iter().any(|words| leads_with(invocation.args, words)) {
            return None;
        }
        if self.is_direct(process, invocation) {
            return Some(Strength::Direct);
        }
        self.is_weak(process, invocation).then_some(Strength::Weak)
    }

    fn is_direct(&self, process: &ProcessFacts<'_>, invocation: &Invocation<'_>) -> bool {
        let named = [invocation.exe_name, invocation.own_name].into_iter().flatten().any(|name| self.names(name));
        let at_its_place = || process.exe_path().is_some_and(|path| any_fits(&self.executables, path));
        let interpreted = || match invocation.runs {
            Runs::Script(path) => any_fits(&self.scripts, path),
            Runs::Module(module) => self.modules.iter().any(|m| m.as_bytes() == module),
            Runs::Itself | Runs::ShellScript(_) => false,
        };
        named || at_its_place() || interpreted()
    }

    /// A shell script of the agent's name, or a process that shows nothing but its short name, which the kernel takes
    /// from the script's name as well.
    fn is_weak(&self, process: &ProcessFacts<'_>, invocation: &Invocation<'_>) -> bool {
        match invocation.runs {
            Runs::ShellScript(path) => self.names(last_part(path)),
            _ => process.argv.is_empty() && self.names(process.name),
        }
    }

    fn names(&self, name: &[u8]) -> bool {
        self.programs.iter().any(|program| program.as_bytes() == name)
    }
}

fn any_fits(patterns: &[String], path: &[u8]) -> bool {
    patterns.iter().any(|pattern| glob::fits(pattern, path))
}

/// Whether the first words that are not options, or options' values, are these. Which options take a value is not
/// known, so one word after each is allowed to be one.
fn leads_with(args: &[Vec<u8>], words: &[String]) -> bool {
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

    const GOOD: &str = "contract = 1\nname = \"x\"\n[process]\nprograms = [\"x\"]\n";

    fn error(text: &str) -> String {
        Manifest::parse("x.toml", text).expect_err("must be refused").to_string()
    }

    #[test]
    fn a_small_manifest_is_enough() {
        assert_eq!(Manifest::parse("x.toml", GOOD).expect("good").name.as_str(), "x");
    }

    #[test]
    fn mistakes_are_named() {
        assert!(error(&format!("{GOOD}program = 1\n")).contains("unknown field `program`"));
        assert!(error(&GOOD.replace("[process]", "colour = 1\n[process]")).contains("unknown field `colour`"));
        assert!(error("name = \"x\"").contains("contract"));
        assert!(error(&GOOD.replace("name = \"x\"", "name = \"X y\"")).contains("lower case"));
        assert!(error(&GOOD.replace("[\"x\"]", "[]")).contains("at least one program"));
        assert!(error(&GOOD.replace("[\"x\"]", "[\"a/x\"]")).contains("names, not paths"));
        assert!(error(&format!("{GOOD}helpers = [[]]\n")).contains("empty list"));
    }

    #[test]
    fn another_contract_is_refused_before_its_keys_are_read() {
        let message = error("contract = 2\nunheard_of = true\n");
        assert_eq!(
            message,
            "x.toml: written for contract 2, this build reads contract 1; update agtmux or the manifest"
        );
    }

    #[test]
    fn helpers_are_told_by_their_first_words() {
        let leads = |args: &str, words: &str| {
            let args: Vec<Vec<u8>> = args.split(' ').map(|a| a.as_bytes().to_vec()).collect();
            let words: Vec<String> = words.split(' ').map(Into::into).collect();
            leads_with(&args, &words)
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
