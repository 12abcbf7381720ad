//! Rules that find a dialog and what it asks.

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

/// A hint that is too long for the pane goes on in a row or two.
fn default_trail() -> usize {
    2
}

fn default_true() -> bool {
    true
}

/// How options are written.
#[derive(Debug)]
pub(crate) enum OptionFormat {
    /// `1. Yes` in rows, one of them marked, if a marker is given. It is looked for in what is before the number.
    Numbered { marker: Option<Regex> },
    /// Rows of which one is marked; the others begin in the same column. The marker is looked for in the first
    /// character and what is before it.
    Listed { marker: Regex },
    /// All in one row, each found by the pattern.
    Inline { each: Regex },
    /// Free text.
    None,
}

#[derive(Debug)]
pub(crate) struct DialogRule {
    pub(crate) name: String,
    pub(crate) kind: DialogKind,
    pub(crate) choices: OptionFormat,
    /// How the selected option looks, where no marker tells.
    pub(crate) selected: Option<StyleCondition>,
    /// Whether rows below an option describe it. They are part of its label otherwise.
    pub(crate) described: bool,
    /// Whether it must have boxes for ticks.
    pub(crate) ticks: bool,
    /// Must be found above the options.
    pub(crate) head: Option<Regex>,
    /// Must be found above the options, and is in the paragraph that asks; its group `asks` is what it asks. Without it,
    /// the last paragraph with a question mark, or the last one.
    pub(crate) question: Option<Regex>,
    /// Must be found in a label.
    pub(crate) offers: Option<Regex>,
    /// Must be found in a row below the options.
    pub(crate) hint: Option<Regex>,
    /// At most so many rows with text follow the dialog.
    pub(crate) trail: usize,
    pub(crate) conclusive: bool,
}

pub(super) fn compile(written: Vec<DialogRuleToml>) -> Result<Vec<DialogRule>, String> {
    written.into_iter().map(compile_rule).collect()
}

fn compile_rule(written: DialogRuleToml) -> Result<DialogRule, String> {
    check_name("dialog", &written.name)?;
    let what = |key: &str| format!("dialog '{}': '{key}'", written.name);
    let some = |key: &str, pattern: &Option<String>| compile_optional(&what(key), pattern.as_deref());
    let needed = |key: &str, pattern: &Option<String>| match pattern {
        Some(pattern) => compile_pattern(&what(key), pattern),
        None => Err(format!("{} is needed for these options", what(key))),
    };
    let choices = match written.options {
        OptionFormatToml::Numbered => OptionFormat::Numbered { marker: some("marker", &written.marker)? },
        OptionFormatToml::Listed => OptionFormat::Listed { marker: needed("marker", &written.marker)? },
        OptionFormatToml::Inline => OptionFormat::Inline { each: needed("choices", &written.choices)? },
        OptionFormatToml::None => OptionFormat::None,
    };
    let rule = DialogRule {
        kind: written.kind,
        choices,
        selected: written.selected,
        described: written.described,
        ticks: written.ticks,
        head: some("head", &written.head)?,
        question: some("question", &written.question)?,
        offers: some("offers", &written.offers)?,
        hint: some("hint", &written.hint)?,
        trail: written.trail,
        conclusive: written.conclusive,
        name: written.name,
    };
    match rule.invalid_reason() {
        Some(why) => Err(format!("dialog '{}' {why}", rule.name)),
        None => Ok(rule),
    }
}

impl DialogRule {
    fn invalid_reason(&self) -> Option<&'static str> {
        if self.hint.is_none() && self.head.is_none() && self.question.is_none() && self.offers.is_none() {
            return Some("would call any list a dialog: give it 'hint', 'head', 'question' or 'offers'");
        }
        if matches!(self.choices, OptionFormat::None) && (self.offers.is_some() || self.hint.is_none()) {
            return Some("has no options: it needs a 'hint' and cannot have 'offers'");
        }
        None
    }
}
