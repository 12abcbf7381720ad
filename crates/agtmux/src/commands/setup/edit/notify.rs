//! Codex's `notify`, a root key of its config.toml. There is only one: a program of the user's that is there already is
//! called by ours.

use std::ops::Range;

use toml_edit::{Array, Document, Item};

use super::{Fault, Hints, Splice, apply, content_start, newline_of};
use crate::commands::setup::command::OurCommand;

const NOTIFY: &str = "notify";
const THEN: &str = "--then";

/// The text must hold none of ours.
pub(in crate::commands::setup) fn install(text: &str, ours: &OurCommand) -> Result<(String, Hints), Fault> {
    let mut hints = Hints::default();
    let document = parse(text)?;
    let words = ours.words(NOTIFY).into_iter();
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
    Ok((apply(text, vec![Splice::insert(start, chunk)]), hints))
}

pub(in crate::commands::setup) fn is_installed(text: &str, ours: &OurCommand) -> Result<bool, Fault> {
    let document = parse(text)?;
    Ok(list(text, &document)?.is_some_and(|list| ours.are_words(&list.words(), NOTIFY)))
}

pub(in crate::commands::setup) fn is_current(text: &str, ours: &OurCommand) -> Result<bool, Fault> {
    let document = parse(text)?;
    Ok(list(text, &document)?.is_some_and(|list| list.words().starts_with(&as_text(&ours.words(NOTIFY)))))
}

pub(in crate::commands::setup) fn remove(text: &str, hints: &Hints, ours: &OurCommand) -> Result<String, Fault> {
    let document = parse(text)?;
    let Some(list) = list(text, &document)?.filter(|list| ours.are_words(&list.words(), NOTIFY)) else {
        return Ok(text.to_owned());
    };
    let count = ours.words(NOTIFY).len();
    if list.words().get(count) == Some(&THEN) {
        return Ok(apply(text, vec![Splice::remove(list.up_to(text, count))]));
    }
    if let Some(inner) = hints.empty.get(NOTIFY) {
        return Ok(apply(text, vec![Splice { range: list.inside, text: inner.clone() }]));
    }
    Ok(apply(text, vec![Splice::remove(whole_line(text, list.key.start, list.inside.end + 1))]))
}

/// The list of words and where it is.
struct List {
    key: Range<usize>,
    inside: Range<usize>,
    words: Vec<(String, Range<usize>)>,
}

impl List {
    fn words(&self) -> Vec<&str> {
        self.words.iter().map(|(word, _)| word.as_str()).collect()
    }

    /// From the bracket to the comma after this word, and the blank that we put there.
    fn up_to(&self, text: &str, index: usize) -> Range<usize> {
        let end = self.words[index].1.end;
        let next = self.words.get(index + 1).map_or(self.inside.end, |(_, range)| range.start);
        let comma = text[end..next].find(',').map_or(end, |at| end + at + 1);
        let blank = text[comma..next].starts_with(' ');
        self.inside.start..comma + usize::from(blank)
    }
}

fn parse(text: &str) -> Result<Document<&str>, Fault> {
    Document::parse(text).map_err(|error| {
        let offset = error.span().map_or(text.len(), |span| span.start);
        Fault::at(text, offset, error.message().trim().replace('\n', ", "))
    })
}

fn list(text: &str, document: &Document<&str>) -> Result<Option<List>, Fault> {
    let Some((key, item)) = document.as_table().get_key_value(NOTIFY) else { return Ok(None) };
    let key = key.span().unwrap_or_default();
    let fault = || Fault::at(text, key.start, "\"notify\" is no list of words");
    let array = item.as_array().ok_or_else(fault)?;
    let range = array.span().ok_or_else(fault)?;
    let words = words(array).ok_or_else(fault)?;
    Ok(Some(List { key, inside: range.start + 1..range.end - 1, words }))
}

fn words(array: &Array) -> Option<Vec<(String, Range<usize>)>> {
    array.iter().map(|word| Some((word.as_str()?.to_owned(), word.span()?))).collect()
}

/// After the last root key, for everything behind the first table belongs to one.
fn new_line(text: &str, document: &Document<&str>, line: &str) -> Splice {
    let newline = newline_of(text);
    let end_of_last = document.as_table().iter().filter_map(|(_, item)| root_value(item)).map(|range| range.end).max();
    let Some(end) = end_of_last else { return Splice::insert(content_start(text), format!("{line}{newline}")) };
    match text[end..].find('\n') {
        Some(at) => Splice::insert(end + at + 1, format!("{line}{newline}")),
        None => Splice::insert(text.len(), format!("{newline}{line}")),
    }
}

/// The place of a value that stands in the root; tables have headers of their own, unless they come of dotted keys.
fn root_value(item: &Item) -> Option<Range<usize>> {
    match item {
        Item::Value(value) => value.span(),
        Item::Table(table) if table.is_dotted() => {
            table.iter().filter_map(|(_, item)| root_value(item)).max_by_key(|range| range.end)
        }
        _ => None,
    }
}

fn whole_line(text: &str, start: usize, end: usize) -> Range<usize> {
    match text[end..].find('\n') {
        Some(at) => start..end + at + 1,
        None => {
            let before = text[..start].strip_suffix('\n').map_or(start, str::len);
            text[..before].strip_suffix('\r').map_or(before, str::len)..text.len()
        }
    }
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.map(|word| super::draft::string(&word)).collect::<Vec<_>>().join(", ")
}

fn as_text(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}
