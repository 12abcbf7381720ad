//! The layout of an agent's screen.

use regex::Regex;
use serde::Deserialize;

use super::pattern::{compile, compile_all, compile_optional};

#[derive(Deserialize)]
pub(super) struct LayoutToml {
    top: Option<String>,
    lid: Option<String>,
    alone: Option<String>,
    prompt: String,
    #[serde(default)]
    gap: usize,
    bottom: Option<String>,
    foot: Option<String>,
    footer: usize,
    not_below: Option<String>,
    entry: Option<String>,
    user: Option<String>,
    dialog: Option<String>,
    label: Option<String>,
    #[serde(default)]
    ghost: Vec<String>,
}

/// Patterns that find the input box and the parts around it. Each pattern is matched against single rows.
#[derive(Debug)]
pub(crate) struct ScreenLayout {
    /// The row above the box.
    pub(crate) top: Option<Regex>,
    /// A row right above the prompt that also opens a box. If a `top` is just above it, the `top` counts.
    pub(crate) lid: Option<Regex>,
    /// A prompt that occurs only in the live box, regardless of the rows above it.
    pub(crate) alone: Option<Regex>,
    /// The first row in the box, without a frame. The group `sign` is not part of the typed text.
    pub(crate) prompt: Regex,
    /// The maximum number of non-blank rows between the top and the prompt.
    pub(crate) gap: usize,
    /// The row below the box. Without this pattern, the box ends at the first blank row, or where the foot begins.
    pub(crate) bottom: Option<Regex>,
    /// A row that must exist below the box.
    pub(crate) foot: Option<Regex>,
    /// The maximum number of non-blank rows below the box.
    pub(crate) footer: usize,
    /// A row that never stands below a live box. If it does, the box is an old one.
    pub(crate) not_below: Option<Regex>,
    /// A row that begins an entry of the transcript.
    pub(crate) entry: Option<Regex>,
    /// A row that begins a message of the user.
    pub(crate) user: Option<Regex>,
    /// The row above a dialog.
    pub(crate) dialog: Option<Regex>,
    /// A row in the box that is not typed text.
    pub(crate) label: Option<Regex>,
    /// The text of an empty box, for captures without styles.
    pub(crate) ghost: Vec<Regex>,
}

impl ScreenLayout {
    pub(super) fn compile(raw: LayoutToml) -> Result<Self, String> {
        Ok(Self {
            top: compile_optional("'layout.top'", raw.top.as_deref())?,
            lid: compile_optional("'layout.lid'", raw.lid.as_deref())?,
            alone: compile_optional("'layout.alone'", raw.alone.as_deref())?,
            prompt: compile("'layout.prompt'", &raw.prompt)?,
            gap: raw.gap,
            bottom: compile_optional("'layout.bottom'", raw.bottom.as_deref())?,
            foot: compile_optional("'layout.foot'", raw.foot.as_deref())?,
            footer: raw.footer,
            not_below: compile_optional("'layout.not_below'", raw.not_below.as_deref())?,
            entry: compile_optional("'layout.entry'", raw.entry.as_deref())?,
            user: compile_optional("'layout.user'", raw.user.as_deref())?,
            dialog: compile_optional("'layout.dialog'", raw.dialog.as_deref())?,
            label: compile_optional("'layout.label'", raw.label.as_deref())?,
            ghost: compile_all("'layout.ghost'", &raw.ghost)?,
        })
    }
}
