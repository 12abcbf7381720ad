//! Where an agent's screen has its parts.

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

/// How the input box is found, and what is around it. Patterns see one row each.
#[derive(Debug)]
pub(crate) struct ScreenLayout {
    /// The row above the box.
    pub(crate) top: Option<Regex>,
    /// A row right above the prompt that opens a box as well; a top just above it is still the one that counts.
    pub(crate) lid: Option<Regex>,
    /// A prompt that is only ever in the live box, whatever is above it.
    pub(crate) alone: Option<Regex>,
    /// The first row in the box, without a frame. Its group `sign` is not typed.
    pub(crate) prompt: Regex,
    /// So many rows with text may stand between the top and the prompt.
    pub(crate) gap: usize,
    /// The row below the box. Without one, the box ends at the first blank row, or where the foot begins.
    pub(crate) bottom: Option<Regex>,
    /// A row that must be below the box.
    pub(crate) foot: Option<Regex>,
    /// At most so many rows with text are below the box.
    pub(crate) footer: usize,
    /// A row that is never below the box: where it is, the box is an old one.
    pub(crate) not_below: Option<Regex>,
    /// A row that begins an entry of the transcript.
    pub(crate) entry: Option<Regex>,
    /// A row that begins what the user said.
    pub(crate) user: Option<Regex>,
    /// The row above a dialog.
    pub(crate) dialog: Option<Regex>,
    /// A row in the box that is not typed.
    pub(crate) label: Option<Regex>,
    /// What stands in the box while nothing is typed, for captures that do not tell how text looks.
    pub(crate) ghost: Vec<Regex>,
}

impl ScreenLayout {
    pub(super) fn compile(written: LayoutToml) -> Result<Self, String> {
        Ok(Self {
            top: compile_optional("'layout.top'", written.top.as_deref())?,
            lid: compile_optional("'layout.lid'", written.lid.as_deref())?,
            alone: compile_optional("'layout.alone'", written.alone.as_deref())?,
            prompt: compile("'layout.prompt'", &written.prompt)?,
            gap: written.gap,
            bottom: compile_optional("'layout.bottom'", written.bottom.as_deref())?,
            foot: compile_optional("'layout.foot'", written.foot.as_deref())?,
            footer: written.footer,
            not_below: compile_optional("'layout.not_below'", written.not_below.as_deref())?,
            entry: compile_optional("'layout.entry'", written.entry.as_deref())?,
            user: compile_optional("'layout.user'", written.user.as_deref())?,
            dialog: compile_optional("'layout.dialog'", written.dialog.as_deref())?,
            label: compile_optional("'layout.label'", written.label.as_deref())?,
            ghost: compile_all("'layout.ghost'", &written.ghost)?,
        })
    }
}
