//! Whether a rule fits a screen.

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
    let title_fits = rule.title.as_ref().is_none_or(|pattern| title.is_some_and(|title| pattern.is_match(title)))
        && !rule.not_title.as_ref().is_some_and(|pattern| title.is_some_and(|title| pattern.is_match(title)));
    if !needed || !title_fits {
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
    let mut looks = rule.style.iter().map(|style| rows.iter().find(|row| looks_so(row, style)));
    let styled = looks.next().flatten();
    if (!rule.style.is_empty() && (!regions.screen.is_styled() || styled.is_none())) || looks.any(|row| row.is_none()) {
        return None;
    }
    let found = any.or_else(|| rule.all.first().and_then(|pattern| pattern.find(text)));
    let line = found.map(|found| line_around(text, found.start()));
    let line = line.or(styled.map(|row| row.text())).map(squeezed).unwrap_or_default();
    // What somebody is typing is nobody's business: the sign before it is enough.
    Some(if rule.region == Region::Box { line.chars().take(1).collect() } else { line })
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
