//! Rules that find a dialog and its question.

use agtmux_core::evidence::DialogKind;
use serde::Deserialize;

use super::pattern::{Pattern, check_all, check_name};
use super::{StyleCondition, default_true};

/// By default, up to two non-blank rows may follow a dialog, because a hint that is too long for the pane continues in
/// one or two more rows.
fn default_trail() -> usize {
    2
}

/// How a dialog displays its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OptionFormat {
    /// Rows such as `1. Yes`. If the rule has the pattern `marker`, one of the rows must be marked: the pattern must
    /// match the text before the number of that row.
    Numbered,
    /// Rows without numbers. All labels begin in the same column, and one row is marked. The pattern `marker` must
    /// match the text of the marked row up to and including its first non-blank character.
    Listed,
    /// All options in one row, each matched by the pattern `choices`.
    Inline,
    /// No options: the dialog takes free text.
    None,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DialogRule {
    pub(crate) name: String,
    pub(crate) kind: DialogKind,
    pub(crate) options: OptionFormat,
    pub(crate) marker: Option<Pattern>,
    /// The style by which the selected option is recognised. Not set for dialogs that show the selection by a marker.
    pub(crate) selected: Option<StyleCondition>,
    pub(crate) choices: Option<Pattern>,
    /// Whether the rows below an option describe the option. If false, these rows continue the label of the option.
    #[serde(default)]
    pub(crate) described: bool,
    /// Whether the rule matches only if the options have tick boxes.
    #[serde(default)]
    pub(crate) ticks: bool,
    /// A pattern that a paragraph above the options must match.
    pub(crate) head: Option<Pattern>,
    /// A pattern for the first paragraph of a dialog that fills the screen. If that paragraph is the first one on the
    /// screen, the whole dialog is visible.
    pub(crate) first: Option<Pattern>,
    /// A pattern that must match in a paragraph above the options. That paragraph is the question. If the pattern has a
    /// group named `asks`, only the text of that group is the question. If the rule has no such pattern, the question
    /// is the last paragraph with a question mark, or the last paragraph if no paragraph has a question mark.
    pub(crate) question: Option<Pattern>,
    /// A pattern that the label of at least one option must match.
    pub(crate) offers: Option<Pattern>,
    /// A pattern that the dialog's hint must match. The hint is a row at or below the last option, such as `Enter to
    /// confirm`.
    pub(crate) hint: Option<Pattern>,
    /// The maximum number of non-blank rows below the dialog.
    #[serde(default = "default_trail")]
    pub(crate) trail: usize,
    #[serde(default = "default_true")]
    pub(crate) conclusive: bool,
}

impl DialogRule {
    pub(super) fn check(&self) -> Result<(), String> {
        check_name("dialog", &self.name)?;
        let what = |key: &str| format!("dialog '{}': '{key}'", self.name);
        let needed = |key: &str, pattern: &Option<Pattern>| match pattern {
            Some(pattern) => pattern.check(&what(key)),
            None => Err(format!("{} is required for this kind of options", what(key))),
        };
        match self.options {
            OptionFormat::Numbered => check_all(&what("marker"), &self.marker)?,
            OptionFormat::Listed => needed("marker", &self.marker)?,
            OptionFormat::Inline => needed("choices", &self.choices)?,
            OptionFormat::None => {}
        }
        check_all(&what("head"), &self.head)?;
        check_all(&what("first"), &self.first)?;
        check_all(&what("question"), &self.question)?;
        check_all(&what("offers"), &self.offers)?;
        check_all(&what("hint"), &self.hint)?;
        let invalid = |why: &str| Err(format!("dialog '{}' {why}", self.name));
        if self.hint.is_none() && self.head.is_none() && self.question.is_none() && self.offers.is_none() {
            return invalid("would match any list: add 'hint', 'head', 'question' or 'offers'");
        }
        if self.options == OptionFormat::None && (self.offers.is_some() || self.hint.is_none()) {
            return invalid("has no options: it requires a 'hint' and cannot have 'offers'");
        }
        Ok(())
    }
}
