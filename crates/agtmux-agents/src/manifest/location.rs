//! Finds the line of an error in a manifest file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Why a manifest cannot be used, with file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", format_location(file, *line, problem))]
pub struct ManifestError {
    pub file: String,
    /// The line, counted from one. None if the error concerns the whole file.
    pub line: Option<usize>,
    pub problem: String,
}

impl ManifestError {
    /// An error that concerns the whole file.
    pub(crate) fn for_file(file: &str, problem: String) -> Self {
        Self { file: file.into(), line: None, problem }
    }

    pub(super) fn syntax(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let line = error.span().map(|span| line_at(text, span.start));
        // The message may have more lines, which list the expected values.
        Self { file: file.into(), line, problem: error.message().lines().collect::<Vec<_>>().join("; ") }
    }

    /// An error in a rule or key. `problem` contains the name of the rule or key in quotes, and this function searches
    /// `text` for that name to find the line.
    pub(super) fn invalid(file: &str, text: &str, problem: String) -> Self {
        Self { file: file.into(), line: line_of_problem(text, &problem), problem }
    }
}

/// Formats a message as `file:line: message`.
pub(super) fn format_location(file: &str, line: Option<usize>, what: &str) -> String {
    match line {
        Some(line) => format!("{file}:{line}: {what}"),
        None => format!("{file}: {what}"),
    }
}

/// The line of the key at this path. A path looks like `screen.0.colour`.
pub(super) fn line_of_key(text: &str, path: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    find_key(document.get_ref(), path).map(|span| line_at(text, span.start))
}

/// The line that a problem refers to. `problem` contains names in quotes. The first name is a rule or the path of a
/// key. If the first name is a rule, the second name may be a key in that rule.
fn line_of_problem(text: &str, problem: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let root = document.get_ref();
    let mut names = problem.split('\'').skip(1).step_by(2);
    let first = names.next()?;
    let span = match table_named(root, first) {
        Some((table, span)) if !problem.starts_with('\'') => {
            names.next().and_then(|key| find_key(table, key)).or(Some(span))
        }
        _ => find_key(root, first),
    };
    span.map(|span| line_at(text, span.start))
}

fn line_at(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|b| *b == b'\n').count()
}

/// The table with this name, in any list. If two tables have the same name, returns the second one, because the
/// repeated name is the error.
fn table_named<'a, 'i>(root: &'a DeTable<'i>, name: &str) -> Option<(&'a DeTable<'i>, Range<usize>)> {
    let lists = root.iter().filter_map(|(_, value)| value.get_ref().as_array());
    let tables = lists.flat_map(|list| list.iter()).filter_map(|item| Some((item.get_ref().as_table()?, item.span())));
    let is_named = |table: &DeTable<'_>| {
        ["name", "type"].iter().any(|key| entry(table, key).is_some_and(|(_, v)| v.get_ref().as_str() == Some(name)))
    };
    tables.filter(|(table, _)| is_named(table)).max_by_key(|(_, span)| span.start)
}

/// The position of the key at this path. If only the first parts of the path exist, returns the position of the last of
/// these parts.
fn find_key(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, value) = entry(table, first)?;
    let inner = match value.get_ref() {
        DeValue::Table(table) => find_key(table, rest),
        DeValue::Array(items) => {
            let (index, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let item = index.parse::<usize>().ok().and_then(|at| items.get(at));
            item.and_then(|item| {
                item.get_ref().as_table().and_then(|table| find_key(table, rest)).or(Some(item.span()))
            })
        }
        _ => None,
    };
    inner.or(Some(key.span()))
}

fn entry<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<(&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    table.iter().find(|(key, _)| key.get_ref() == name)
}

#[cfg(test)]
mod tests {
    use crate::manifest::Manifest;

    const TEXT: &str = "\
contract = 1
name = 'otto'
[process]
programs = ['otto']
[layout]
prompt = '^>'
footer = 1

[[screen]]
name = 'busy'
region = 'above'
all = ['^x']
state = 'running'

[[dialog]]
name = 'ask'
kind = 'input'
options = 'numbered'
hint = 'Enter'

[[event]]
type = 'Stop'
turn = 'completed'
";

    fn error(from: &str, to: &str) -> String {
        assert!(TEXT.contains(from), "{from}");
        Manifest::parse("o.toml", &TEXT.replace(from, to)).expect_err("the manifest is invalid").to_string()
    }

    #[test]
    fn errors_contain_their_line() {
        for (from, to, expected) in [
            ("contract = 1", "contract = 2", "o.toml:1: written for contract 2"),
            ("'otto'\n[", "'Otto'\n[", "o.toml:2: 'name' must consist of lower-case letters"),
            ("['otto']", "[]", "o.toml:4: 'process.programs' must name"),
            ("'^>'", "'('", "o.toml:6: 'layout.prompt' is not a valid regular expression: unclosed group"),
            ("footer = 1", "footer = x", "o.toml:7: "),
            ("['^x']", "['^x', '*']", "o.toml:12: rule 'busy': 'all' is not a valid regular expression"),
            ("all = ['^x']", "", "o.toml:9: rule 'busy' needs a pattern"),
            ("'above'", "'nowhere'", "o.toml:11: unknown variant `nowhere`"),
            ("name = 'ask'", "name = 'busy'", "o.toml:15: two rules are named 'busy'"),
            ("hint = 'Enter'", "hint = ''", "o.toml:19: dialog 'ask': 'hint' is empty"),
            ("turn = 'completed'", "closes = 'same'", "o.toml:23: the event rule for 'Stop' has 'closes' = 'same'"),
            ("contract = 1\n", "", "o.toml:1: missing field `contract`"),
        ] {
            let message = error(from, to);
            assert!(message.starts_with(expected), "{message}\nbut expected\n{expected}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn warnings_about_unknown_keys_contain_their_line() {
        let text = TEXT.replace("hint =", "colour = 1\nhint =").replace("footer", "line = 1\nfooter");
        let warnings = Manifest::parse("o.toml", &text).expect("valid manifest").warnings;
        assert_eq!(
            warnings,
            [
                "o.toml:20: 'dialog.0.colour' is unknown to this version of agtmux and has no effect",
                "o.toml:7: 'layout.line' is unknown to this version of agtmux and has no effect",
            ]
        );
    }
}
