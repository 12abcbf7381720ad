//! A batch of shell lines, and the parser that separates the outputs of the lines.

use super::ShellError;

/// The maximum size of a batch's output. Valid output is always smaller, so a host that sends more is misbehaving.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// The name of the shell function that runs after each line. It prints the end marker and the line's exit status, both
/// to stdout and to stderr.
const END_FUNCTION: &str = "agtmux_end";

/// Lines for a POSIX shell. The shell runs all of them in order, even if some of them fail.
#[derive(Debug, Clone)]
pub(crate) struct ShellBatch {
    lines: Vec<Vec<u8>>,
    /// The maximum size of the output of all lines together.
    max_bytes: usize,
}

impl Default for ShellBatch {
    fn default() -> Self {
        Self::with_limit(MAX_OUTPUT_BYTES)
    }
}

/// The output and exit status of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShellOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) status: i32,
}

impl ShellBatch {
    pub(crate) fn with_limit(most: usize) -> Self {
        Self { lines: Vec::new(), max_bytes: most }
    }

    pub(super) fn reader(&self, marker: &str) -> ShellOutputReader {
        ShellOutputReader { max_bytes: self.max_bytes, ..ShellOutputReader::new(marker, self.len()) }
    }

    /// Adds a line. Returns the index that the line's output will have in the result.
    pub(crate) fn add(&mut self, line: impl Into<Vec<u8>>) -> usize {
        self.lines.push(line.into());
        self.lines.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    #[cfg(test)]
    pub(super) fn lines(&self) -> &[Vec<u8>] {
        &self.lines
    }

    /// The script that runs the lines. Each line gets an empty stdin, so that no program can read the rest of the
    /// script.
    pub(super) fn script(&self, marker: &str) -> Vec<u8> {
        let mut script = Vec::new();
        for line in &self.lines {
            script.extend(b"{ ");
            script.extend(line);
            script.extend(format!("\n}} </dev/null\n{END_FUNCTION} {marker}\n").bytes());
        }
        script
    }
}

/// The script that every new shell runs first. It defines the function that marks the end of a line's output, and
/// unsets variables that could influence the commands.
pub(super) fn preamble() -> String {
    format!(
        "{END_FUNCTION}() {{ set -- \"$1\" \"$?\"; printf '%s:%s.' \"$1\" \"$2\"; printf '%s:%s.' \"$1\" \"$2\" >&2; }}\n\
         unset TMUX TMUX_PANE CDPATH\n"
    )
}

/// Collects stdout or stderr of the shell until every line of the batch has ended.
#[derive(Debug, Default)]
pub(super) struct ShellOutputReader {
    marker: Vec<u8>,
    expected: usize,
    buffer: Vec<u8>,
    /// The buffer contains no marker before this offset.
    searched: usize,
    parts: Vec<(Vec<u8>, i32)>,
    read: usize,
    max_bytes: usize,
}

impl ShellOutputReader {
    /// `marker` must be random and new for each batch, so that no output can contain it by accident or on purpose.
    pub(super) fn new(marker: &str, expected: usize) -> Self {
        let marker = format!("{marker}:").into_bytes();
        Self { marker, expected, max_bytes: MAX_OUTPUT_BYTES, ..Self::default() }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.parts.len() >= self.expected
    }

    /// How many lines of the batch have ended.
    pub(super) fn finished_lines(&self) -> usize {
        self.parts.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ShellError> {
        self.read += bytes.len();
        if self.read > self.max_bytes {
            return Err(ShellError::OutputTooLarge(self.max_bytes >> 20));
        }
        self.buffer.extend_from_slice(bytes);
        while let Some((end, status, next)) = self.find() {
            let rest = self.buffer.split_off(next);
            self.buffer.truncate(end);
            self.parts.push((std::mem::replace(&mut self.buffer, rest), status));
            self.searched = 0;
        }
        Ok(())
    }

    /// The start of the next marker, the exit status that follows the marker, and the position after the status.
    fn find(&mut self) -> Option<(usize, i32, usize)> {
        let from = self.searched;
        let at = self.buffer[from..].windows(self.marker.len()).position(|window| window == self.marker);
        let Some(at) = at.map(|at| from + at) else {
            self.searched = self.buffer.len().saturating_sub(self.marker.len() - 1).max(from);
            return None;
        };
        self.searched = at;
        let after = at + self.marker.len();
        let length = self.buffer[after..].iter().position(|&byte| byte == b'.')?;
        let status = std::str::from_utf8(&self.buffer[after..after + length]).ok()?.parse().ok()?;
        Some((at, status, after + length + 1))
    }
}

/// Combines the stdout and the stderr of each line.
pub(super) fn merge_outputs(stdout: ShellOutputReader, stderr: ShellOutputReader) -> Vec<ShellOutput> {
    let pairs = stdout.parts.into_iter().zip(stderr.parts);
    pairs.map(|((stdout, status), (stderr, _))| ShellOutput { stdout, stderr, status }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn outputs_of_a_real_shell_are_separated() {
        let mut batch = ShellBatch::default();
        for line in ["printf 'a\\n'; printf b >&2", "false", "cat", "exit_is_unknown_here", "(exit 3)"] {
            batch.add(line);
        }
        let marker = "5f0c3a";
        let mut shell = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let script = [preamble().into_bytes(), batch.script(marker)].concat();
        shell.stdin.take().expect("piped").write_all(&script).expect("written");
        let output = shell.wait_with_output().expect("the process ends");
        let (mut out, mut err) = (ShellOutputReader::new(marker, 5), ShellOutputReader::new(marker, 5));
        out.push(&output.stdout).expect("within the limit");
        err.push(&output.stderr).expect("within the limit");
        assert!(out.is_complete() && err.is_complete());
        let answers = merge_outputs(out, err);
        assert_eq!(answers[0], ShellOutput { stdout: b"a\n".to_vec(), stderr: b"b".to_vec(), status: 0 });
        let statuses: Vec<i32> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [0, 1, 0, 127, 3]);
        assert_eq!(answers[2].stdout, b"", "cat reads no part of the script");
    }

    proptest! {
        /// Outputs may contain any bytes, and may arrive in chunks of any size.
        #[test]
        fn outputs_are_parsed_from_any_chunks(
            parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..40), 0..256_i32), 1..5),
            cut in 1..9_usize,
        ) {
            let marker = "5f0c3a5f0c3a";
            let mut all = Vec::new();
            for (bytes, status) in &parts {
                all.extend(bytes);
                all.extend(format!("{marker}:{status}.").bytes());
            }
            let mut reader = ShellOutputReader::new(marker, parts.len());
            for chunk in all.chunks(cut) {
                prop_assert!(!reader.is_complete());
                prop_assert!(reader.push(chunk).is_ok());
            }
            prop_assert!(reader.is_complete());
            prop_assert_eq!(reader.parts, parts);
        }
    }
}
