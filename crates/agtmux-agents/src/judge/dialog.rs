//! Finds a dialog at the bottom of a screen.

use agtmux_core::dialog::Dialog;
use regex::Regex;

use super::options::{self, Found};
use super::rule;
use crate::manifest::{Choices, DialogRule, Look};
use crate::screen::{Regions, is_edge, start_within_frame, unframed};

/// A dialog is at most so high; what is above it is never looked at.
const HIGHEST_DIALOG: usize = 120;

/// A row without its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'s> {
    pub(super) text: &'s str,
    edge: bool,
}

impl Line<'_> {
    pub(super) fn has_text(&self) -> bool {
        !self.edge && !self.text.trim().is_empty()
    }

    pub(super) fn indent(&self) -> usize {
        self.text.chars().take_while(|c| *c == ' ').count()
    }
}

/// A dialog, and what can be seen of its options.
pub(super) struct Open {
    pub(super) dialog: Dialog,
    /// The number of the one that is selected.
    pub(super) selected: Option<u32>,
    /// Those that can be ticked, and whether each is.
    pub(super) ticks: Vec<(u32, bool)>,
}

/// The dialog that takes the place of the input box. Where there is a box, what looks like a dialog is a quotation.
pub(super) fn find<'r>(rules: &'r [DialogRule], regions: &Regions<'_>) -> Option<(&'r DialogRule, Open)> {
    if rules.is_empty() || regions.has_box() {
        return None;
    }
    let rows = regions.screen.rows();
    let first = rows.len().saturating_sub(HIGHEST_DIALOG);
    let lines: Vec<Line<'_>> =
        rows[first..].iter().map(|row| Line { text: unframed(row.text()), edge: is_edge(row.text()) }).collect();
    rules.iter().find_map(|rule| Some((rule, apply(rule, regions, &lines, first)?)))
}

fn apply(rule: &DialogRule, regions: &Regions<'_>, lines: &[Line<'_>], first: usize) -> Option<Open> {
    let end = match &rule.hint {
        Some(hint) => hint_line(lines, hint, rule.trail)?,
        None => lines.len(),
    };
    let found = match &rule.choices {
        Choices::Numbered { marker } => options::numbered(lines, end, marker.as_ref(), rule.described)?,
        Choices::Listed { marker } => options::listed(lines, end, marker)?,
        // Options may stand in the row of the hint.
        Choices::Inline { each } => options::inline(lines, (end + 1).min(lines.len()), each)?,
        Choices::None => Found::nothing_at(end),
    };
    let below = lines[found.lines.end.min(lines.len())..].iter().filter(|line| line.has_text()).count();
    if rule.hint.is_none() && below > rule.trail {
        return None;
    }
    // Options above the user's last words are quoted; the hint belongs to something else.
    if regions.user_speaks(first + found.lines.end..first + end) {
        return None;
    }
    if rule.ticks && found.ticks.is_empty() {
        return None;
    }
    if rule.offers.as_ref().is_some_and(|offers| !found.options.iter().any(|option| offers.is_match(&option.label))) {
        return None;
    }
    let start = regions.dialog_start(first + found.lines.start).saturating_sub(first);
    let selected = match rule.selected {
        Some(look) => selected_by_look(&found, regions, first, look),
        None => found.marked,
    };
    let mut paragraphs = paragraphs(&lines[start.min(found.lines.start)..found.lines.start]);
    paragraphs.extend((!found.lead.is_empty()).then_some(found.lead));
    if rule.head.as_ref().is_some_and(|head| !paragraphs.iter().any(|paragraph| head.is_match(paragraph))) {
        return None;
    }
    let asks = match &rule.question {
        Some(question) => paragraphs.iter().rposition(|paragraph| question.is_match(paragraph))?,
        None => paragraphs.iter().rposition(|p| p.contains('?')).or(paragraphs.len().checked_sub(1))?,
    };
    let others = paragraphs.iter().enumerate().filter(|(at, _)| *at != asks).map(|(_, paragraph)| paragraph.as_str());
    // Whether something is ticked changes while it is answered.
    let steady = |c: &char| !matches!(c, '☐' | '☑' | '☒' | '✔' | '✓');
    let subject: String = others.collect::<Vec<_>>().join("\n").chars().filter(steady).collect();
    let subject = Some(subject.trim().to_owned()).filter(|subject| !subject.is_empty());
    let asked = rule.question.as_ref().and_then(|question| question.captures(&paragraphs[asks])?.name("asks"));
    let question = asked.map_or(paragraphs[asks].as_str(), |asked| asked.as_str()).to_owned();
    let mut dialog = Dialog::new(rule.kind, question, subject, found.options);
    dialog.multiple = !found.ticks.is_empty();
    Some(Open { dialog, selected, ticks: found.ticks })
}

/// The only one that looks so.
fn selected_by_look(found: &Found, regions: &Regions<'_>, first: usize, look: Look) -> Option<u32> {
    let looks_so = |(line, byte): &(usize, usize)| {
        let row = &regions.screen.rows()[first + line];
        rule::has(row, start_within_frame(row) + byte, look)
    };
    let mut fitting = found.options.iter().zip(&found.labels).filter(|(_, label)| looks_so(label));
    let selected = fitting.next()?.0.n;
    fitting.next().is_none().then_some(selected)
}

/// The row of the hint, which may be broken in two.
fn hint_line(lines: &[Line<'_>], hint: &Regex, trail: usize) -> Option<usize> {
    let with_text: Vec<usize> = (0..lines.len()).rev().filter(|at| lines[*at].has_text()).take(trail + 1).collect();
    let broken = |at: usize| {
        let next = lines.get(at + 1).map_or("", |line| line.text.trim());
        hint.is_match(&format!("{} {next}", lines[at].text.trim()))
    };
    let whole = with_text.iter().copied().find(|at| hint.is_match(lines[*at].text));
    whole.or_else(|| with_text.into_iter().find(|at| broken(*at)))
}

/// Rows that stand together, each paragraph in one line. Blank rows and edges part them.
fn paragraphs(lines: &[Line<'_>]) -> Vec<String> {
    lines
        .split(|line| !line.has_text())
        .filter(|rows| !rows.is_empty())
        .map(|rows| rows.iter().map(|line| line.text.trim()).collect::<Vec<_>>().join(" "))
        .collect()
}
