//! Edits `notify`, a root key of Codex's config.toml. Codex allows only one notify program. If the user already has
//! one, setup replaces it by agtmux, and agtmux calls the user's program after its own work. The edits replace text at
//! the positions that the syntax tree gives. Printing the tree instead would change `a = 1\r\n`: the `\r` would be
//! lost.

use std::ops::Range;

use toml_edit::{Document, RawString};

use super::hook_format::quoted;
use super::{EditError, EditHints, SettingsEditor, TextSplice, apply, newline_of};
use crate::commands::hook::{NOTIFY, THEN};
use crate::commands::setup::command::HookCommand;

pub(in crate::commands::setup) struct NotifyEditor {
    pub(in crate::commands::setup) hook_command: HookCommand,
}

impl SettingsEditor for NotifyEditor {
    fn install(&self, text: &str) -> Result<(String, EditHints), EditError> {
        let mut hints = EditHints::default();
        let words = self.hook_command.words(NOTIFY).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", ");
        let Some(list) = NotifyList::find(text)? else {
            return Ok((apply(text, [new_line(text, &format!("{NOTIFY} = [{words}]"))?]), hints));
        };
        let start = list.inside.start;
        let mut then = format!(", {}, ", quoted(THEN));
        if list.words.is_empty() {
            hints.empty.insert(NOTIFY.into(), text[list.inside].to_owned());
            then.clear();
        }
        Ok((apply(text, [(start..start, words + &then)]), hints))
    }

    fn installed_program(&self, text: &str, _: &EditHints) -> Result<Option<String>, EditError> {
        let list = NotifyList::installed(text, &self.hook_command)?;
        Ok(list.and_then(|list| list.words.into_iter().next()).map(|word| word.text))
    }

    fn is_current(&self, text: &str, hints: &EditHints) -> Result<bool, EditError> {
        Ok(self.installed_program(text, hints)?.is_some_and(|program| program == self.hook_command.program))
    }

    fn remove(&self, text: &str, hints: &EditHints) -> Result<String, EditError> {
        let Some(list) = NotifyList::installed(text, &self.hook_command)? else { return Ok(text.to_owned()) };
        let own = self.hook_command.words(NOTIFY).len();
        if let Some(then) = list.words.get(own) {
            let comma = then.end + usize::from(text[then.end..].starts_with(','));
            let range = list.inside.start..comma + usize::from(text[comma..].starts_with(' '));
            return Ok(apply(text, [list.removal(range)]));
        }
        let (comments, inner) = (list.comments(&list.inside), hints.empty.get(NOTIFY));
        if let Some(inner) = inner.filter(|inner| comments_in(inner).eq(comments.iter().copied())) {
            return Ok(apply(text, [(list.inside, inner.clone())]));
        }
        if comments.is_empty() && inner.is_none() {
            return Ok(apply(text, [(whole_line(text, list.key, list.inside.end + 1), String::new())]));
        }
        let (first, last) = (&list.words[0], &list.words[own - 1]);
        let comma = text[last.end..].starts_with(',').then(|| (last.end..last.end + 1, String::new()));
        let words = list.removal(first.range.start..last.range.end);
        Ok(apply(text, std::iter::once(words).chain(comma)))
    }
}

/// The value of `notify`, a list of words, and its position in the text.
struct NotifyList<'t> {
    source: &'t str,
    key: usize,
    inside: Range<usize>,
    words: Vec<NotifyWord>,
    /// The whitespace and comments between words and commas, in order.
    blanks: Vec<Range<usize>>,
}

struct NotifyWord {
    text: String,
    range: Range<usize>,
    /// The end of the whitespace and comments after the word. If the word has a comma, the comma is at this position.
    end: usize,
}

impl<'t> NotifyList<'t> {
    fn find(source: &'t str) -> Result<Option<Self>, EditError> {
        let document = parse(source)?;
        let Some((key, item)) = document.as_table().get_key_value(NOTIFY) else { return Ok(None) };
        let key = key.span().unwrap_or_default().start;
        let fault = || EditError::at(source, key, "\"notify\" is not a list of strings");
        let array = item.as_array().ok_or_else(fault)?;
        let range = array.span().ok_or_else(fault)?;
        let (mut words, mut blanks) = (Vec::new(), Vec::new());
        for value in array {
            let (text, range) = value.as_str().zip(value.span()).ok_or_else(fault)?;
            let suffix = value.decor().suffix().and_then(RawString::span);
            let end = suffix.as_ref().map_or(range.end, |suffix| suffix.end);
            blanks.extend(value.decor().prefix().and_then(RawString::span).into_iter().chain(suffix));
            words.push(NotifyWord { text: text.to_owned(), range, end });
        }
        blanks.extend(array.trailing().span());
        Ok(Some(Self { source, key, inside: range.start + 1..range.end - 1, words, blanks }))
    }

    /// The list, if it starts with the words that setup writes. The list may contain an earlier path of agtmux.
    fn installed(source: &'t str, hook_command: &HookCommand) -> Result<Option<Self>, EditError> {
        let is_installed = |list: &Self| {
            let words: Vec<&str> = list.words.iter().map(|word| word.text.as_str()).collect();
            hook_command.matches_words(&words, NOTIFY, THEN)
        };
        Ok(Self::find(source)?.filter(is_installed))
    }

    /// The comments in this part of the list.
    fn comments(&self, part: &Range<usize>) -> Vec<&'t str> {
        let blanks = self.blanks.iter().filter(|blank| part.start <= blank.start && blank.end <= part.end);
        blanks.flat_map(|blank| comments_in(&self.source[blank.clone()])).collect()
    }

    /// Removes a part of the list but keeps its comments: they belong to the user.
    fn removal(&self, part: Range<usize>) -> TextSplice {
        let line = |comment: &str| format!("{comment}{}", newline_of(self.source));
        (part.clone(), self.comments(&part).into_iter().map(line).collect())
    }
}

/// The comments in a text of whitespace and comments only.
fn comments_in(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.find('#').map(|at| line[at..].trim_end()))
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| {
        let offset = error.span().map_or(text.len(), |span| span.start);
        EditError::at(text, offset, error.message().trim().replace('\n', ", "))
    })
}

/// Inserts a line after the last root value. After the first table header, the line would belong to a table.
fn new_line(text: &str, line: &str) -> Result<TextSplice, EditError> {
    let (document, newline) = (parse(text)?, newline_of(text));
    let values = document.as_table().get_values();
    let end = values.iter().filter_map(|(_, value)| value.span()).map(|range| range.end).max();
    let next_line = end.map_or(Some(0), |end| text[end..].find('\n').map(|at| end + at + 1));
    Ok(match next_line {
        Some(at) => (at..at, format!("{line}{newline}")),
        None => (text.len()..text.len(), format!("{newline}{line}")),
    })
}

/// The range to remove for a key with its value, which is usually the whole line. A comment at the end of the line
/// belongs to the user and stays.
fn whole_line(text: &str, start: usize, end: usize) -> Range<usize> {
    let rest = text[end..].trim_start_matches([' ', '\t']);
    if rest.starts_with('#') {
        return start..text.len() - rest.len();
    }
    match text[end..].find('\n') {
        Some(at) => start..end + at + 1,
        None => {
            let before = text[..start].strip_suffix('\n').unwrap_or(&text[..start]);
            before.strip_suffix('\r').unwrap_or(before).len()..text.len()
        }
    }
}
