//! Finds the dialog at the bottom of a screen.

use std::sync::LazyLock;

use agtmux_core::dialog::Dialog;
use agtmux_core::evidence::DialogKind;
use regex::Regex;

use super::options::{self, FoundOptions};
use super::rule;
use crate::manifest::{DialogRule, OptionFormat, StyleCondition};
use crate::screen::{ScreenRegions, is_border, start_within_frame, unframed};

/// Matches the signs that an agent has left out a part of a text: an ellipsis, or a note about hidden lines.
static SHORTENED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"…|⋯|(?im)^\W*(?:\.\.\. )?(?:\+ ?\d+ (?:more )?lines?|(?:first|last) \d+ lines? hidden)\b")
        .expect("valid pattern")
});

/// The maximum height of a dialog. Only this many rows at the end of the screen are searched.
const MAX_DIALOG_ROWS: usize = 120;

/// A row of the screen without the frame that the agent draws around the row.
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
    /// The number of the selected option: the one that the dialog highlights.
    pub(super) selected: Option<u32>,
    /// The numbers of the options with a tick box, and whether each box is ticked.
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
    let top = regions.dialog_top(first + found.lines.start);
    let start = top.map_or(0, |top| top.saturating_sub(first)).min(found.lines.start);
    let selected = match rule.selected {
        Some(look) => selected_by_style(&found, regions, first, look),
        None => found.marked,
    };
    let above = &lines[start..found.lines.start];
    let is_approval = rule.kind == DialogKind::Approval;
    let mut paragraphs = paragraphs(above, is_approval);
    paragraphs.extend((!found.lead.is_empty()).then(|| vec![found.lead.as_str()]));
    if let Some(question) = rule.question.as_ref().filter(|_| is_approval) {
        separate_question(&mut paragraphs, question);
    }
    let texts: Vec<String> = paragraphs.iter().map(|rows| rows.join(" ")).collect();
    if rule.head.as_ref().is_some_and(|head| !texts.iter().any(|text| head.is_match(text))) {
        return None;
    }
    let asks = match &rule.question {
        Some(question) => texts.iter().rposition(|text| question.is_match(text))?,
        None => texts.iter().rposition(|text| text.contains('?')).or(texts.len().checked_sub(1))?,
    };
    let subject = subject(&paragraphs, asks, is_approval);
    let asked = rule.question.as_ref().and_then(|question| question.captures(&texts[asks])?.name("asks"));
    let question = asked.map_or(texts[asks].as_str(), |asked| asked.as_str()).to_owned();
    let is_top_visible = match top {
        Some(top) => top >= first,
        // No visible row matches the layout's pattern for the row above a dialog. The top of the dialog then counts as
        // visible in three cases: the screen begins with the rule's first paragraph; the dialog begins with its question
        // and the subject follows; the layout has no such pattern, and a blank row separates the dialog from the rows
        // above it.
        None => {
            rule.first.as_ref().is_some_and(|first| texts.first().is_some_and(|text| first.is_match(text)))
                || (asks == 0 && rule.question.is_some() && subject.is_some())
                || (!regions.knows_dialog_top() && paragraphs.len() > 2)
        }
    };
    let is_shortened = SHORTENED.is_match(&question) || subject.as_deref().is_some_and(|text| SHORTENED.is_match(text));
    let mut dialog = Dialog::new(rule.kind, question, subject, found.options);
    dialog.subject_truncated |= is_approval && (!is_top_visible || is_shortened);
    dialog.multiple = !found.ticks.is_empty();
    Some(FoundDialog { dialog, selected, ticks: found.ticks })
}

/// Finds the selected option: the only one that the dialog shows in this style. None if no option or several options
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

/// Finds the first row of the dialog's hint, such as `Enter to confirm`. In a narrow pane, the hint may take two rows.
fn find_hint_line(lines: &[DialogLine<'_>], hint: &Regex, trail: usize) -> Option<usize> {
    let with_text: Vec<usize> = (0..lines.len()).rev().filter(|at| lines[*at].has_text()).take(trail + 1).collect();
    let broken = |at: usize| {
        let next = lines.get(at + 1).map_or("", |line| line.text.trim());
        hint.is_match(&format!("{} {next}", lines[at].text.trim()))
    };
    let whole = with_text.iter().copied().find(|at| hint.is_match(lines[*at].text));
    whole.or_else(|| with_text.into_iter().find(|at| broken(*at)))
}

/// Divides rows into paragraphs. Blank rows and borders separate the paragraphs.
fn paragraphs<'s>(lines: &[DialogLine<'s>], is_approval: bool) -> Vec<Vec<&'s str>> {
    // A command may contain line-drawing characters. In an approval, a row is therefore a border only if it has no
    // letters, digits or other ASCII signs.
    let has_letters = |line: &DialogLine<'_>| line.text.contains(|c: char| c.is_ascii_graphic());
    let separates = |line: &DialogLine<'_>| !(line.has_text() || is_approval && has_letters(line));
    lines
        .split(separates)
        .filter(|rows| !rows.is_empty())
        .map(|rows| rows.iter().map(|line| line.text.trim()).collect())
        .collect()
}

/// Makes the question a paragraph of its own. The rows right above the question may be the end of a command.
fn separate_question(paragraphs: &mut Vec<Vec<&str>>, question: &Regex) {
    let Some(asks) = paragraphs.iter().rposition(|rows| question.is_match(&rows.join(" "))) else { return };
    let rows = &mut paragraphs[asks];
    let begins = (0..rows.len()).rev().find(|from| question.is_match(&rows[*from..].join(" ")));
    let own_rows = rows.split_off(begins.unwrap_or(0));
    match rows.is_empty() {
        true => *rows = own_rows,
        false => paragraphs.insert(asks + 1, own_rows),
    }
}

/// The text of all paragraphs except the question.
///
/// The rows of an approval's subject are not joined. The screen does not show whether a row ends at a space, within a
/// word or at the end of a script line, and a person who approves a command must not be shown a guess.
fn subject(paragraphs: &[Vec<&str>], asks: usize, is_approval: bool) -> Option<String> {
    let others = paragraphs.iter().enumerate().filter(|(at, _)| *at != asks).map(|(_, rows)| rows);
    let subject = match is_approval {
        true => others.map(|rows| rows.join("\n")).collect::<Vec<_>>().join("\n"),
        // Ticks change while the user answers, so they are not part of the subject.
        false => {
            let is_not_tick = |c: &char| !matches!(c, '☐' | '☑' | '☒' | '✔' | '✓');
            others.map(|rows| rows.join(" ")).collect::<Vec<_>>().join("\n").chars().filter(is_not_tick).collect()
        }
    };
    Some(subject.trim().to_owned()).filter(|subject| !subject.is_empty())
}
