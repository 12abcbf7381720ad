//! Writing to stdout, which the reader may close at any time.

use std::io::Write;

use agtmux_client::parse;
use serde::de::DeserializeOwned;

use crate::error::{CliError, CliExit, stdout_failed};

pub(crate) fn print(text: &str) -> Result<(), CliError> {
    write(&[text.as_bytes()])
}

/// Writes the bytes unchanged, and a newline.
pub(crate) fn line(bytes: &[u8]) -> Result<(), CliError> {
    write(&[bytes.strip_suffix(b"\n").unwrap_or(bytes), b"\n"])
}

pub(crate) fn lines(lines: &[String]) -> Result<(), CliError> {
    let mut text = lines.join("\n");
    if !lines.is_empty() {
        text.push('\n');
    }
    print(&text)
}

/// Prints the daemon's answer as JSON, or the lines that describe it.
pub(crate) fn answer<T: DeserializeOwned>(
    answer: &[u8],
    json: bool,
    describe: impl FnOnce(&T) -> Vec<String>,
) -> Result<CliExit, CliError> {
    if json {
        line(answer)?
    } else {
        lines(&describe(&parse(answer)?))?
    }
    Ok(CliExit::Ok)
}

fn write(parts: &[&[u8]]) -> Result<(), CliError> {
    // Rust's stdout flushes at every line, which is slow for an output of a megabyte.
    let mut out = std::io::BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush()).map_err(stdout_failed)
}
