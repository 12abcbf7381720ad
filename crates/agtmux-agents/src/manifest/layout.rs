//! The layout of an agent's screen.

use serde::Deserialize;

use super::pattern::{Pattern, check_all};

/// Patterns that find the input box and the parts around it. Each pattern is matched against single rows.
#[derive(Debug, Deserialize)]
pub(crate) struct ScreenLayout {
    /// Matches the row above the input box.
    pub(crate) top: Option<Pattern>,
    /// Matches the lid: a row right above the prompt. A lid identifies a box even if there is no `top` row. The box
    /// begins at the nearest `top` row within `gap` non-blank rows above the lid. Without such a row, the box begins at
    /// the lid.
    pub(crate) lid: Option<Pattern>,
    /// Matches a prompt that occurs only in the current input box. The rows above such a prompt are not checked.
    pub(crate) alone: Option<Pattern>,
    /// Matches the first row in the input box, without its frame. The text of the group `sign` is the prompt sign, not
    /// typed text.
    pub(crate) prompt: Pattern,
    /// The maximum number of non-blank rows between the `top` row and the `prompt` row.
    #[serde(default)]
    pub(crate) gap: usize,
    /// Matches the row below the input box. If the layout has a `top` but no `bottom`, the box ends at the first blank
    /// row or border. If the layout has neither `top` nor `bottom`, the box ends at the `foot` row.
    pub(crate) bottom: Option<Pattern>,
    /// Matches a row that must exist below the input box.
    pub(crate) foot: Option<Pattern>,
    /// The maximum number of non-blank rows below the input box.
    pub(crate) footer: usize,
    /// Matches rows that never appear below the current input box. A box above such a row is an old one.
    pub(crate) not_below: Option<Pattern>,
    /// Matches the first row of an entry of the transcript.
    pub(crate) entry: Option<Pattern>,
    /// Matches the first row of a user's message.
    pub(crate) user: Option<Pattern>,
    /// Matches the row above a dialog.
    pub(crate) dialog: Option<Pattern>,
    /// Matches rows in the input box that are not typed text.
    pub(crate) label: Option<Pattern>,
    /// Matches the placeholders of an empty input box. In a capture without styles, only these patterns distinguish a
    /// placeholder from typed text.
    #[serde(default)]
    pub(crate) ghost: Vec<Pattern>,
}

impl ScreenLayout {
    pub(super) fn check(&self) -> Result<(), String> {
        let patterns = [
            ("top", self.top.as_ref()),
            ("lid", self.lid.as_ref()),
            ("alone", self.alone.as_ref()),
            ("prompt", Some(&self.prompt)),
            ("bottom", self.bottom.as_ref()),
            ("foot", self.foot.as_ref()),
            ("not_below", self.not_below.as_ref()),
            ("entry", self.entry.as_ref()),
            ("user", self.user.as_ref()),
            ("dialog", self.dialog.as_ref()),
            ("label", self.label.as_ref()),
        ];
        for (key, pattern) in patterns {
            check_all(&format!("'layout.{key}'"), pattern)?;
        }
        check_all("'layout.ghost'", &self.ghost)
    }
}
