//! Finds the dialog at the bottom of a screen.

use agtmux_core::dialog::Dialog;
use regex::Regex;

use super::options::{self, FoundOptions};
use super::rule;
use crate::manifest::{DialogRule, OptionFormat, StyleCondition};
use crate::screen::{ScreenRegions, is_border, start_within_frame, unframed};

/// The maximum height of a dialog. Only this many rows at the end of the screen are searched.
const MAX_DIALOG_ROWS: usize = 120;

/// A row without its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct DialogLine<'s> {
    pub(super) text: &'s str,
    is_border: bool,
}

impl DialogLine<'_> {
    pub(super) fn has_text(&self) -> bool {
        !self.is_border && !self.text.trim().is_empty()
    }

    pub(super) fn indent(&self) -> usize {
        self.text.chars().take_while(|c| *c == ' ').count()
    }
}

/// A dialog and the visible state of its options.
pub(super) struct FoundDialog {
    pub(super) dialog: Dialog,
    /// The number of the selected option.
    pub(super) selected: Option<u32>,
    /// The options with a tick box, and whether each one is ticked.
    pub(super) ticks: Vec<(u32, bool)>,
}

/// Finds a dialog. A dialog replaces the input box, so on a screen with an input box, text that looks like a dialog is
/// only a quotation.
pub(super) fn find<'r>(rules: &'r [DialogRule], regions: &ScreenRegions<'_>) -> Option<(&'r DialogRule, FoundDialog)> {
    if rules.is_empty() || regions.has_box() {
        return None;
    }
    let rows = regions.screen.rows();
    let first = rows.len().saturating_sub(MAX_DIALOG_ROWS);
    let lines: Vec<DialogLine<'_>> = rows[first..]
        .iter()
        .map(|row| DialogLine { text: unframed(row.text()), is_border: is_border(row.text()) })
        .collect();
    rules.iter().find_map(|rule| Some((rule, match_rule(rule, regions, &lines, first)?)))
}

fn match_rule(
    rule: &DialogRule,
    regions: &ScreenRegions<'_>,
    lines: &[DialogLine<'_>],
    first: usize,
) -> Option<FoundDialog> {
    let end = match &rule.hint {
        Some(hint) => find_hint_line(lines, hint, rule.trail)?,
        None => lines.len(),
    };
    let found = match rule.options {
        OptionFormat::Numbered => options::numbered(lines, end, rule.marker.as_deref(), rule.described)?,
        OptionFormat::Listed => options::listed(lines, end, rule.marker.as_deref()?)?,
        // The options may be in the same row as the hint.
        OptionFormat::Inline => options::inline(lines, (end + 1).min(lines.len()), rule.choices.as_deref()?)?,
        OptionFormat::None => FoundOptions { lines: end..end, ..FoundOptions::default() },
    };
    let below = lines[found.lines.end.min(lines.len())..].iter().filter(|line| line.has_text()).count();
    if rule.hint.is_none() && below > rule.trail {
        return None;
    }
    // If a message of the user is between the options and the hint, the options are a quotation.
    if regions.has_user_entry(first + found.lines.end..first + end) {
        return None;
    }
    // If the border of another dialog is between the options and the hint, the hint belongs to that dialog.
    let last_start = regions.dialog_start(first + end).saturating_sub(first);
    if rule.hint.is_some() && last_start > found.lines.end && lines[last_start - 1].is_border {
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
        Some(look) => selected_by_style(&found, regions, first, look),
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
    // Ticks change while the user answers, so they are not part of the subject.
    let is_not_tick = |c: &char| !matches!(c, '☐' | '☑' | '☒' | '✔' | '✓');
    let subject: String = others.collect::<Vec<_>>().join("\n").chars().filter(is_not_tick).collect();
    let subject = Some(subject.trim().to_owned()).filter(|subject| !subject.is_empty());
    let asked = rule.question.as_ref().and_then(|question| question.captures(&paragraphs[asks])?.name("asks"));
    let question = asked.map_or(paragraphs[asks].as_str(), |asked| asked.as_str()).to_owned();
    let mut dialog = Dialog::new(rule.kind, question, subject, found.options);
    dialog.multiple = !found.ticks.is_empty();
    Some(FoundDialog { dialog, selected, ticks: found.ticks })
}

/// The number of the selected option, which is the only option with this style. None if no option or several options
/// have this style.
fn selected_by_style(
    found: &FoundOptions,
    regions: &ScreenRegions<'_>,
    first: usize,
    look: StyleCondition,
) -> Option<u32> {
    let has_style = |(line, byte): &(usize, usize)| {
        let row = &regions.screen.rows()[first + line];
        rule::meets_condition(row, start_within_frame(row) + byte, look)
    };
    let mut fitting = found.options.iter().zip(&found.labels).filter(|(_, label)| has_style(label));
    let selected = fitting.next()?.0.n;
    fitting.next().is_none().then_some(selected)
}

/// The first row of the hint. The hint may be wrapped over two rows.
fn find_hint_line(lines: &[DialogLine<'_>], hint: &Regex, trail: usize) -> Option<usize> {
    let with_text: Vec<usize> = (0..lines.len()).rev().filter(|at| lines[*at].has_text()).take(trail + 1).collect();
    let broken = |at: usize| {
        let next = lines.get(at + 1).map_or("", |line| line.text.trim());
        hint.is_match(&format!("{} {next}", lines[at].text.trim()))
    };
    let whole = with_text.iter().copied().find(|at| hint.is_match(lines[*at].text));
    whole.or_else(|| with_text.into_iter().find(|at| broken(*at)))
}

/// Joins consecutive rows into paragraphs. Blank rows and borders separate the paragraphs.
fn paragraphs(lines: &[DialogLine<'_>]) -> Vec<String> {
    lines
        .split(|line| !line.has_text())
        .filter(|rows| !rows.is_empty())
        .map(|rows| rows.iter().map(|line| line.text.trim()).collect::<Vec<_>>().join(" "))
        .collect()
}
