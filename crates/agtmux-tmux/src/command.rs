//! Builds tmux commands, and frames their outputs so that they can be separated.

use std::ffi::{OsStr, OsString};

use memchr::memmem::find;

/// One tmux command with its arguments. It is not run by a shell. A `;` at the end of an argument is escaped, because
/// tmux would read it as a command separator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxCommand {
    words: Vec<OsString>,
}

impl TmuxCommand {
    pub fn new(name: &'static str) -> Self {
        Self { words: vec![name.into()] }
    }

    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(escape_trailing_semicolon(word.as_ref()));
        self
    }

    /// A command that expands a format for a pane and prints the result. The pane is named by its id, because tmux
    /// would match a name by prefix.
    pub fn display(format: &str, pane: Option<u32>) -> Self {
        let command = Self::new("display-message").arg("-p");
        let command = match pane {
            Some(id) => command.arg("-t").arg(format!("%{id}")),
            None => command,
        };
        command.arg(format)
    }

    /// The command as one line that tmux can parse. Some tmux commands take another command in this form as an
    /// argument.
    pub(crate) fn line(&self) -> OsString {
        use std::os::unix::ffi::{OsStrExt, OsStringExt};
        let words: Vec<Vec<u8>> = self.words.iter().map(|word| quote_on_one_line(word.as_bytes())).collect();
        OsString::from_vec(words.join(&b' '))
    }

    /// Adds an argument without escaping a `;` at its end. Use this if the command is converted with
    /// [`line`](Self::line), because `line` quotes every argument.
    pub(crate) fn literal(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }
}

/// The replacement for a newline inside single quotes. It closes the quotes, adds an escaped newline in double quotes,
/// and opens single quotes again.
pub(crate) const QUOTED_NEWLINE: &str = "'\"\\n\"'";

/// Quotes a word for tmux's parser. The result contains no raw newline, because the parser would remove a backslash
/// that stands before a newline, even between quotes.
fn quote_on_one_line(word: &[u8]) -> Vec<u8> {
    let quoted = crate::tap::quoted(word);
    quoted.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(QUOTED_NEWLINE.as_bytes())
}

/// Escapes a `;` at the end of a word, because tmux would read it as the end of the command.
fn escape_trailing_semicolon(word: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    match word.as_bytes().strip_suffix(b";") {
        Some(rest) => OsString::from_vec([rest, b"\\;"].concat()),
        None => word.to_owned(),
    }
}

/// The arguments with which one call of tmux runs several commands.
pub(crate) fn chain_arguments(commands: &[TmuxCommand]) -> impl Iterator<Item = OsString> + '_ {
    commands.iter().enumerate().flat_map(|(n, command)| {
        let separator = (n > 0).then(|| OsString::from(";"));
        separator.into_iter().chain(command.words().iter().cloned())
    })
}

/// A random marker for the output of one tmux call. The marker separates the records and fields of the output. A title
/// or path that existed before the call cannot contain the marker, so it cannot forge a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framing {
    marker: String,
}

pub(crate) const SECTION_HEAD: char = 'h';
pub(crate) const SECTION_END: char = 'e';

impl Framing {
    pub fn fresh() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        Self { marker: random[..12].to_owned() }
    }

    #[cfg(test)]
    pub(crate) fn fixed(marker: &str) -> Self {
        Self { marker: marker.to_owned() }
    }

    /// A format that prints one record with these fields.
    pub fn record(&self, kind: char, fields: &[&str]) -> String {
        let w = &self.marker;
        format!("{w}{kind}{}{w}.", fields.join(&format!("{w}|")))
    }

    /// A format that prints one record with the values of these tmux variables. In `names`, the names of the variables
    /// are separated by blanks.
    pub(crate) fn variables(&self, kind: char, names: &str) -> String {
        let formats: Vec<String> = names.split(' ').map(|name| format!("#{{{name}}}")).collect();
        self.record(kind, &formats.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Commands that print one section: the values of these variables of the pane, followed by the output of `body`.
    pub(crate) fn section(&self, pane: u32, variables: &str, body: TmuxCommand) -> [TmuxCommand; 3] {
        let head = TmuxCommand::display(&self.variables(SECTION_HEAD, variables), Some(pane));
        [head, body, TmuxCommand::display(&self.record(SECTION_END, &[]), Some(pane))]
    }

    /// The variables and the output of each section in `answer`. A section without an end record is skipped.
    pub(crate) fn sections<'a>(&self, answer: &'a [u8]) -> impl Iterator<Item = (Vec<&'a [u8]>, &'a [u8])> {
        let end = self.record(SECTION_END, &[]);
        self.groups(SECTION_HEAD, answer).into_iter().filter_map(move |(fields, body)| {
            let body = &body[..find(body, end.as_bytes())?];
            Some((fields, body.strip_prefix(b"\n").unwrap_or(body)))
        })
    }

    /// For each record of this kind, returns its fields and the text up to the next record of this kind.
    pub(crate) fn groups<'a>(&self, kind: char, answer: &'a [u8]) -> Vec<(Vec<&'a [u8]>, &'a [u8])> {
        let [start, close, separator] = [kind, '.', '|'].map(|sign| format!("{}{sign}", self.marker));
        // Text before the first record belongs to no group.
        let groups = split(answer, start.as_bytes()).into_iter().skip(1).filter_map(|group| {
            // A record without its end mark was cut off and is skipped.
            let length = find(group, close.as_bytes())?;
            Some((split(&group[..length], separator.as_bytes()), &group[length + close.len()..]))
        });
        groups.collect()
    }

    /// Returns the fields of each record of this kind. Text between the records is ignored.
    pub fn records<'a>(&self, kind: char, answer: &'a [u8]) -> Vec<Vec<&'a [u8]>> {
        self.groups(kind, answer).into_iter().map(|(fields, _)| fields).collect()
    }
}

fn split<'a>(mut text: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(text, separator) {
        parts.push(&text[..at]);
        text = &text[at + separator.len()..];
    }
    parts.push(text);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_trailing_semicolon_is_escaped() {
        let words: Vec<_> =
            chain_arguments(&[TmuxCommand::new("a").arg("x;").arg(";"), TmuxCommand::new("b")]).collect();
        assert_eq!(words, ["a", "x\\;", "\\;", ";", "b"]);
    }

    #[test]
    fn a_command_line_contains_no_raw_newline() {
        let line = TmuxCommand::new("a").literal("it's \\\nb").literal("c").line();
        assert_eq!(line.to_string_lossy(), r#"'a' 'it'\''s \'"\n"'b' 'c'"#);
    }

    #[test]
    fn a_newline_in_a_field_starts_no_record() {
        let framing = Framing::fixed("WORD");
        let answer = b"WORDp%1WORD|a\n%9 FAKEWORD.\nWORDp%2WORD|bWORD.\n";
        assert_eq!(framing.records('p', answer), [[&b"%1"[..], b"a\n%9 FAKE"], [b"%2", b"b"]]);
    }

    #[test]
    fn an_incomplete_record_is_ignored() {
        let framing = Framing::fixed("WORD");
        assert_eq!(framing.records('p', b"WORDp%1WORD|aWORD.\nWORDp%2WORD|b"), [[&b"%1"[..], b"a"]]);
    }

    proptest! {
        #[test]
        fn records_return_the_fields_unchanged(rows in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 1..4), 0..5)) {
            let framing = Framing::fresh();
            let mut answer = Vec::new();
            for row in &rows {
                answer.extend(format!("{}p", framing.marker).bytes());
                for (n, field) in row.iter().enumerate() {
                    if n > 0 {
                        answer.extend(format!("{}|", framing.marker).bytes());
                    }
                    answer.extend(field);
                }
                answer.extend(format!("{}.\n", framing.marker).bytes());
            }
            let back: Vec<Vec<Vec<u8>>> = framing.records('p', &answer).into_iter()
                .map(|r| r.into_iter().map(<[u8]>::to_vec).collect()).collect();
            prop_assert_eq!(back, rows);
        }
    }
}
