//! The named regions of an agent's screen.

use std::cell::OnceCell;
use std::ops::Range;

use super::{CapturedScreen, CellColour, CellStyle, ScreenRow, is_border, unframed};
use crate::manifest::{Pattern, ScreenLayout, ScreenRegion};

const BOTTOM_ROWS: usize = 12;
const ABOVE_ROWS: usize = 3;
/// The maximum height of an input box. A taller box is not recognised.
const MAX_BOX_ROWS: usize = 200;

/// A screen and its input box, divided into regions.
#[derive(Debug)]
pub(crate) struct ScreenRegions<'s> {
    pub(crate) screen: &'s CapturedScreen,
    layout: Option<&'s ScreenLayout>,
    input_box: Option<InputBox>,
    texts: [OnceCell<String>; ScreenRegion::COUNT],
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct InputBox {
    /// The `top` or `lid` row above the input box. Without such a row, the first row of the box.
    rim: usize,
    inside: Range<usize>,
    footer: usize,
}

impl<'s> ScreenRegions<'s> {
    pub(crate) fn find(screen: &'s CapturedScreen, layout: Option<&'s ScreenLayout>) -> Self {
        let live = layout.and_then(|layout| find_box(screen.rows(), layout));
        Self { screen, layout, input_box: live, texts: Default::default() }
    }

    /// Whether the screen shows an input box.
    pub(crate) fn has_box(&self) -> bool {
        self.input_box.is_some()
    }

    /// Whether the screen shows an input box with at least as many rows above it as the region `Above` can contain.
    pub(crate) fn has_room_above(&self) -> bool {
        self.input_box.as_ref().is_some_and(|live| live.rim >= ABOVE_ROWS)
    }

    /// The non-blank rows of a region, from the top.
    pub(crate) fn rows(&self, region: ScreenRegion) -> Vec<&'s ScreenRow> {
        let all = self.screen.rows();
        let live = self.input_box.as_ref();
        let above = live.map_or(all.len(), |live| live.rim);
        let (range, most) = match region {
            ScreenRegion::Whole => (0..all.len(), usize::MAX),
            ScreenRegion::Bottom => (0..all.len(), BOTTOM_ROWS),
            ScreenRegion::Footer => (live.map_or(all.len(), |live| live.footer)..all.len(), usize::MAX),
            ScreenRegion::Box => (live.map_or(0..0, |live| live.inside.clone()), usize::MAX),
            ScreenRegion::Rim => (live.map_or(0..0, |live| live.rim..live.rim + 1), usize::MAX),
            ScreenRegion::Above => (0..above, ABOVE_ROWS),
            ScreenRegion::Last => (self.last_match_before(above, |layout| layout.entry.as_ref())..above, usize::MAX),
            ScreenRegion::Turn => (self.last_match_before(above, |layout| layout.user.as_ref())..above, usize::MAX),
            ScreenRegion::Transcript => (0..above, usize::MAX),
        };
        let rows: Vec<&ScreenRow> = all[range].iter().filter(|row| !row.is_blank()).collect();
        rows[rows.len().saturating_sub(most)..].to_vec()
    }

    /// The text of a region.
    pub(crate) fn text(&self, region: ScreenRegion) -> &str {
        self.texts[region as usize].get_or_init(|| {
            let rows = self.rows(region);
            let texts: Vec<String> = match region {
                ScreenRegion::Box => rows.iter().map(|row| without_ghost(row, self.screen.is_styled())).collect(),
                _ => rows.iter().map(|row| row.text().to_owned()).collect(),
            };
            texts.join("\n")
        })
    }

    /// The non-blank rows above the box. Empty if there is no box.
    pub(crate) fn text_above_box(&self) -> Vec<String> {
        let above = self.input_box.as_ref().map_or(0, |live| live.rim);
        let rows = self.screen.rows()[..above].iter().filter(|row| !row.is_blank());
        rows.map(|row| row.text().to_owned()).collect()
    }

    /// The text typed into the box, without ghost text and without the prompt sign.
    pub(crate) fn typed_text(&self) -> Option<String> {
        let live = self.input_box.as_ref()?;
        let layout = self.layout?;
        let rows = &self.screen.rows()[live.inside.clone()];
        let is_label =
            |row: &&ScreenRow| layout.label.as_ref().is_some_and(|label| label.is_match(unframed(row.text())));
        let rows: Vec<&ScreenRow> = rows.iter().filter(|row| !is_label(row)).collect();
        let mut typed: Vec<String> = rows.iter().map(|row| without_ghost(row, self.screen.is_styled())).collect();
        if let Some(first) = typed.first_mut() {
            let sign = layout.prompt.captures(first).and_then(|found| Some(found.name("sign")?.end()));
            first.replace_range(..sign.unwrap_or(0), "");
        }
        let text = typed.iter().map(|row| row.trim()).collect::<Vec<_>>().join("\n").trim().to_owned();
        let looks_typed = self.screen.is_styled() && rows.iter().any(|row| has_plain_text(row));
        // A text that matches a `ghost` pattern is a placeholder if it does not have the style of typed text. If
        // colours are off, a placeholder may have that style too. A prompt that matches `alone` is therefore also
        // enough.
        let in_its_place = rows.first().is_some_and(|row| fits(&layout.alone, row));
        let is_ghost = (in_its_place || !looks_typed) && layout.ghost.iter().any(|ghost| ghost.is_match(&text));
        Some(if is_ghost { String::new() } else { text })
    }

    /// Whether a row of the box has ghost text after typed text. Only letters and digits count, because lines and
    /// separators may be faint, too. A placeholder is not a suggestion: no typed text precedes it.
    pub(crate) fn shows_suggestion(&self) -> bool {
        let typed = self.typed_text().is_some_and(|typed| !typed.is_empty());
        typed
            && self.rows(ScreenRegion::Box).iter().any(|row| {
                let (all, typed) = (unframed(row.text()), without_ghost(row, self.screen.is_styled()));
                let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
                letters(&typed) > 0 && letters(all) > letters(&typed)
            })
    }

    /// The first row of the last dialog that begins above row `before`. This is the row below the last match of the
    /// layout's pattern `dialog`, or row 0 if the pattern does not match above `before`.
    pub(crate) fn dialog_start(&self, before: usize) -> usize {
        self.dialog_top(before).unwrap_or(0)
    }

    /// Like [`dialog_start`](Self::dialog_start), but `None` if no row matches: the top of the dialog is not on the
    /// screen.
    pub(crate) fn dialog_top(&self, before: usize) -> Option<usize> {
        let begins = |row: &ScreenRow| self.layout.is_some_and(|layout| fits(&layout.dialog, row));
        self.screen.rows()[..before].iter().rposition(begins).map(|top| top + 1)
    }

    /// Whether the layout has a pattern for the row above a dialog.
    pub(crate) fn knows_dialog_top(&self) -> bool {
        self.layout.is_some_and(|layout| layout.dialog.is_some())
    }

    /// Whether a message of the user begins in one of these rows.
    pub(crate) fn has_user_entry(&self, rows: Range<usize>) -> bool {
        let rows = self.screen.rows().get(rows).unwrap_or_default();
        let begins = |layout: &ScreenLayout, row: &ScreenRow| fits(&layout.user, row) && fits(&layout.entry, row);
        self.layout.is_some_and(|layout| rows.iter().any(|row| begins(layout, row)))
    }

    fn last_match_before(&self, before: usize, pattern: impl Fn(&ScreenLayout) -> Option<&Pattern>) -> usize {
        let Some(pattern) = self.layout.and_then(pattern) else { return before };
        self.screen.rows()[..before].iter().rposition(|row| pattern.is_match(row.text())).unwrap_or(before)
    }
}

/// Removes ghost text from a row. Ghost text is faint, except for the character under the cursor, which is reversed or
/// underlined. That character is ghost text if the next character is faint.
fn without_ghost(row: &ScreenRow, styled: bool) -> String {
    let text = unframed(row.text());
    if !styled {
        return text.to_owned();
    }
    let offset = row.text().find(text).unwrap_or(0);
    let style = |at: usize| row.style_at(offset + at);
    let mut typed = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let under_cursor = style(at).reverse || style(at).underline;
        let starts_ghost = under_cursor && chars.peek().is_some_and(|(next, _)| style(*next).is_faint());
        // The prompt sign is kept, because it may be faint. Spaces are kept, because they have no visible style.
        if !(starts_ghost || style(at).is_faint()) || at == 0 || c == ' ' {
            typed.push(c);
        }
    }
    typed
}

/// Whether the row has a letter or digit in the style of typed text: not faint, and in white or the default colour.
/// Placeholders have other styles, which depend on the theme.
fn has_plain_text(row: &ScreenRow) -> bool {
    let is_plain = |style: CellStyle| !style.is_faint() && matches!(style.fg, CellColour::Default | CellColour::White);
    let mut letters = row.text().char_indices().filter(|(_, c)| c.is_alphanumeric());
    letters.any(|(at, _)| is_plain(row.style_at(at)))
}

fn find_box(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<InputBox> {
    let found = match (&layout.bottom, &layout.top) {
        (Some(_), _) => find_closed_box(rows, layout),
        (None, Some(_)) => find_box_below_top(rows, layout),
        (None, None) => find_box_at_prompt(rows, layout),
    }?;
    let mut footer = rows[found.footer..].iter().filter(|row| !row.is_blank());
    let has_foot = layout.foot.as_ref().is_none_or(|foot| footer.clone().any(|row| foot.is_match(row.text())));
    let is_old = footer.clone().count() > layout.footer || footer.any(|row| fits(&layout.not_below, row));
    (has_foot && !is_old && found.inside.len() <= MAX_BOX_ROWS).then_some(found)
}

/// The box between the last `bottom` row and the `top` row above it. If the layout has no `top`, the box consists of
/// the `prompt` rows right above the `bottom` row.
fn find_closed_box(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<InputBox> {
    let bottom = rows.iter().rposition(|row| fits(&layout.bottom, row))?;
    let (rim, inside) = match layout.top {
        Some(_) => {
            let top = rows[..bottom].iter().rposition(|row| fits(&layout.top, row))?;
            (top, top + 1..bottom)
        }
        None => {
            let prompts = |row: &&ScreenRow| layout.prompt.is_match(row.text());
            let height = rows[..bottom].iter().rev().take_while(prompts).count();
            (bottom - height, bottom - height..bottom)
        }
    };
    let first = rows[inside.clone()].iter().find(|row| !row.is_blank()).map_or("", ScreenRow::text);
    let prompts = !inside.is_empty() && layout.prompt.is_match(unframed(first));
    (prompts || layout.top.is_none())
        .then(|| InputBox { rim, footer: bottom + 1, inside })
        .filter(|b| !b.inside.is_empty())
}

/// The box at the lowest prompt that a `top` row, a `lid` row or the pattern `alone` identifies. The box ends at the
/// first blank row or border.
fn find_box_below_top(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<InputBox> {
    // If several searches find the same prompt, `max_by_key` returns the result of the last search, which finds the
    // upper end of the box most reliably.
    let candidates =
        [find_prompt_alone(rows, layout), find_prompt_below_lid(rows, layout), find_prompt_below_top(rows, layout)];
    let (first, rim) = candidates.into_iter().flatten().max_by_key(|(first, _)| *first)?;
    let end =
        (first + 1..rows.len()).find(|at| rows[*at].is_blank() || is_border(rows[*at].text())).unwrap_or(rows.len());
    Some(InputBox { rim, inside: first..end, footer: end })
}

/// The row of the prompt below the last `top` row, and the row of that `top` itself.
fn find_prompt_below_top(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<(usize, usize)> {
    let rim = rows.iter().rposition(|row| fits(&layout.top, row))?;
    let with_text = (rim + 1..rows.len()).filter(|at| !rows[*at].is_blank());
    let first = with_text.take(layout.gap + 1).find(|at| layout.prompt.is_match(rows[*at].text()))?;
    Some((first, rim))
}

/// The row of the last prompt that is right below a `lid` row, and the row at which its box begins. The box begins at a
/// `top` row close above the lid, if there is one. Otherwise it begins at the lid.
fn find_prompt_below_lid(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<(usize, usize)> {
    let lid =
        rows.windows(2).rposition(|pair| fits(&layout.lid, &pair[0]) && layout.prompt.is_match(pair[1].text()))?;
    // Rows above a `not_below` row belong to another box.
    let near = (0..lid).rev().filter(|at| !rows[*at].is_blank()).take(layout.gap);
    let mut near = near.take_while(|at| !fits(&layout.not_below, &rows[*at]));
    let rim = near.find(|at| fits(&layout.top, &rows[*at])).unwrap_or(lid);
    Some((lid + 1, rim))
}

fn find_prompt_alone(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<(usize, usize)> {
    let first = rows.iter().rposition(|row| fits(&layout.alone, row))?;
    Some((first, first))
}

/// Whether the layout has this pattern and the row matches it.
fn fits(pattern: &Option<Pattern>, row: &ScreenRow) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(row.text()))
}

/// The box from the last prompt to the `foot` row.
fn find_box_at_prompt(rows: &[ScreenRow], layout: &ScreenLayout) -> Option<InputBox> {
    let first = rows.iter().rposition(|row| layout.prompt.is_match(row.text()))?;
    let below: Vec<usize> = (first + 1..rows.len()).filter(|at| !rows[*at].is_blank()).collect();
    let candidates = &below[below.len().saturating_sub(layout.footer)..];
    let is_foot = |at: &usize| layout.foot.as_ref().is_none_or(|foot| foot.is_match(rows[*at].text()));
    let footer = candidates.iter().copied().find(is_foot).unwrap_or(rows.len());
    // Typed text continues below the prompt, indented. Rows that begin further left are not typed text.
    let typed = rows[first + 1..footer].iter().all(|row| row.is_blank() || row.text().starts_with("  "));
    typed.then_some(InputBox { rim: first, inside: first..footer, footer })
}
