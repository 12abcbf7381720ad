use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use agtmux_api::paths::Paths;
use agtmux_core::{sanitize, text};
use clap::Args;

use crate::error::{CliError, CliResult};
use crate::output;

const POLL_INTERVAL: Duration = Duration::from_millis(200);
const FIRST_BLOCK: u64 = 64 * 1024;

#[derive(Debug, Args)]
pub(crate) struct DaemonLogsArgs {
    /// Print the last N lines
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
    lines: usize,
    /// Keep printing new lines
    #[arg(short, long)]
    follow: bool,
    /// Print the path of the log and exit
    #[arg(long)]
    path: bool,
}

pub(super) fn run(args: DaemonLogsArgs) -> CliResult {
    let path = Paths::from_env()?.log();
    if args.path {
        return output::verbatim(path.as_os_str().as_encoded_bytes());
    }
    let mut file = open(&path)?;
    let fault = |error| CliError::io(&format!("read '{}'", path.display()), error);
    let end = tail(&mut file, args.lines).map_err(fault)?;
    print_log(&end)?;
    if args.follow {
        follow(&path, file)?;
    }
    Ok(())
}

fn open(path: &Path) -> CliResult<File> {
    File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => CliError::failed(format!("no log file at '{}'", path.display()))
            .because("only a background daemon writes this file; `agtmux daemon run` logs to stderr")
            .hint("agtmux daemon start"),
        _ => CliError::io(&format!("open '{}'", path.display()), error),
    })
}

/// Returns the last lines and leaves the file position at the end. Reads a block at the end of the file. If the block
/// holds too few lines, reads a larger block instead.
fn tail(file: &mut File, lines: usize) -> std::io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut block = FIRST_BLOCK;
    loop {
        let start = length.saturating_sub(block);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if let Some(from) = start_of_last(&bytes, lines) {
            return Ok(bytes.split_off(from));
        }
        if start == 0 {
            return Ok(bytes);
        }
        block *= 4;
    }
}

/// The offset in `bytes` at which the last `lines` lines start. `None` if `bytes` may not contain the start of the
/// first of these lines.
fn start_of_last(bytes: &[u8], lines: usize) -> Option<usize> {
    if lines == 0 {
        return Some(bytes.len());
    }
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    breaks.map(|(at, _)| at + 1).nth(lines - 1)
}

fn follow(path: &Path, mut file: File) -> CliResult {
    let fault = |error| CliError::io(&format!("read '{}'", path.display()), error);
    loop {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fault)?;
        print_log(&bytes)?;
        if let Some(successor) = replaced(path, &mut file).map_err(fault)? {
            file = successor;
            continue;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the new file if the log was rotated. If the file was truncated, moves the read position back to the start.
fn replaced(path: &Path, file: &mut File) -> std::io::Result<Option<File>> {
    let current = file.metadata()?;
    if current.len() < file.stream_position()? {
        file.seek(SeekFrom::Start(0))?;
    }
    match std::fs::metadata(path) {
        Ok(now) if (now.ino(), now.dev()) != (current.ino(), current.dev()) => File::open(path).map(Some),
        _ => Ok(None),
    }
}

/// Prints lines of the log. Sanitizes each line, because the log contains names and titles from other programs.
fn print_log(bytes: &[u8]) -> CliResult {
    let mut safe = String::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let (line, end) = line.strip_suffix(b"\n").map_or((line, ""), |line| (line, "\n"));
        safe.push_str(&sanitize::for_terminal(&text::from_bytes(line)));
        safe.push_str(end);
    }
    output::styled(&safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn last(content: &str, lines: usize) -> String {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content.as_bytes()).expect("written");
        String::from_utf8(tail(&mut file, lines).expect("read")).expect("text")
    }

    #[test]
    fn tail_returns_the_last_lines() {
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\nb\n", 9), "a\nb\n");
        assert_eq!(last("a\nb\n", 0), "");
        assert_eq!(last("", 5), "");
    }

    #[test]
    fn long_logs_are_read_from_the_end() {
        let line = "x".repeat(999);
        let content = format!("{line}\n").repeat(1000) + "end\n";
        assert_eq!(last(&content, 1), "end\n");
        assert_eq!(last(&content, 500).lines().count(), 500);
        assert_eq!(last(&content, 5000).len(), content.len());
    }
}
