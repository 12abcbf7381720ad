//! Reads the options of a dialog.

use std::ops::Range;
use std::sync::LazyLock;

use agtmux_core::dialog::DialogOption;
use regex::Regex;

use super::dialog::DialogLine;

/// The maximum number of rows that describe one option.
const MAX_DESCRIPTION_ROWS: usize = 8;
const MAX_LIST_ROWS: usize = 60;
/// The maximum number of rows between the options and the dialog's hint below them.
const MAX_GAP_ROWS: usize = 8;

static NUMBERED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(\s*(?:[^\s\w]\s*)?)(\d{1,2})[.)]\s+(\S.*)$").expect("valid pattern"));
/// A tick in the label of an option. The tick shows whether the option is chosen. It is not part of the label's text.
static TICK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\[.?\]\s*|\s*[✔✓√]$").expect("valid pattern"));
/// A tick box at the start of a label. Dialogs in which several options can be chosen show tick boxes.
static TICK_BOX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\[([ ✔✓√xX])\]\s").expect("valid pattern"));

#[derive(Default)]
pub(super) struct FoundOptions {
    pub(super) options: Vec<DialogOption>,
    /// The rows that the options take up.
    pub(super) lines: Range<usize>,
    /// The text that precedes the first option in the same row.
    pub(super) lead: String,
    /// The start of each label: its row, and its byte offset in the text of that row.
    pub(super) labels: Vec<(usize, usize)>,
    /// The number of the option that a marker such as `❯` shows as selected.
    pub(super) marked: Option<u32>,
    /// The numbers of the options with a tick box, and whether each box is ticked.
    pub(super) ticks: Vec<(u32, bool)>,
}

/// Reads options in rows such as `1. Yes`. Starts at the row above `end` and reads upwards.
pub(super) fn numbered(
    lines: &[DialogLine<'_>],
    end: usize,
    marker: Option<&Regex>,
    described: bool,
) -> Option<FoundOptions> {
    let mut found: Vec<(usize, u32, String, usize)> = Vec::new();
    let mut labels: Vec<(usize, usize)> = Vec::new();
    let mut marked: Vec<u32> = Vec::new();
    let mut gap = 0;
    let mut scrolled = false;
    for at in (end.saturating_sub(MAX_LIST_ROWS)..end).rev() {
        let Some(parts) = NUMBERED.captures(lines[at].text) else {
            // The scroll arrow stands right above the first visible option.
            if lines[at].text.trim() == "▲" && gap == 0 && !found.is_empty() {
                scrolled = true;
                break;
            }
            gap += usize::from(lines[at].has_text());
            if gap > if found.is_empty() { MAX_GAP_ROWS } else { MAX_DESCRIPTION_ROWS } {
                return None;
            }
            continue;
        };
        let n: u32 = parts[2].parse().ok()?;
        // If this row has the scroll arrow `↓`, the options between this row and the next visible option are hidden.
        let is_consecutive = |below: u32| n + 1 == below || (n < below && parts[1].contains('↓'));
        // A row whose number is out of sequence belongs to a numbered list in a description or in the question.
        if found.last().is_some_and(|(_, below, ..)| !is_consecutive(*below)) {
            gap += 1;
            continue;
        }
        gap = 0;
        let is_marked = marker.is_some_and(|marker| marker.is_match(parts[1].trim_end()));
        marked.extend(is_marked.then_some(n));
        let label = parts.get(3)?.start();
        labels.push((at, label));
        let column = lines[at].text[..label].chars().count();
        found.push((at, n, parts[3].to_owned(), column));
        // If this row has the scroll arrow `↑`, or the row above consists only of this arrow, the options above are
        // hidden.
        scrolled = parts[1].contains('↑') || (at > 0 && lines[at - 1].text.trim() == "↑");
        if n == 1 || scrolled {
            break;
        }
    }
    found.reverse();
    labels.reverse();
    let tick = |(_, n, label, _): &(usize, u32, String, usize)| Some((*n, &TICK_BOX.captures(label)?[1] != " "));
    let ticks: Vec<(u32, bool)> = found.iter().filter_map(tick).collect();
    // If the options have tick boxes, the selection may be on the submit row, which has no number.
    let is_below = |marker: &Regex| {
        let rows = &lines[found.first().map_or(end, |first| first.0)..end];
        !ticks.is_empty() && rows.iter().filter(|line| marked_column(line.text, marker).is_some()).count() == 1
    };
    let is_selected = |marker: &Regex| marked.len() == 1 || (marked.is_empty() && is_below(marker));
    if (found.first()?.1 != 1 && !scrolled) || !marker.is_none_or(is_selected) {
        return None;
    }
    let mut last_line = found.last()?.0;
    let mut options = Vec::with_capacity(found.len());
    for (index, (at, n, label, column)) in found.iter().enumerate() {
        let next = found.get(index + 1).map_or(end, |next| next.0);
        let rest: Vec<&DialogLine<'_>> =
            lines[at + 1..next].iter().take_while(|l| l.has_text() && l.indent() >= *column).collect();
        last_line = at + rest.len();
        let mut label = label.clone();
        if !described {
            rest.iter().for_each(|line| label.extend([" ", line.text.trim()]));
        }
        options.push(DialogOption { n: *n, label: clean_label(&label) });
    }
    let marked = marked.first().copied();
    Some(FoundOptions { options, lines: found[0].0..last_line + 1, labels, marked, ticks, ..FoundOptions::default() })
}

/// Reads a list in which one row is marked. The list consists of the marked row and the rows around it that begin in
/// the same column or further right. A row that begins further right continues the label above it.
pub(super) fn listed(lines: &[DialogLine<'_>], end: usize, marker: &Regex) -> Option<FoundOptions> {
    let from = end.saturating_sub(MAX_LIST_ROWS);
    let (at, column) = (from..end).rev().find_map(|at| Some((at, marked_column(lines[at].text, marker)?)))?;
    let belongs = |line: &&DialogLine<'_>| line.has_text() && line.indent() >= column;
    let above = lines[from..at].iter().rev().take_while(belongs).count();
    let below = lines[at + 1..end].iter().take_while(belongs).count();
    let rows = at - above..at + below + 1;
    let (mut texts, mut labels, mut marked): (Vec<String>, Vec<(usize, usize)>, _) = (Vec::new(), Vec::new(), None);
    for row in rows.clone() {
        let text: String = lines[row].text.chars().skip(column).collect();
        match texts.last_mut() {
            Some(label) if text.starts_with(' ') => label.extend([" ", text.trim()]),
            _ => {
                labels.push((row, lines[row].text.len() - text.len()));
                texts.push(text);
            }
        }
        if row == at {
            marked = u32::try_from(texts.len()).ok();
        }
    }
    let options = (1..).zip(texts).map(|(n, label)| DialogOption { n, label: clean_label(&label) }).collect::<Vec<_>>();
    (options.len() > 1 && lines[at + below + 1..end].iter().filter(|l| l.has_text()).count() <= MAX_GAP_ROWS)
        .then_some(FoundOptions { options, lines: rows, labels, marked, ..FoundOptions::default() })
}

/// The column at which the text after the marker begins. None if the row is not marked.
fn marked_column(text: &str, marker: &Regex) -> Option<usize> {
    let trimmed = text.trim_start();
    let sign = trimmed.chars().next()?;
    let rest = &trimmed[sign.len_utf8()..];
    let label = rest.trim_start();
    let up_to_sign = &text[..text.len() - rest.len()];
    let is_marked = marker.is_match(up_to_sign) && rest.starts_with(' ') && !label.is_empty();
    is_marked.then(|| text[..text.len() - label.len()].chars().count())
}

/// Finds the last row that contains at least two options, and reads its options.
pub(super) fn inline(lines: &[DialogLine<'_>], end: usize, each: &Regex) -> Option<FoundOptions> {
    let from = end.saturating_sub(MAX_GAP_ROWS);
    let at = (from..end).rev().find(|at| each.find_iter(lines[*at].text).nth(1).is_some())?;
    let text = lines[at].text;
    let lead = text[..each.find(text)?.start()].trim().to_owned();
    let texts = each.find_iter(text).map(|found| found.as_str().trim().to_owned());
    let options = (1..).zip(texts).map(|(n, label)| DialogOption { n, label }).collect();
    let labels = each.find_iter(text).map(|found| (at, found.start())).collect();
    Some(FoundOptions { options, lines: at..at + 1, lead, labels, ..FoundOptions::default() })
}

/// The label without its tick and without a description in a second column.
fn clean_label(label: &str) -> String {
    let alone = label.split("  ").next().unwrap_or(label).trim();
    TICK.replace_all(alone, "").trim().to_owned()
}
