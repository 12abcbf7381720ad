//! Matches a screen rule against a screen.

use regex::Regex;

use crate::manifest::{BoxRequirement, Pattern, ScreenRegion, ScreenRule, StyleCondition, StyleRule};
use crate::screen::{CellColour, ScreenRegions, ScreenRow, is_border, start_within_frame, unframed};

/// The line that the rule matched. None if the rule does not match.
pub(super) fn matching_line(rule: &ScreenRule, regions: &ScreenRegions<'_>, title: Option<&str>) -> Option<String> {
    let needed = match rule.needs {
        BoxRequirement::Box => regions.has_box(),
        BoxRequirement::BoxWithRoom => regions.has_room_above(),
        BoxRequirement::NoBox => !regions.has_box(),
        BoxRequirement::Nothing => true,
    };
    if !needed || !title_matches(rule, regions, title) {
        return None;
    }
    if rule.absent.iter().any(|absent| absent.pattern.is_match(regions.text(absent.region))) {
        return None;
    }
    let text = regions.text(rule.region);
    if rule.none.iter().any(|pattern| pattern.is_match(text)) || !rule.all.iter().all(|p| p.is_match(text)) {
        return None;
    }
    if !rule.any.is_empty() && !rule.any.iter().any(|pattern| pattern.is_match(text)) {
        return None;
    }
    let rows = regions.rows(rule.region);
    let looks: Vec<_> = rule.style.iter().map(|style| row_with_style(&rows, style)).collect();
    let looks_right = match regions.screen.is_styled() {
        true => looks.iter().all(Option::is_some),
        false => looks.is_empty() || rule.plain_too,
    };
    if !looks_right {
        return None;
    }
    let styled: Option<&ScreenRow> = looks.first().copied().flatten();
    let line = match_start(rule, text).map(|start| line_around(text, start));
    let line = line.or(styled.map(|row| row.text())).map(collapse_runs).unwrap_or_default();
    // Text in the input box is private. Only the first character of the line is reported: the prompt sign.
    Some(if rule.region == ScreenRegion::Box { line.chars().take(1).collect() } else { line })
}

/// The byte offset of a match in this text: of a pattern of `any`, or else of the first pattern of `all`.
fn match_start(rule: &ScreenRule, text: &str) -> Option<usize> {
    let any = rule.any.iter().find_map(|pattern| pattern.find(text));
    any.or_else(|| rule.all.first()?.find(text)).map(|found| found.start())
}

/// The first row of text in the panel that the rule matched.
pub(super) fn panel_title(rule: &ScreenRule, regions: &ScreenRegions<'_>) -> String {
    let text = regions.text(rule.region);
    let rows = text[match_start(rule, text).unwrap_or_default()..].lines();
    let titles = rows.filter(|row| !is_border(row) && !unframed(row).trim().is_empty());
    titles.map(collapse_runs).next().unwrap_or_default()
}

fn title_matches(rule: &ScreenRule, regions: &ScreenRegions<'_>, title: Option<&str>) -> bool {
    let fits = |pattern: &Pattern| title.is_some_and(|title| pattern.is_match(title));
    rule.title.as_ref().is_none_or(fits)
        && !rule.not_title.as_ref().is_some_and(fits)
        && rule
            .title_from
            .as_ref()
            .is_none_or(|from| title.is_some_and(|title| repeats_footer_name(title, from, regions)))
}

/// Whether the title contains the name or path that `from` finds in the rows below the input box. One of the title's
/// parts, which ` | ` separates, must equal the name or a component of the path. The title or the name may be
/// truncated. `from` may find more words after the name.
fn repeats_footer_name(title: &str, from: &Regex, regions: &ScreenRegions<'_>) -> bool {
    let found = from.captures_iter(regions.text(ScreenRegion::Footer)).filter_map(|found| found.get(1));
    let names: Vec<&str> = found.flat_map(|name| name.as_str().split('/')).map(str::trim).collect();
    let is_same = |part: &str, name: &str| match (text_before_ellipsis(part), text_before_ellipsis(name)) {
        (Some(start), _) => !start.is_empty() && name.starts_with(start),
        (_, Some(start)) => !start.is_empty() && part.starts_with(start),
        _ => !part.is_empty() && name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
    };
    title.split(" | ").any(|part| names.iter().any(|name| is_same(part.trim(), name)))
}

/// The text before the ellipsis. None if the text has no ellipsis and is therefore complete.
fn text_before_ellipsis(text: &str) -> Option<&str> {
    text.split_once('…').map(|(start, _)| start).or_else(|| text.strip_suffix("..."))
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    // A match may begin with a line break.
    let line = text[start..].trim_start_matches('\n');
    line.split('\n').next().unwrap_or_default()
}

/// Removes the frame from a row and shortens runs of the same character: spaces to two, other characters to eight.
fn collapse_runs(line: &str) -> String {
    let mut out = String::new();
    let mut alike = 0;
    for c in unframed(line).trim().chars() {
        alike = if out.ends_with(c) { alike + 1 } else { 0 };
        if alike < if c == ' ' { 2 } else { 8 } {
            out.push(c);
        }
    }
    out
}

fn row_with_style<'r>(rows: &[&'r ScreenRow], rule: &StyleRule) -> Option<&'r ScreenRow> {
    if rule.last {
        let last = rows.iter().rev().find(|row| rule.pattern.is_match(row.text()));
        return last.filter(|row| style_matches(row, rule)).copied();
    }
    rows.iter().find(|row| style_matches(row, rule)).copied()
}

fn style_matches(row: &ScreenRow, rule: &StyleRule) -> bool {
    rule.pattern.captures_iter(row.text()).any(|found| {
        let Some(piece) = found.get(1).or_else(|| found.get(0)) else { return false };
        let mut seen = piece.as_str().char_indices().filter(|(_, c)| !c.is_whitespace()).peekable();
        seen.peek().is_some() && seen.all(|(at, _)| meets_condition(row, piece.start() + at, rule.is))
    })
}

/// Whether the character at this byte has the required style.
pub(super) fn meets_condition(row: &ScreenRow, byte: usize, look: StyleCondition) -> bool {
    let style = row.style_at(byte);
    match look {
        StyleCondition::Bold => style.bold,
        StyleCondition::Dim => style.dim,
        StyleCondition::NotDim => !style.dim,
        StyleCondition::Reverse => style.reverse,
        StyleCondition::Faint => style.is_faint(),
        StyleCondition::NotFaint => !style.is_faint(),
        StyleCondition::Coloured => style.fg == CellColour::Colour,
        StyleCondition::Plain => style.fg == CellColour::Default && !style.dim,
        StyleCondition::Filled => {
            let ground = row.style_at(start_within_frame(row));
            (style.reverse, style.bg) != (ground.reverse, ground.bg)
        }
    }
}
