//! Whether a rule fits a screen.

use regex::Regex;

use crate::manifest::{Look, Needs, Region, ScreenRule, StyleRule};
use crate::screen::{Ink, Regions, Row, start_within_frame, unframed};

/// The line that made it fit.
pub(super) fn fits(rule: &ScreenRule, regions: &Regions<'_>, title: Option<&str>) -> Option<String> {
    let needed = match rule.needs {
        Needs::Box => regions.has_box(),
        Needs::BoxWithRoom => regions.has_room_above(),
        Needs::NoBox => !regions.has_box(),
        Needs::Nothing => true,
    };
    if !needed || !title_fits(rule, regions, title) {
        return None;
    }
    if rule.absent.iter().any(|(region, pattern)| pattern.is_match(regions.text(*region))) {
        return None;
    }
    let text = regions.text(rule.region);
    if rule.none.iter().any(|pattern| pattern.is_match(text)) || !rule.all.iter().all(|p| p.is_match(text)) {
        return None;
    }
    let any = rule.any.iter().find_map(|pattern| pattern.find(text));
    if !rule.any.is_empty() && any.is_none() {
        return None;
    }
    let rows = regions.rows(rule.region);
    let looks: Vec<_> = rule.style.iter().map(|style| rows.iter().find(|row| looks_so(row, style))).collect();
    let looks_right = match regions.screen.is_styled() {
        true => looks.iter().all(Option::is_some),
        false => looks.is_empty() || rule.plain_too,
    };
    if !looks_right {
        return None;
    }
    let styled = looks.first().copied().flatten();
    let found = any.or_else(|| rule.all.first().and_then(|pattern| pattern.find(text)));
    let line = found.map(|found| line_around(text, found.start()));
    let line = line.or(styled.map(|row| row.text())).map(squeezed).unwrap_or_default();
    // What somebody is typing is nobody's business: the sign before it is enough.
    Some(if rule.region == Region::Box { line.chars().take(1).collect() } else { line })
}

fn title_fits(rule: &ScreenRule, regions: &Regions<'_>, title: Option<&str>) -> bool {
    let fits = |pattern: &Regex| title.is_some_and(|title| pattern.is_match(title));
    rule.title.as_ref().is_none_or(fits)
        && !rule.not_title.as_ref().is_some_and(fits)
        && rule.title_from.as_ref().is_none_or(|from| title.is_some_and(|title| repeats(title, from, regions)))
}

/// Whether a part of the title is a name below the box, or a part of a path there. Both may be cut short, and words may
/// follow a path.
fn repeats(title: &str, from: &Regex, regions: &Regions<'_>) -> bool {
    let found = from.captures_iter(regions.text(Region::Footer)).filter_map(|found| found.get(1));
    let names: Vec<&str> = found.flat_map(|name| name.as_str().split('/')).map(str::trim).collect();
    let is_same = |part: &str, name: &str| match (start_of_cut(part), start_of_cut(name)) {
        (Some(start), _) => !start.is_empty() && name.starts_with(start),
        (_, Some(start)) => !start.is_empty() && part.starts_with(start),
        _ => !part.is_empty() && name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
    };
    title.split(" | ").any(|part| names.iter().any(|name| is_same(part.trim(), name)))
}

/// What is left of a text that was cut short.
fn start_of_cut(text: &str) -> Option<&str> {
    text.split_once('…').map(|(start, _)| start).or_else(|| text.strip_suffix("..."))
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    // A match may begin with the end of a line.
    let line = text[start..].trim_start_matches('\n');
    line.split('\n').next().unwrap_or_default()
}

/// Without the frame and without the long stretches of spaces and of lines that only fill the pane.
fn squeezed(line: &str) -> String {
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

fn looks_so(row: &Row, rule: &StyleRule) -> bool {
    rule.pattern.captures_iter(row.text()).any(|found| {
        let Some(piece) = found.get(1).or_else(|| found.get(0)) else { return false };
        let mut seen = piece.as_str().char_indices().filter(|(_, c)| !c.is_whitespace()).peekable();
        seen.peek().is_some() && seen.all(|(at, _)| has(row, piece.start() + at, rule.is))
    })
}

/// Whether the character that begins at this byte looks so.
pub(super) fn has(row: &Row, byte: usize, look: Look) -> bool {
    let style = row.style_at(byte);
    match look {
        Look::Bold => style.bold,
        Look::Dim => style.dim,
        Look::NotDim => !style.dim,
        Look::Reverse => style.reverse,
        Look::Faint => style.is_faint(),
        Look::NotFaint => !style.is_faint(),
        Look::Coloured => style.fg == Ink::Colour,
        Look::Plain => style.fg == Ink::Default && !style.dim,
        Look::Filled => {
            let ground = row.style_at(start_within_frame(row));
            (style.reverse, style.bg) != (ground.reverse, ground.bg)
        }
    }
}
