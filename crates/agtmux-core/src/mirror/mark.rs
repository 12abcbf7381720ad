//! One mark of the shell.

use super::quoted::{percent_decode, unquote};

/// A mark that contains the nonce of the pane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellMark {
    pub kind: ShellMarkKind,
    /// The number of the prompt that the mark belongs to.
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellMarkKind {
    /// `A`: a new prompt begins, in this directory.
    PromptStart { cwd: Option<String> },
    /// `B`: the prompt is drawn. Carries the exit code of the last command. Repeated when the prompt is drawn again.
    PromptEnd { code: Option<i32> },
    /// `P`: the shell wants another line, because the command is not complete.
    MoreInput,
    /// `I`: the shell has accepted a command from agtmux, and has saved this many characters that the user had typed.
    Taken { exec: String, stashed: u64 },
    /// `R`: the shell has restored the line that the user had typed.
    Returned,
    /// `C`: a command starts. Bash repeats this mark for each line of the command, and omits the text of the command.
    CommandStart { text: Option<String> },
    /// `X`: the output has ended. The bytes after this mark belong to the prompt.
    OutputEnd,
    /// `D`: the command ended. `ran` is false if the shell returns to the prompt without a command.
    CommandEnd { code: i32, ran: bool, text: Option<String> },
}

/// The fields of a mark.
#[derive(Default)]
struct MarkFields {
    nonce: Option<Vec<u8>>,
    /// The fields without a name, in order. All of them are numbers.
    numbers: Vec<i64>,
    exec: Option<String>,
    stashed: u64,
    ran: bool,
    /// False if `text` is the text of an earlier command.
    is_text_current: bool,
    text: Option<String>,
}

impl ShellMark {
    /// Parses the content of an OSC sequence, without the introducer and the terminator: `133;C;agt=NONCE;7`. Returns
    /// `None` if the content is not a mark, or has another nonce.
    pub fn parse(content: &[u8], nonce: &[u8]) -> Option<Self> {
        let fields = content.strip_prefix(b"133;")?;
        let (&letter, fields) = fields.split_first()?;
        let fields = MarkFields::read(fields.strip_prefix(b";")?)?;
        if fields.nonce.as_deref() != Some(nonce) {
            return None;
        }
        let text = fields.text.filter(|_| fields.is_text_current);
        let first = fields.numbers.first().copied();
        let second = fields.numbers.get(1).copied();
        let (seq, kind) = match letter {
            b'A' => (first, ShellMarkKind::PromptStart { cwd: text }),
            b'B' => (first, ShellMarkKind::PromptEnd { code: second.and_then(|code| i32::try_from(code).ok()) }),
            b'P' => (first, ShellMarkKind::MoreInput),
            b'I' => (first, ShellMarkKind::Taken { exec: fields.exec?, stashed: fields.stashed }),
            b'R' => (first, ShellMarkKind::Returned),
            b'C' => (first, ShellMarkKind::CommandStart { text }),
            b'X' => (first, ShellMarkKind::OutputEnd),
            b'D' => (second, ShellMarkKind::CommandEnd { code: i32::try_from(first?).ok()?, ran: fields.ran, text }),
            _ => return None,
        };
        Some(Self { kind, seq: u64::try_from(seq?).ok()? })
    }
}

impl MarkFields {
    fn read(mut rest: &[u8]) -> Option<Self> {
        let mut fields = Self { ran: true, is_text_current: true, ..Self::default() };
        while !rest.is_empty() {
            // A text is the last field, because it may contain semicolons.
            if let Some(text) = rest.strip_prefix(b"q=") {
                fields.text = Some(unquote(text)?);
                break;
            }
            if let Some(text) = rest.strip_prefix(b"u=") {
                fields.text = Some(percent_decode(text));
                break;
            }
            let end = rest.iter().position(|byte| *byte == b';').unwrap_or(rest.len());
            fields.read_one(&rest[..end])?;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Some(fields)
    }

    fn read_one(&mut self, field: &[u8]) -> Option<()> {
        let text = str::from_utf8(field).ok()?;
        match text.split_once('=') {
            Some(("agt", nonce)) => self.nonce = Some(nonce.as_bytes().to_vec()),
            Some(("i", exec)) => self.exec = Some(exec.to_owned()),
            Some(("s", length)) => self.stashed = length.parse().ok()?,
            Some(("r", ran)) => self.ran = ran == "1",
            Some(("h", stored)) => self.is_text_current = stored == "1",
            // Fields of later versions of agtmux are ignored.
            Some(_) => {}
            None => self.numbers.push(text.parse().ok()?),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(content: &str) -> Option<(u64, ShellMarkKind)> {
        ShellMark::parse(content.as_bytes(), b"N0").map(|mark| (mark.seq, mark.kind))
    }

    #[test]
    fn every_mark_of_the_shells_is_read() {
        let text = |text: &str| Some(text.to_owned());
        let end = |code, ran, text| ShellMarkKind::CommandEnd { code, ran, text };
        for (content, seq, expected) in [
            ("133;A;agt=N0;4;q='/tmp/a;b'", 4, ShellMarkKind::PromptStart { cwd: text("/tmp/a;b") }),
            ("133;B;agt=N0;4;130", 4, ShellMarkKind::PromptEnd { code: Some(130) }),
            ("133;B;agt=N0;4", 4, ShellMarkKind::PromptEnd { code: None }),
            ("133;P;agt=N0;4", 4, ShellMarkKind::MoreInput),
            ("133;I;agt=N0;4;i=a1;s=9", 4, ShellMarkKind::Taken { exec: "a1".into(), stashed: 9 }),
            ("133;R;agt=N0;4", 4, ShellMarkKind::Returned),
            ("133;C;agt=N0;4", 4, ShellMarkKind::CommandStart { text: None }),
            ("133;C;agt=N0;4;u=a%3Bb", 4, ShellMarkKind::CommandStart { text: text("a;b") }),
            ("133;X;agt=N0;4", 4, ShellMarkKind::OutputEnd),
            ("133;D;1;agt=N0;4;r=1;h=1;q='a b'", 4, end(1, true, text("a b"))),
            ("133;D;1;agt=N0;4;r=1;h=0;q='older'", 4, end(1, true, None)),
            ("133;D;2;agt=N0;4;r=0", 4, end(2, false, None)),
            ("133;D;0;agt=N0;4", 4, end(0, true, None)),
        ] {
            assert_eq!(kind(content), Some((seq, expected)), "{content}");
        }
    }

    #[test]
    fn marks_without_the_nonce_or_with_broken_fields_are_no_marks() {
        for content in [
            "133;D;0",
            "133;D;0;agt=N1;4",
            "133;D;0;agt=;4",
            "133;D;x;agt=N0;4",
            "133;D;agt=N0;4",
            "133;C;agt=N0;-4",
            "133;C;agt=N0",
            "133;C",
            "133;",
            "0;title",
            "133;I;agt=N0;4",
            "133;C;agt=N0;4;q='open",
            "133;Z;agt=N0;4",
        ] {
            assert_eq!(kind(content), None, "{content}");
        }
    }
}
