//! Writing to stdout, which the reader may close at any time.

use std::io::Write;

use agtmux_client::parse;
use agtmux_core::sanitize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CliError, CliResult, stdout_failed};

pub(crate) fn print(text: &str) -> CliResult {
    write(&[text.as_bytes()])
}

/// Writes the bytes unchanged, and a newline.
pub(crate) fn line(bytes: &[u8]) -> CliResult {
    write(&[bytes.strip_suffix(b"\n").unwrap_or(bytes), b"\n"])
}

pub(crate) fn lines(lines: &[String]) -> CliResult {
    print(&lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>())
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> CliResult {
    line(&serde_json::to_vec(value).map_err(|error| CliError::io("write JSON", error))?)
}

/// Prints lines that may contain text of other programs.
pub(crate) fn foreign_lines<T: AsRef<str>>(foreign: impl IntoIterator<Item = T>) -> CliResult {
    lines(&foreign.into_iter().map(|line| sanitize::for_terminal(line.as_ref())).collect::<Vec<_>>())
}

/// Prints the daemon's answer: as JSON, or as the lines that `describe` returns.
pub(crate) fn answer<T: DeserializeOwned>(
    answer: &[u8],
    json: bool,
    describe: impl FnOnce(&T) -> Vec<String>,
) -> CliResult {
    if json { line(answer) } else { lines(&describe(&parse(answer)?)) }
}

/// Like `answer`, and returns the parsed answer.
pub(crate) fn parsed_answer<T: DeserializeOwned>(
    answer: &[u8],
    json: bool,
    describe: impl FnOnce(&T) -> Vec<String>,
) -> CliResult<T> {
    let parsed = parse(answer)?;
    if json {
        line(answer)?
    } else {
        lines(&describe(&parsed))?
    }
    Ok(parsed)
}

fn write(parts: &[&[u8]]) -> CliResult {
    // Rust's stdout flushes at every line, which is slow for an output of a megabyte.
    let mut out = std::io::BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush()).map_err(stdout_failed)
}
