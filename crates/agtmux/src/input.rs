//! Reading files, stdin, environment variables and the user's answers.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::Path;

use agtmux_core::sanitize;

use crate::error::{CliError, CliExit, CliResult};

/// The daemon accepts at most this many bytes of a text or a payload.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// The value of an environment variable, unless it is empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a file, or stdin for `-`. Reads at most one byte more than the limit, so that the caller can detect an input
/// that is too long.
pub(crate) fn read(path: &Path) -> CliResult<Vec<u8>> {
    let fault = |error| CliError::io(&format!("read '{}'", path.display()), error);
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).map_err(fault)?)
    };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

/// Asks on stderr and returns the answer without whitespace around it. `None` at the end of stdin.
pub(crate) fn ask(question: &str) -> CliResult<Option<String>> {
    let mut stderr = std::io::stderr();
    let asked = write!(stderr, "{} ", sanitize::for_terminal(question)).and_then(|()| stderr.flush());
    asked.map_err(|error| CliError::io("ask on the terminal", error))?;
    line()
}

/// Reads one line of stdin, without whitespace around it. `None` at the end of stdin.
pub(crate) fn line() -> CliResult<Option<String>> {
    let mut line = String::new();
    let typed =
        std::io::stdin().lock().read_line(&mut line).map_err(|error| CliError::io("read your answer", error))?;
    Ok((typed > 0).then(|| line.trim().to_owned()))
}

pub(crate) fn confirm(question: &str) -> CliResult<bool> {
    let answer = ask(&format!("{question} [y/N]"))?;
    Ok(answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")))
}

/// Asks for confirmation. Fails if the user declines, or if there is no terminal to ask on.
pub(crate) fn require_confirmation(question: &str, command_without_question: &str) -> CliResult {
    if !std::io::stdin().is_terminal() {
        let because = "cannot ask for confirmation without a terminal";
        return Err(CliError::usage(question).because(because).hint(command_without_question));
    }
    if confirm(question)? { Ok(()) } else { Err(CliError::silent(CliExit::Failed)) }
}
