//! The last part of a command's output, short enough for a language model.

use crate::text;

/// The last part of a command's output, without the `omitted_bytes` before it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutputExcerpt {
    pub text: String,
    pub omitted_bytes: u64,
}

impl OutputExcerpt {
    /// Keeps as many of the last lines as fit into `max_bytes` bytes. If not even the last line fits, keeps its end.
    pub fn tail(output: &[u8], max_bytes: usize) -> Self {
        let from = output.len().saturating_sub(max_bytes);
        let is_line_start = |at: usize| at == 0 || output[at - 1] == b'\n';
        let next_line = || output[from..].iter().position(|byte| *byte == b'\n').map(|at| from + at + 1);
        let start = match is_line_start(from) {
            true => from,
            false => next_line().filter(|start| *start < output.len()).unwrap_or_else(|| character_start(output, from)),
        };
        Self { text: text::from_bytes(&output[start..]), omitted_bytes: start as u64 }
    }
}

/// The first position at or after `from` that does not lie inside a character.
fn character_start(bytes: &[u8], from: usize) -> usize {
    (from..bytes.len()).find(|at| bytes[*at] & 0xc0 != 0x80).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_lines_are_kept() {
        let tail = |output: &str, max| {
            let excerpt = OutputExcerpt::tail(output.as_bytes(), max);
            (excerpt.text, excerpt.omitted_bytes)
        };
        assert_eq!(tail("a\nb\n", 10), ("a\nb\n".into(), 0));
        assert_eq!(tail("one\ntwo\nthree\n", 10), ("two\nthree\n".into(), 4));
        assert_eq!(tail("one\ntwo\nthree\n", 8), ("three\n".into(), 8));
        assert_eq!(tail("éééé", 5), ("éé".into(), 4));
        assert_eq!(tail("", 5), (String::new(), 0));
    }
}
