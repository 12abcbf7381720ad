//! Finds out from a command line which program a process runs: the executable itself, or a script given to an
//! interpreter.

use crate::process::ProcessFacts;

/// The program that a process runs, and the program's arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation<'a> {
    /// The last part of the executable's path.
    pub(crate) exe_name: Option<&'a [u8]>,
    /// The program name from `argv[0]`. If `argv[0]` is a path, this is its last component. If `argv[0]` is a process
    /// title, this is its first word.
    pub(crate) own_name: Option<&'a [u8]>,
    pub(crate) program: InvokedProgram<'a>,
    /// The arguments of the program. If the program is a script, the arguments after the script.
    pub(crate) args: &'a [Vec<u8>],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InvokedProgram<'a> {
    Itself,
    /// The script at this path, which an interpreter runs.
    Script(&'a [u8]),
    /// A Python module.
    Module(&'a [u8]),
    /// A shell script, often a wrapper around the program of the same name.
    ShellScript(&'a [u8]),
}

impl<'a> Invocation<'a> {
    pub(crate) fn from_process(process: &ProcessFacts<'a>) -> Self {
        let exe_name = process.exe_path().map(file_name);
        let own_name = process.argv.first().map(|argv0| program_name(argv0));
        let given = process.argv.get(1..).unwrap_or_default();
        let interpreter =
            exe_name.and_then(Interpreter::from_name).or_else(|| own_name.and_then(Interpreter::from_name));
        let (runs, args) = interpreter
            .and_then(|interpreter| interpreter.find_script(given))
            .unwrap_or((InvokedProgram::Itself, given));
        Self { exe_name, own_name, program: runs, args }
    }
}

/// Whether the process is a shell. Unlike other programs, a shell may put its children into background jobs.
pub(crate) fn is_shell(process: &ProcessFacts<'_>) -> bool {
    let invocation = Invocation::from_process(process);
    [invocation.exe_name, invocation.own_name].into_iter().flatten().any(is_shell_name)
}

pub(crate) fn is_shell_name(name: &[u8]) -> bool {
    SHELLS.contains(&name)
}

pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

fn program_name(argv0: &[u8]) -> &[u8] {
    let argv0 = argv0.strip_prefix(b"-").unwrap_or(argv0);
    let first_word = argv0.split(|byte| *byte == b' ').next().unwrap_or(argv0);
    // `npm exec @scope/tool` is a title, not a path to `tool`; `/home/my user/bin/tool` is a path.
    if first_word.contains(&b'/') { file_name(argv0) } else { first_word }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    Node,
    /// Bun or Deno. Both have the command `run`, which runs a script.
    BunOrDeno,
    Python,
    Shell,
}

const SHELLS: [&[u8]; 13] =
    [b"sh", b"ash", b"bash", b"csh", b"dash", b"elvish", b"fish", b"ksh", b"mksh", b"nu", b"tcsh", b"xonsh", b"zsh"];

enum Argument {
    Operand,
    Flag,
    FlagWithValue,
    /// An option such as `-m`: the next argument is the name of a Python module.
    Module,
    /// An option with which the interpreter runs text from the command line or from standard input, and no script file.
    Inline,
}

impl Interpreter {
    fn from_name(name: &[u8]) -> Option<Self> {
        if SHELLS.contains(&name) {
            return Some(Self::Shell);
        }
        let versions_off = name.iter().rposition(|b| !b.is_ascii_digit() && !b"-.".contains(b)).map_or(0, |i| i + 1);
        match &name[..versions_off] {
            b"node" | b"nodejs" => Some(Self::Node),
            b"bun" | b"deno" => Some(Self::BunOrDeno),
            b"python" | b"pypy" => Some(Self::Python),
            _ => None,
        }
    }

    /// Finds the script in the arguments of an interpreter. Returns the script and the arguments after it.
    fn find_script<'a>(self, mut args: &'a [Vec<u8>]) -> Option<(InvokedProgram<'a>, &'a [Vec<u8>])> {
        loop {
            let (first, rest) = args.split_first()?;
            if first == b"--" {
                let (script, rest) = rest.split_first()?;
                return Some((self.invoked_program(script), rest));
            }
            match self.classify(first) {
                Argument::Operand => return Some((self.invoked_program(first), rest)),
                Argument::Flag => args = rest,
                Argument::FlagWithValue => args = rest.get(1..)?,
                Argument::Module => {
                    let (module, rest) = rest.split_first()?;
                    return Some((InvokedProgram::Module(module), rest));
                }
                Argument::Inline => return None,
            }
        }
    }

    fn invoked_program(self, script: &[u8]) -> InvokedProgram<'_> {
        match self {
            Self::Shell => InvokedProgram::ShellScript(script),
            _ => InvokedProgram::Script(script),
        }
    }

    fn classify(self, argument: &[u8]) -> Argument {
        match (self, argument) {
            (Self::BunOrDeno, b"run") => Argument::Flag,
            (Self::Shell, [b'+', ..]) => Argument::Flag,
            (_, [b'-', ..]) => self.classify_option(argument),
            _ => Argument::Operand,
        }
    }

    fn classify_option(self, option: &[u8]) -> Argument {
        match self {
            Self::Node | Self::BunOrDeno => classify_javascript_option(option),
            Self::Python => classify_python_option(option),
            Self::Shell => classify_shell_option(option),
        }
    }
}

fn classify_javascript_option(option: &[u8]) -> Argument {
    match option {
        b"-e" | b"--eval" | b"-p" | b"--print" | b"-pe" | b"-" => Argument::Inline,
        b"-r"
        | b"--require"
        | b"--import"
        | b"--loader"
        | b"--experimental-loader"
        | b"-C"
        | b"--conditions"
        | b"--title"
        | b"--preload"
        | b"--cwd"
        | b"--config"
        | b"--import-map" => Argument::FlagWithValue,
        _ => Argument::Flag,
    }
}

/// Short options may be combined in one word: `-um module`. The first option in the word that takes a value uses the
/// rest of the word as its value, or the next word if nothing is left.
fn classify_python_option(option: &[u8]) -> Argument {
    if option.starts_with(b"--") {
        return Argument::Flag;
    }
    let Some(decisive) = option.iter().position(|b| b"cmXW".contains(b)) else {
        return if option == b"-" { Argument::Inline } else { Argument::Flag };
    };
    let is_last = decisive + 1 == option.len();
    match (option[decisive], is_last) {
        (b'c', _) => Argument::Inline,
        (b'm', true) => Argument::Module,
        (b'm', false) => Argument::Inline,
        (_, true) => Argument::FlagWithValue,
        (_, false) => Argument::Flag,
    }
}

fn classify_shell_option(option: &[u8]) -> Argument {
    match option {
        b"--rcfile" | b"--init-file" | b"--init-command" | b"-C" | b"-o" | b"-O" => Argument::FlagWithValue,
        b"--command" => Argument::Inline,
        [b'-', b'-', ..] => Argument::Flag,
        _ if option.iter().any(|b| b"cs".contains(b)) => Argument::Inline,
        _ => Argument::Flag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(command: &str) -> String {
        let argv: Vec<Vec<u8>> = command.split(' ').map(|word| word.replace('~', " ").into_bytes()).collect();
        let process = ProcessFacts {
            pid: 2,
            ppid: 1,
            pgrp: 2,
            tpgid: None,
            stopped: false,
            zombie: false,
            name: b"",
            argv: &argv,
            exe: None,
        };
        let invocation = Invocation::from_process(&process);
        let (kind, subject) = match invocation.program {
            InvokedProgram::Itself => ("itself", invocation.own_name.unwrap_or_default()),
            InvokedProgram::Script(path) => ("script", path),
            InvokedProgram::Module(module) => ("module", module),
            InvokedProgram::ShellScript(path) => ("shell", path),
        };
        format!("{kind} {} +{}", String::from_utf8_lossy(subject), invocation.args.len())
    }

    #[test]
    fn the_script_is_found_behind_options() {
        for (command, expected) in [
            ("vim claude", "itself vim +1"),
            ("-zsh", "itself zsh +0"),
            ("npm~exec~@openai/codex", "itself npm +0"),
            ("/home/my~user/bin/tool -x", "itself tool +1"),
            ("node --max-old-space-size=99 -r hook.js /x/cli.js a b", "script /x/cli.js +2"),
            ("node -e code claude", "itself node +3"),
            ("nodejs -- cli.js", "script cli.js +0"),
            ("node22 cli.js", "script cli.js +0"),
            ("bun run --bun cli.ts", "script cli.ts +0"),
            ("deno run -A npm:tool", "script npm:tool +0"),
            ("python3.12 -um aider --model x", "module aider +2"),
            ("python -X dev -W ignore tool.py", "script tool.py +0"),
            ("python -Xdev tool.py", "script tool.py +0"),
            ("python -c code aider", "itself python +3"),
            ("python -m", "itself python +1"),
            ("bash -eu -o pipefail /x/claude -p", "shell /x/claude +1"),
            ("bash -lc claude", "itself bash +2"),
            ("sh -s claude", "itself sh +2"),
            ("fish -C true /x/claude", "shell /x/claude +0"),
        ] {
            assert_eq!(runs(command), expected, "{command}");
        }
    }
}
