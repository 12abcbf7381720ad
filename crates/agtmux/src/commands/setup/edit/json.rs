//! Edits JSON with comments. The syntax tree gives the positions of the items. The scanner gives the commas and
//! comments between the items. The editable tree of the same library is not used, because its edits cannot be undone
//! exactly: inserting into `{"a":1}` splits the line, and removing the number from `[1 /* why */]` removes the comment.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseOptions, Scanner, ScannerOptions, parse_to_ast};

use super::{EditError, apply, indent_at, indent_of, newline_of, starts_its_line};

/// Parses JSON with comments. `None` if the text contains no JSON value.
pub(super) fn parse(text: &str) -> Result<Option<Value<'_>>, EditError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    parsed
        .map(|parsed| parsed.value)
        .map_err(|error| EditError::at(text, error.range().start, error.kind().to_string()))
}

/// The root object. `None` if the root is not an object, or if the text contains no JSON value.
pub(super) fn root_object(text: &str) -> Result<Option<Object<'_>>, EditError> {
    Ok(parse(text)?.and_then(|root| if let Value::Object(object) = root { Some(object) } else { None }))
}

/// The index and value of the member with this name. If the name occurs twice, the last member counts, as in JSON
/// parsers.
pub(super) fn member<'v, 't>(object: &'v Object<'t>, name: &str) -> Option<(usize, &'v Value<'t>)> {
    let index = object.properties.iter().rposition(|member| member.name.as_str() == name)?;
    Some((index, &object.properties[index].value))
}

pub(super) fn text_of<'v>(object: &'v Object<'_>, name: &str) -> Option<&'v str> {
    member(object, name)?.1.as_string_lit().map(|text| text.value.as_ref())
}

/// The commas and comments in a part of the text, with their ranges in the whole text.
fn tokens(text: &str, part: Range<usize>) -> Vec<(Token<'_>, Range<usize>)> {
    let mut scanner = Scanner::new(&text[part.clone()], &ScannerOptions::default());
    let mut found = Vec::new();
    while let Ok(Some(token)) = scanner.scan() {
        if token == Token::Comma || is_comment(&token) {
            found.push((token, part.start + scanner.token_start()..part.start + scanner.token_end()));
        }
    }
    found
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// The ranges of the comments in a part of the text.
pub(super) fn comments(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    tokens(text, part).into_iter().filter(|(token, _)| is_comment(token)).map(|(_, range)| range).collect()
}

fn comma(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    tokens(text, part).into_iter().find(|(token, _)| *token == Token::Comma).map(|(_, range)| range)
}

/// The inside of an object or an array, and the ranges of its items.
pub(super) struct JsonBrackets<'t> {
    text: &'t str,
    inside: Range<usize>,
    pub(super) items: Vec<Range<usize>>,
}

impl<'t> JsonBrackets<'t> {
    pub(super) fn object(text: &'t str, object: &Object<'_>) -> Self {
        Self::new(text, object, &object.properties)
    }

    pub(super) fn list(text: &'t str, list: &Array<'_>) -> Self {
        Self::new(text, list, &list.elements)
    }

    fn new(text: &'t str, whole: &impl Ranged, items: &[impl Ranged]) -> Self {
        let items = items.iter().map(|item| item.start()..item.end()).collect();
        Self { text, inside: whole.start() + 1..whole.end() - 1, items }
    }

    pub(super) fn inner(&self) -> &'t str {
        &self.text[self.inside.clone()]
    }

    pub(super) fn has_comments_in(&self, index: usize) -> bool {
        !comments(self.text, self.items[index].clone()).is_empty()
    }

    /// The line break and indentation before a new item, or an empty text if the new item starts no line. In brackets
    /// without items, the new item starts a line if the text has several lines or if the brackets are those of the root
    /// object.
    fn line_break(&self) -> String {
        let text = self.text;
        let line_at = |at: usize, unit: &str| format!("{}{}{unit}", newline_of(text), indent_at(text, at));
        match self.items.last() {
            Some(last) if starts_its_line(text, last.start) => line_at(last.start, ""),
            // A line comment ends the line, so the new item needs its own line.
            Some(last) if self.end_of(last).1 => line_at(self.inside.start, unit_of(text)),
            None if text[..self.inside.start].trim() == "{" || text.trim_end().contains('\n') => {
                line_at(self.inside.start, unit_of(text))
            }
            _ => String::new(),
        }
    }

    /// The text of a new object with this member, indented as an item of these brackets.
    pub(super) fn nested(&self, member: &str) -> String {
        let line_break = self.line_break();
        let unit = if line_break.is_empty() { "" } else { unit_of(self.text) };
        format!("{{{line_break}{unit}{member}{line_break}}}")
    }

    /// The offset after the last item, its comma and the comments that follow on the same line. The second value is
    /// true if a line comment ends at this offset.
    fn end_of(&self, last: &Range<usize>) -> (usize, bool) {
        let comma = comma(self.text, last.end..self.inside.end);
        let (mut end, mut to_line_end) = (comma.map_or(last.end, |comma| comma.end), false);
        for (token, range) in tokens(self.text, end..self.inside.end) {
            if self.text[end..range.end].contains('\n') {
                break;
            }
            (end, to_line_end) = (range.end, matches!(token, Token::CommentLine(_)));
        }
        (end, to_line_end)
    }

    /// Returns the whole text, with this item added after the last item of the brackets.
    pub(super) fn append(&self, item: &str) -> String {
        let (text, line_break) = (self.text, self.line_break());
        let Some(last) = self.items.last() else {
            let at = comments(text, self.inside.clone()).last().map_or(self.inside.start, |comment| comment.end);
            let line_ends = line_break.is_empty() || text[at..self.inside.end].contains('\n');
            let end =
                if line_ends { "" } else { &format!("{}{}", newline_of(text), indent_at(text, self.inside.start)) };
            return apply(text, [(at..at, format!("{line_break}{item}{end}"))]);
        };
        let space = if line_break.is_empty() { " " } else { "" };
        let has_comma = comma(text, last.end..self.inside.end).is_some();
        let (comma, trailing) = if has_comma { ("", ",") } else { (",", "") };
        let at = self.end_of(last).0;
        let item = format!("{space}{line_break}{item}{trailing}");
        apply(text, [(last.end..last.end, comma.to_owned()), (at..at, item)])
    }

    /// Removes an item, as the exact reverse of [`append`](Self::append). If the brackets held no item before `append`,
    /// `inner` is the original text between them.
    pub(super) fn without(&self, index: usize, inner: Option<&str>) -> String {
        let (text, item) = (self.text, &self.items[index]);
        let gap_before = if index == 0 { self.inside.start } else { self.items[index - 1].end }..item.start;
        let gap_after = item.end..self.items.get(index + 1).map_or(self.inside.end, |next| next.start);
        if self.items.len() == 1 {
            let left = [gap_before.clone(), gap_after.clone()].map(|gap| comment_texts(text, gap)).concat();
            let known = inner.filter(|inner| comment_texts(inner, 0..inner.len()) == left);
            if let Some(inner) = known.or(left.is_empty().then_some("")) {
                return apply(text, [(self.inside.clone(), inner.to_owned())]);
            }
        }
        let own_comma = comma(text, gap_after);
        let next_comma = own_comma.clone().filter(|comma| text[item.end..comma.start].trim().is_empty());
        let blanks = blanks_before(text, gap_before.clone(), next_comma.map_or(item.end, |comma| comma.end));
        let removals = [Some(blanks..item.end), own_comma.or_else(|| comma(text, gap_before))];
        apply(text, removals.into_iter().flatten().map(|range| (range, String::new())))
    }
}

fn comment_texts(text: &str, part: Range<usize>) -> Vec<&str> {
    comments(text, part).into_iter().map(|range| &text[range]).collect()
}

/// The start of the whitespace to remove before an item. `rest` is the offset after the removed item. If a line comment
/// precedes the item, the newline after the comment stays, unless another newline follows at `rest`. Without a newline,
/// the text at `rest` would become part of the comment.
fn blanks_before(text: &str, gap: Range<usize>, rest: usize) -> usize {
    let last = tokens(text, gap.clone()).pop();
    let start = last.as_ref().map_or(gap.start, |(_, range)| range.end);
    let line_ends = text[rest..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    match text[start..gap.end].find('\n') {
        Some(newline) if matches!(last, Some((Token::CommentLine(_), _))) && !line_ends => start + newline + 1,
        _ => start,
    }
}

/// The indentation unit of this text: the indentation of the first indented line.
fn unit_of(text: &str) -> &str {
    text.lines().map(indent_of).find(|indent| !indent.is_empty() && indent.len() <= 8).unwrap_or("  ")
}
