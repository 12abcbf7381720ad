//! JSON with comments: positions of objects and arrays, and edits that insert or remove an item.

use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ParseResult, parse_to_ast};

use super::separators;
use super::{EditError, TextSplice, apply, content_start, indent_at, newline_of, starts_its_line};

#[derive(Debug, Clone)]
pub(super) enum JsonNode {
    Object(Vec<JsonMember>, Range<usize>),
    Array(Vec<JsonNode>, Range<usize>),
    Text(String, Range<usize>),
    Other(Range<usize>),
}

#[derive(Debug, Clone)]
pub(super) struct JsonMember {
    pub(super) name: String,
    start: usize,
    pub(super) value: JsonNode,
}

/// `None` if the text contains no value.
pub(super) fn parse(text: &str) -> Result<Option<JsonNode>, EditError> {
    let parsed = parsed(text, CommentCollectionStrategy::Off)?;
    Ok(parsed.value.map(|value| node(&value, content_start(text))))
}

/// The ranges of all comments, in order.
pub(super) fn comments(text: &str) -> Result<Vec<Range<usize>>, EditError> {
    let (parsed, start) = (parsed(text, CommentCollectionStrategy::Separate)?, content_start(text));
    let all = parsed.comments.into_iter().flatten().flat_map(|(_, comments)| comments.to_vec());
    let mut ranges: Vec<_> = all.map(|comment| comment.start() + start..comment.end() + start).collect();
    ranges.sort_by_key(|range| range.start);
    // The parser lists each comment twice: with the token before it and with the token after it.
    ranges.dedup();
    Ok(ranges)
}

fn parsed(text: &str, comments: CommentCollectionStrategy) -> Result<ParseResult<'_>, EditError> {
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
    let start = content_start(text);
    parse_to_ast(&text[start..], &CollectOptions { comments, tokens: false }, &options)
        .map_err(|error| EditError::at(text, start + error.range().start, error.kind().to_string()))
}

fn node(value: &Value<'_>, shift: usize) -> JsonNode {
    let range = value.range();
    let range = range.start + shift..range.end + shift;
    match value {
        Value::Object(object) => {
            let member = |prop: &jsonc_parser::ast::ObjectProp<'_>| JsonMember {
                name: prop.name.as_str().to_owned(),
                start: prop.range().start + shift,
                value: node(&prop.value, shift),
            };
            JsonNode::Object(object.properties.iter().map(member).collect(), range)
        }
        Value::Array(array) => JsonNode::Array(array.elements.iter().map(|item| node(item, shift)).collect(), range),
        Value::StringLit(text) => JsonNode::Text(text.value.to_string(), range),
        _ => JsonNode::Other(range),
    }
}

impl JsonNode {
    pub(super) fn range(&self) -> &Range<usize> {
        match self {
            Self::Object(_, range) | Self::Array(_, range) | Self::Text(_, range) | Self::Other(range) => range,
        }
    }

    /// The index and value of a member. If a name occurs twice, the last one counts, as in JSON parsers.
    pub(super) fn member(&self, name: &str) -> Option<(usize, &JsonNode)> {
        let Self::Object(members, _) = self else { return None };
        let index = members.iter().rposition(|member| member.name == name)?;
        Some((index, &members[index].value))
    }

    /// Whether this is an object with exactly these members, in any order.
    pub(super) fn has_exactly(&self, names: &[&str]) -> bool {
        let Self::Object(members, _) = self else { return false };
        members.len() == names.len() && names.iter().all(|name| members.iter().any(|member| member.name == *name))
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.member(name)?.1.text()
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text, _) = self { Some(text) } else { None }
    }

    pub(super) fn brackets(&self) -> Option<JsonBrackets> {
        let (items, range) = match self {
            Self::Object(members, range) => (members.iter().map(|m| m.start..m.value.range().end).collect(), range),
            Self::Array(values, range) => (values.iter().map(|value| value.range().clone()).collect(), range),
            _ => return None,
        };
        Some(JsonBrackets { inside: range.start + 1..range.end - 1, items })
    }
}

/// The inside of an object or an array, and the ranges of its items.
#[derive(Debug, Clone)]
pub(super) struct JsonBrackets {
    pub(super) inside: Range<usize>,
    pub(super) items: Vec<Range<usize>>,
}

/// The position of a new last item.
struct InsertPoint {
    at: usize,
    /// A line comment before the position takes the rest of the line.
    to_line_end: bool,
    /// The last item already has a trailing comma.
    after_comma: bool,
}

/// The layout of a new item: on its own line with an indentation, or on the same line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemLayout {
    pub(super) newline: &'static str,
    /// `None` for an item on the same line.
    pub(super) indent: Option<String>,
    pub(super) unit: String,
}

impl ItemLayout {
    pub(super) fn separator(&self) -> String {
        self.indent.as_ref().map_or_else(String::new, |indent| format!("{}{indent}", self.newline))
    }

    fn deeper(&self) -> Self {
        Self { indent: self.indent.as_ref().map(|indent| format!("{indent}{}", self.unit)), ..self.clone() }
    }

    /// An object with these members, as an item of this layout.
    pub(super) fn object(&self, items: &[String]) -> String {
        let (inner, end) = (self.deeper().separator(), self.separator());
        let comma = if inner.is_empty() { ", " } else { "," };
        format!("{{{inner}{}{end}}}", items.join(&format!("{comma}{inner}")))
    }
}

impl JsonBrackets {
    /// The layout of the last item. In empty brackets, a new line, unless the whole text is on one line.
    pub(super) fn layout(&self, text: &str) -> ItemLayout {
        let (newline, unit, outer) = (newline_of(text), unit_of(text), indent_at(text, self.inside.start));
        let indent = match self.items.last() {
            Some(last) if starts_its_line(text, last.start) => Some(indent_at(text, last.start).to_owned()),
            // A line comment ends the line, so the new item needs its own line.
            Some(last) if self.insert_point(text, last).to_line_end => Some(format!("{outer}{unit}")),
            Some(_) => None,
            None if self.is_all_of(text) || text.trim_end().contains('\n') => Some(format!("{outer}{unit}")),
            None => None,
        };
        ItemLayout { newline, indent, unit }
    }

    fn is_all_of(&self, text: &str) -> bool {
        text[content_start(text)..self.inside.start].trim() == "{"
    }

    fn insert_point(&self, text: &str, last: &Range<usize>) -> InsertPoint {
        let gap = last.end..self.inside.end;
        let comma = separators::comma(text, gap.clone());
        let (at, to_line_end) =
            separators::end_of_comments(text, comma.as_ref().map_or(gap.start, |comma| comma.end)..gap.end);
        InsertPoint { at, to_line_end, after_comma: comma.is_some() }
    }

    pub(super) fn append(&self, text: &str, layout: &ItemLayout, items: &[String]) -> Vec<TextSplice> {
        let separator = layout.separator();
        let comma = if separator.is_empty() { ", " } else { "," };
        let items = items.join(&format!("{comma}{separator}"));
        let Some(last) = self.items.last() else { return vec![self.fill(text, layout, &items)] };
        let space = if separator.is_empty() { " " } else { "" };
        let point = self.insert_point(text, last);
        if point.after_comma {
            return vec![TextSplice::insert(point.at, format!("{space}{separator}{items},"))];
        }
        vec![TextSplice::insert(last.end, ","), TextSplice::insert(point.at, format!("{space}{separator}{items}"))]
    }

    /// Inserts the first items into empty brackets, after the comments.
    fn fill(&self, text: &str, layout: &ItemLayout, items: &str) -> TextSplice {
        let at = separators::end_of_last_token(text, self.inside.clone());
        let rest = &text[at..self.inside.end];
        let outer = indent_at(text, self.inside.start);
        let end = match &layout.indent {
            Some(_) if !rest.contains('\n') => format!("{}{outer}", layout.newline),
            _ => String::new(),
        };
        TextSplice::insert(at, format!("{}{items}{end}", layout.separator()))
    }

    /// The exact reverse of [`append`](Self::append). `inner` is the original text of brackets that were empty.
    pub(super) fn without(&self, text: &str, index: usize, inner: Option<&str>) -> String {
        let item = &self.items[index];
        if self.items.len() == 1 {
            return self.emptied(text, item, inner);
        }
        let before = if index == 0 { self.inside.start } else { self.items[index - 1].end };
        let after = self.items.get(index + 1).map_or(self.inside.end, |next| next.start);
        let own_comma = separators::comma(text, item.end..after);
        let rest = rest_after(text, item, own_comma.as_ref());
        let blanks = separators::blanks_before(text, before..item.start, rest);
        let comma = own_comma.or_else(|| separators::comma(text, before..item.start));
        let mut splices = vec![TextSplice::remove(blanks..item.end)];
        splices.extend(comma.map(TextSplice::remove));
        apply(text, splices)
    }

    fn emptied(&self, text: &str, item: &Range<usize>, inner: Option<&str>) -> String {
        let gaps = [self.inside.start..item.start, item.end..self.inside.end];
        let left: Vec<&str> = gaps.into_iter().flat_map(|gap| separators::comments(text, gap)).collect();
        let known = inner.filter(|inner| separators::comments(inner, 0..inner.len()) == left);
        if let Some(inner) = known.or(left.is_empty().then_some("")) {
            return apply(text, vec![TextSplice { range: self.inside.clone(), text: inner.to_owned() }]);
        }
        // The user added a comment: keep it.
        let comma = separators::comma(text, item.end..self.inside.end);
        let rest = rest_after(text, item, comma.as_ref());
        let blanks = separators::blanks_before(text, self.inside.start..item.start, rest);
        let removals = std::iter::once(blanks..item.end).chain(comma);
        apply(text, removals.map(TextSplice::remove).collect())
    }
}

/// The start of the text after an item and its comma.
fn rest_after(text: &str, item: &Range<usize>, comma: Option<&Range<usize>>) -> usize {
    let between = comma.filter(|comma| text[item.end..comma.start].trim().is_empty());
    between.map_or(item.end, |comma| comma.end)
}

/// The indentation unit of this text: the indentation of the first indented line.
fn unit_of(text: &str) -> String {
    let mut indents = text.lines().map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
    indents.find(|indent| !indent.is_empty() && indent.len() <= 8).unwrap_or("  ").to_owned()
}
