//! Codex's `notify`, a root key of config.toml. Codex allows one program, so agtmux calls the user's program after its
//! own work.

use std::ops::Range;

use toml_edit::{Array, Document, Item};

use super::{EditError, EditHints, TextSplice, apply, content_start, newline_of};
use crate::commands::setup::command::HookCommand;

const NOTIFY: &str = "notify";
const THEN: &str = "--then";

/// Installs agtmux as the notify program. The text must not contain it already.
pub(in crate::commands::setup) fn install(
    text: &str,
    hook_command: &HookCommand,
) -> Result<(String, EditHints), EditError> {
    let mut hints = EditHints::default();
    let document = parse(text)?;
    let words = hook_command.words(NOTIFY).into_iter();
    let Some(list) = list(text, &document)? else {
        let line = format!("{NOTIFY} = [{}]", joined(words));
        return Ok((apply(text, vec![new_line(text, &document, &line)]), hints));
    };
    let start = list.inside.start;
    let chunk = if list.words.is_empty() {
        hints.empty.insert(NOTIFY.into(), text[list.inside.clone()].to_owned());
        joined(words)
    } else {
        format!("{}, ", joined(words.chain([THEN.into()])))
    };
    Ok((apply(text, vec![TextSplice::insert(start, chunk)]), hints))
}

/// The path of agtmux in `notify`, if it is installed.
pub(in crate::commands::setup) fn program(text: &str, hook_command: &HookCommand) -> Result<Option<String>, EditError> {
    let document = parse(text)?;
    let list = list(text, &document)?.filter(|list| hook_command.matches_words(&list.words(), NOTIFY, THEN));
    Ok(list.and_then(|list| list.words.into_iter().next()).map(|(program, _)| program))
}

pub(in crate::commands::setup) fn is_current(text: &str, hook_command: &HookCommand) -> Result<bool, EditError> {
    let document = parse(text)?;
    let is_current = |list: NotifyList| {
        let words = list.words();
        hook_command.matches_words(&words, NOTIFY, THEN) && words.starts_with(&as_text(&hook_command.words(NOTIFY)))
    };
    Ok(list(text, &document)?.is_some_and(is_current))
}

pub(in crate::commands::setup) fn remove(
    text: &str,
    hints: &EditHints,
    hook_command: &HookCommand,
) -> Result<String, EditError> {
    let document = parse(text)?;
    let Some(list) = list(text, &document)?.filter(|list| hook_command.matches_words(&list.words(), NOTIFY, THEN))
    else {
        return Ok(text.to_owned());
    };
    let count = hook_command.words(NOTIFY).len();
    if list.words().get(count) == Some(&THEN) {
        let range = list.up_to(text, count);
        let kept = lines(text, &list.comments(text, range.clone()));
        return Ok(apply(text, vec![TextSplice { range, text: kept }]));
    }
    let comments = list.comments(text, list.inside.clone());
    if let Some(inner) = hints.empty.get(NOTIFY).filter(|inner| comments_in(inner) == comments) {
        return Ok(apply(text, vec![TextSplice { range: list.inside, text: inner.clone() }]));
    }
    if !comments.is_empty() || hints.empty.contains_key(NOTIFY) {
        return Ok(apply(text, list.own_words(text)));
    }
    Ok(apply(text, vec![TextSplice::remove(whole_line(text, list.key.start, list.inside.end + 1))]))
}

/// The notify list and its position.
struct NotifyList {
    key: Range<usize>,
    inside: Range<usize>,
    words: Vec<(String, Range<usize>)>,
}

impl NotifyList {
    fn words(&self) -> Vec<&str> {
        self.words.iter().map(|(word, _)| word.as_str()).collect()
    }

    /// The range from the bracket to the comma after this word, and the space that setup wrote after it.
    fn up_to(&self, text: &str, index: usize) -> Range<usize> {
        let end = self.words[index].1.end;
        let next = self.words.get(index + 1).map_or(self.inside.end, |(_, range)| range.start);
        let comma = comma_in(text, end..next).map_or(end, |at| at + 1);
        let blank = text[comma..next].starts_with(' ');
        self.inside.start..comma + usize::from(blank)
    }

    /// The ranges between the words, in order.
    fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let starts = std::iter::once(self.inside.start).chain(self.words.iter().map(|(_, range)| range.end));
        let ends = self.words.iter().map(|(_, range)| range.start).chain([self.inside.end]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// The comments in this part of the list.
    fn comments<'t>(&self, text: &'t str, part: Range<usize>) -> Vec<&'t str> {
        let gaps = self.gaps().map(|gap| gap.start.max(part.start)..gap.end.min(part.end));
        gaps.filter(|gap| gap.start < gap.end).flat_map(|gap| comments_in(&text[gap])).collect()
    }

    /// The words and their commas, without the comments between them.
    fn own_words(&self, text: &str) -> Vec<TextSplice> {
        let (Some((_, first)), Some((_, last))) = (self.words.first(), self.words.last()) else { return Vec::new() };
        let range = first.start..last.end;
        let kept = lines(text, &self.comments(text, range.clone()));
        let comma = comma_in(text, last.end..self.inside.end).map(|at| TextSplice::remove(at..at + 1));
        std::iter::once(TextSplice { range, text: kept }).chain(comma).collect()
    }
}

/// The position of a comma outside comments.
fn comma_in(text: &str, gap: Range<usize>) -> Option<usize> {
    let mut in_comment = false;
    let at = text[gap.clone()].bytes().position(|byte| {
        in_comment = byte != b'\n' && (in_comment || byte == b'#');
        byte == b',' && !in_comment
    });
    at.map(|at| gap.start + at)
}

/// The comments of a text that contains no words.
fn comments_in(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.find('#').map(|at| line[at..].trim_end())).collect()
}

fn lines(text: &str, comments: &[&str]) -> String {
    comments.iter().map(|comment| format!("{comment}{}", newline_of(text))).collect()
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let offset = error.span().map_or(text.len(), |span| span.start);
        EditError::at(text, offset, error.message().trim().replace('\n', ", "))
    })
}

fn list(text: &str, document: &Document<&str>) -> Result<Option<NotifyList>, EditError> {
    let Some((key, item)) = document.as_table().get_key_value(NOTIFY) else { return Ok(None) };
    let key = key.span().unwrap_or_default();
    let fault = || EditError::at(text, key.start, "\"notify\" is not a list of strings");
    let array = item.as_array().ok_or_else(fault)?;
    let range = array.span().ok_or_else(fault)?;
    let words = words(array).ok_or_else(fault)?;
    Ok(Some(NotifyList { key, inside: range.start + 1..range.end - 1, words }))
}

fn words(array: &Array) -> Option<Vec<(String, Range<usize>)>> {
    array.iter().map(|word| Some((word.as_str()?.to_owned(), word.span()?))).collect()
}

/// Inserts a line after the last root key. Everything after the first table header belongs to a table.
fn new_line(text: &str, document: &Document<&str>, line: &str) -> TextSplice {
    let newline = newline_of(text);
    let end_of_last = document.as_table().iter().filter_map(|(_, item)| root_value(item)).map(|range| range.end).max();
    let Some(end) = end_of_last else { return TextSplice::insert(content_start(text), format!("{line}{newline}")) };
    match text[end..].find('\n') {
        Some(at) => TextSplice::insert(end + at + 1, format!("{line}{newline}")),
        None => TextSplice::insert(text.len(), format!("{newline}{line}")),
    }
}

/// The byte range of a value that stands before the first `[header]`. A table with dotted keys (`a.b = 1`) counts; a
/// table with a header does not.
fn root_value(item: &Item) -> Option<Range<usize>> {
    match item {
        Item::Value(value) => value.span(),
        Item::Table(table) if table.is_dotted() => {
            table.iter().filter_map(|(_, item)| root_value(item)).max_by_key(|range| range.end)
        }
        _ => None,
    }
}

/// The range of a line to remove. A comment at its end belongs to the user and stays.
fn whole_line(text: &str, start: usize, end: usize) -> Range<usize> {
    let rest = text[end..].trim_start_matches([' ', '\t']);
    if rest.starts_with('#') {
        return start..text.len() - rest.len();
    }
    match text[end..].find('\n') {
        Some(at) => start..end + at + 1,
        None => {
            let before = text[..start].strip_suffix('\n').map_or(start, str::len);
            text[..before].strip_suffix('\r').map_or(before, str::len)..text.len()
        }
    }
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.map(|word| super::entry_text::string(&word)).collect::<Vec<_>>().join(", ")
}

fn as_text(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
