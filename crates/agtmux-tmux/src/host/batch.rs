//! What is asked of a shell in one go, and how its answers are told apart.

use super::ShellError;

/// More than any answer has; a host that sends more is not answering our question.
const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// The name of the function that ends each answer with its status, on both of its ways out. It lives in our shell only.
const END_FUNCTION: &str = "agtmux_end";

/// Command lines of a POSIX shell, run one after the other, whatever becomes of those before.
#[derive(Debug, Clone)]
pub(crate) struct ShellBatch {
    lines: Vec<Vec<u8>>,
    /// How many bytes the answer may have.
    max_bytes: usize,
}

impl Default for ShellBatch {
    fn default() -> Self {
        Self::with_limit(MAX_OUTPUT_BYTES)
    }
}

/// What one of them printed, and how it ended.
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

    pub(super) fn reader(&self, word: &str) -> ShellOutputReader {
        ShellOutputReader { max_bytes: self.max_bytes, ..ShellOutputReader::new(word, self.len()) }
    }

    /// Adds a line, and tells which answer will be its own.
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

    /// What is written to the shell. Nothing in it can read what comes behind it.
    pub(super) fn script(&self, word: &str) -> Vec<u8> {
        let mut script = Vec::new();
        for line in &self.lines {
            script.extend(b"{ ");
            script.extend(line);
            script.extend(format!("\n}} </dev/null\n{END_FUNCTION} {word}\n").bytes());
        }
        script
    }
}

/// What a shell is told before it is asked anything: who ends an answer, and to forget in which tmux it may be.
pub(super) fn preamble() -> String {
    format!(
        "{END_FUNCTION}() {{ set -- \"$1\" \"$?\"; printf '%s:%s.' \"$1\" \"$2\"; printf '%s:%s.' \"$1\" \"$2\" >&2; }}\n\
         unset TMUX TMUX_PANE CDPATH\n"
    )
}

/// One way out of the shell: collects until every line has ended.
#[derive(Debug)]
pub(super) struct ShellOutputReader {
    mark: Vec<u8>,
    expected: usize,
    buffer: Vec<u8>,
    /// Up to here there is no mark.
    searched: usize,
    parts: Vec<(Vec<u8>, i32)>,
    read: usize,
    max_bytes: usize,
}

impl ShellOutputReader {
    /// The word is made anew for each question, so that nothing that is printed can hold it.
    pub(super) fn new(word: &str, wanted: usize) -> Self {
        let mark = format!("{word}:").into_bytes();
        Self {
            mark,
            expected: wanted,
            buffer: Vec::new(),
            searched: 0,
            parts: Vec::new(),
            read: 0,
            max_bytes: MAX_OUTPUT_BYTES,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.parts.len() >= self.expected
    }

    /// How many lines have ended.
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

    /// Where the next mark stands, what it says, and what comes behind it.
    fn find(&mut self) -> Option<(usize, i32, usize)> {
        let from = self.searched;
        let at = self.buffer[from..].windows(self.mark.len()).position(|window| window == self.mark);
        let Some(at) = at.map(|at| from + at) else {
            self.searched = self.buffer.len().saturating_sub(self.mark.len() - 1).max(from);
            return None;
        };
        self.searched = at;
        let behind = at + self.mark.len();
        let length = self.buffer[behind..].iter().position(|&byte| byte == b'.')?;
        let status = std::str::from_utf8(&self.buffer[behind..behind + length]).ok()?.parse().ok()?;
        Some((at, status, behind + length + 1))
    }
}

/// Puts the two ways out together.
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
    fn answers_are_told_apart_by_a_real_shell() {
        let mut question = ShellBatch::default();
        for line in ["printf 'a\\n'; printf b >&2", "false", "cat", "exit_is_unknown_here", "(exit 3)"] {
            question.add(line);
        }
        let word = "5f0c3a";
        let mut shell = Command::new("sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let script = [preamble().into_bytes(), question.script(word)].concat();
        shell.stdin.take().expect("piped").write_all(&script).expect("written");
        let output = shell.wait_with_output().expect("it ends");
        let (mut out, mut err) = (ShellOutputReader::new(word, 5), ShellOutputReader::new(word, 5));
        out.push(&output.stdout).expect("short");
        err.push(&output.stderr).expect("short");
        assert!(out.is_complete() && err.is_complete());
        let answers = merge_outputs(out, err);
        assert_eq!(answers[0], ShellOutput { stdout: b"a\n".to_vec(), stderr: b"b".to_vec(), status: 0 });
        let statuses: Vec<i32> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [0, 1, 0, 127, 3]);
        assert_eq!(answers[2].stdout, b"", "nothing reads what is behind it");
    }

    proptest! {
        /// However the bytes are cut, and whatever is printed.
        #[test]
        fn answers_come_back_whole(
            parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..40), 0..256_i32), 1..5),
            cut in 1..9_usize,
        ) {
            let word = "5f0c3a5f0c3a";
            let mut all = Vec::new();
            for (bytes, status) in &parts {
                all.extend(bytes);
                all.extend(format!("{word}:{status}.").bytes());
            }
            let mut reader = ShellOutputReader::new(word, parts.len());
            for chunk in all.chunks(cut) {
                prop_assert!(!reader.is_complete());
                prop_assert!(reader.push(chunk).is_ok());
            }
            prop_assert!(reader.is_complete());
            prop_assert_eq!(reader.parts, parts);
        }
    }
}
