//! Rules that find a dialog and its question.

use agtmux_core::evidence::DialogKind;
use regex::Regex;
use serde::Deserialize;

use super::StyleCondition;
use super::pattern::{check_name, compile as compile_pattern, compile_optional};

#[derive(Deserialize)]
pub(super) struct DialogRuleToml {
    name: String,
    kind: DialogKind,
    options: OptionFormatToml,
    marker: Option<String>,
    selected: Option<StyleCondition>,
    choices: Option<String>,
    #[serde(default)]
    described: bool,
    #[serde(default)]
    ticks: bool,
    head: Option<String>,
    question: Option<String>,
    offers: Option<String>,
    hint: Option<String>,
    #[serde(default = "default_trail")]
    trail: usize,
    #[serde(default = "default_true")]
    conclusive: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OptionFormatToml {
    Numbered,
    Listed,
    Inline,
    None,
}

/// A hint that is too long for the pane continues in one or two more rows.
fn default_trail() -> usize {
    2
}

fn default_true() -> bool {
    true
}

/// How a dialog displays its options.
#[derive(Debug)]
pub(crate) enum OptionFormat {
    /// Rows such as `1. Yes`. If a marker is given, one row is marked; the marker is searched before the number.
    Numbered { marker: Option<Regex> },
    /// Rows of which one is marked; the others begin in the same column. The marker is searched up to the first
    /// non-blank character.
    Listed { marker: Regex },
    /// All options in one row, each matched by the pattern.
    Inline { each: Regex },
    /// No options: the dialog takes free text.
    None,
}

#[derive(Debug)]
pub(crate) struct DialogRule {
    pub(crate) name: String,
    pub(crate) kind: DialogKind,
    pub(crate) choices: OptionFormat,
    /// The style of the selected option, for dialogs without a marker.
    pub(crate) selected: Option<StyleCondition>,
    /// Whether rows below an option describe it. Otherwise they are part of its label.
    pub(crate) described: bool,
    /// Whether the options must have tick boxes.
    pub(crate) ticks: bool,
    /// Must match above the options.
    pub(crate) head: Option<Regex>,
    /// Must match above the options, in the paragraph with the question; the group `asks` is the question itself.
    /// Without this pattern, the question is the last paragraph with a question mark, or the last paragraph.
    pub(crate) question: Option<Regex>,
    /// Must match the label of an option.
    pub(crate) offers: Option<Regex>,
    /// Must match a row below the options.
    pub(crate) hint: Option<Regex>,
    /// The maximum number of non-blank rows after the dialog.
    pub(crate) trail: usize,
    pub(crate) conclusive: bool,
}

pub(super) fn compile(raw: Vec<DialogRuleToml>) -> Result<Vec<DialogRule>, String> {
    raw.into_iter().map(compile_rule).collect()
}

fn compile_rule(raw: DialogRuleToml) -> Result<DialogRule, String> {
    check_name("dialog", &raw.name)?;
    let what = |key: &str| format!("dialog '{}': '{key}'", raw.name);
    let some = |key: &str, pattern: &Option<String>| compile_optional(&what(key), pattern.as_deref());
    let needed = |key: &str, pattern: &Option<String>| match pattern {
        Some(pattern) => compile_pattern(&what(key), pattern),
        None => Err(format!("{} is required for this kind of options", what(key))),
    };
    let choices = match raw.options {
        OptionFormatToml::Numbered => OptionFormat::Numbered { marker: some("marker", &raw.marker)? },
        OptionFormatToml::Listed => OptionFormat::Listed { marker: needed("marker", &raw.marker)? },
        OptionFormatToml::Inline => OptionFormat::Inline { each: needed("choices", &raw.choices)? },
        OptionFormatToml::None => OptionFormat::None,
    };
    let rule = DialogRule {
        kind: raw.kind,
        choices,
        selected: raw.selected,
        described: raw.described,
        ticks: raw.ticks,
        head: some("head", &raw.head)?,
        question: some("question", &raw.question)?,
        offers: some("offers", &raw.offers)?,
        hint: some("hint", &raw.hint)?,
        trail: raw.trail,
        conclusive: raw.conclusive,
        name: raw.name,
    };
    match rule.invalid_reason() {
        Some(why) => Err(format!("dialog '{}' {why}", rule.name)),
        None => Ok(rule),
    }
}

impl DialogRule {
    fn invalid_reason(&self) -> Option<&'static str> {
        if self.hint.is_none() && self.head.is_none() && self.question.is_none() && self.offers.is_none() {
            return Some("would match any list: add 'hint', 'head', 'question' or 'offers'");
        }
        if matches!(self.choices, OptionFormat::None) && (self.offers.is_some() || self.hint.is_none()) {
            return Some("has no options: it requires a 'hint' and cannot have 'offers'");
        }
        None
    }
}
