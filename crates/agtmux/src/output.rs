//! Writing to stdout, which the reader may close at any time. Text of other programs is sanitized here.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::OnceLock;

use agtmux_client::parse;
use agtmux_core::{sanitize, text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CliError, CliResult, stdout_failed};
use crate::jq::{JqFilter, JqOutput};

/// The filter of `--jq`. It applies to everything that this process prints as JSON.
static FILTER: OnceLock<JqFilter> = OnceLock::new();

/// Sets the filter for all JSON that this process prints from now on.
pub(crate) fn set_filter(filter: Option<JqFilter>) {
    if let Some(filter) = filter {
        // `set` fails only at a second call, and the command line is parsed only once.
        let _ = FILTER.set(filter);
    }
}

/// Prints bytes that a script needs unchanged, such as a path or a configuration file. On a terminal, characters that
/// act on the terminal are escaped. Tabs and line ends stay.
pub(crate) fn verbatim(bytes: &[u8]) -> CliResult {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if !std::io::stdout().is_terminal() {
        return write(&[bytes, b"\n"]);
    }
    let shown = text::from_bytes(bytes);
    let shown: Vec<String> = shown.split('\n').map(sanitize::keeping_tabs).collect();
    styled_lines(&shown)
}

/// Prints a part of the output of another program, unchanged if stdout is not a terminal. On a terminal, characters
/// that act on the terminal are escaped, except tabs and line ends.
pub(crate) fn part(bytes: &[u8]) -> CliResult {
    if !std::io::stdout().is_terminal() {
        return write(&[bytes]);
    }
    let shown = text::from_bytes(bytes);
    styled(&shown.split('\n').map(sanitize::keeping_tabs).collect::<Vec<_>>().join("\n"))
}

/// Prints one line that may contain text of other programs.
pub(crate) fn line(foreign: &str) -> CliResult {
    lines([foreign])
}

/// Prints lines that may contain text of other programs. A line break inside a line is escaped.
pub(crate) fn lines<T: AsRef<str>>(foreign: impl IntoIterator<Item = T>) -> CliResult {
    styled_lines(&foreign.into_iter().map(|line| sanitize::for_terminal(line.as_ref())).collect::<Vec<_>>())
}

/// Prints lines that contain our colours. The caller has sanitized the text between the colours.
pub(crate) fn styled_lines(lines: &[String]) -> CliResult {
    styled(&lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>())
}

/// Prints text that the caller has sanitized, without a newline after it.
pub(crate) fn styled(text: &str) -> CliResult {
    write(&[text.as_bytes()])
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> CliResult {
    json_document(&serde_json::to_string(value).map_err(|error| CliError::io("write JSON", error))?)
}

/// Prints a JSON document, or several with a newline after each. Characters that act on a terminal are written as JSON
/// escapes, so that the value stays the same.
pub(crate) fn json_document(document: &str) -> CliResult {
    if let Some(filter) = FILTER.get() {
        return filtered(filter, document);
    }
    write(&[sanitize::in_json(document.strip_suffix('\n').unwrap_or(document)).as_bytes(), b"\n"])
}

/// Prints the outputs of a filter, one per line: a text without quotes, every other value as JSON. On a terminal, texts
/// are sanitized. If the filter fails, the outputs before the error are still printed.
fn filtered(filter: &JqFilter, documents: &str) -> CliResult {
    let is_terminal = std::io::stdout().is_terminal();
    let mut out = buffered_stdout();
    let applied = filter.apply(documents, |output| {
        let line = match output {
            JqOutput::Text(text) if is_terminal => {
                text.split('\n').map(sanitize::keeping_tabs).collect::<Vec<_>>().join("\n")
            }
            JqOutput::Text(text) => text,
            JqOutput::Json(json) => sanitize::in_json(&json).into_owned(),
        };
        writeln!(out, "{line}").map_err(stdout_failed)
    });
    out.flush().map_err(stdout_failed)?;
    applied
}

/// Prints the daemon's response, which is JSON.
pub(crate) fn json_answer(answer: &[u8]) -> CliResult {
    json_document(&String::from_utf8_lossy(answer))
}

/// Prints the daemon's response: as JSON, or as the lines that `describe` returns.
pub(crate) fn answer<T: DeserializeOwned>(
    answer: &[u8],
    json: bool,
    describe: impl FnOnce(&T) -> Vec<String>,
) -> CliResult {
    if json { json_answer(answer) } else { lines(describe(&parse(answer)?)) }
}

/// Like `answer`, and returns the parsed response.
pub(crate) fn parsed_answer<T: DeserializeOwned>(
    answer: &[u8],
    json: bool,
    describe: impl FnOnce(&T) -> Vec<String>,
) -> CliResult<T> {
    let parsed = parse(answer)?;
    if json {
        json_answer(answer)?
    } else {
        lines(describe(&parsed))?
    }
    Ok(parsed)
}

/// Returns stdout with a large buffer. Rust's own stdout flushes at every line, which is slow for a megabyte of output.
fn buffered_stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(64 * 1024, std::io::stdout().lock())
}

fn write(parts: &[&[u8]]) -> CliResult {
    let mut out = buffered_stdout();
    parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush()).map_err(stdout_failed)
}
