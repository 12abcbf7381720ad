//! Rules that judge a region of the screen.

use agtmux_core::state::State;
use regex::Regex;
use serde::Deserialize;

use super::pattern::{check_name, compile as compile_pattern, compile_all, compile_optional};

#[derive(Deserialize)]
pub(super) struct ScreenRuleToml {
    name: String,
    region: ScreenRegion,
    #[serde(default)]
    needs: BoxRequirement,
    #[serde(default)]
    all: Vec<String>,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    none: Vec<String>,
    #[serde(default)]
    style: Vec<StyleRuleToml>,
    #[serde(default)]
    plain_too: bool,
    #[serde(default)]
    absent: Vec<AbsentRuleToml>,
    title: Option<String>,
    not_title: Option<String>,
    title_from: Option<String>,
    state: State,
    #[serde(default = "default_true")]
    conclusive: bool,
    #[serde(default)]
    yields: bool,
    #[serde(default)]
    anew: bool,
    #[serde(default)]
    priority: i32,
}

#[derive(Deserialize)]
struct StyleRuleToml {
    r#match: String,
    is: StyleCondition,
}

#[derive(Deserialize)]
struct AbsentRuleToml {
    region: ScreenRegion,
    r#match: String,
}

fn default_true() -> bool {
    true
}

/// A region of the screen. Blank rows are skipped in every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScreenRegion {
    Whole,
    /// The last rows.
    Bottom,
    /// Below the input box.
    Footer,
    /// In the input box, without ghost text.
    Box,
    /// The row above the input box that belongs to it.
    Rim,
    /// The last rows above the input box, or of the screen without one.
    Above,
    /// The last entry of the transcript.
    Last,
    /// The transcript from the last message of the user on.
    Turn,
}

impl ScreenRegion {
    pub(crate) const COUNT: usize = Self::Turn as usize + 1;
}

/// Whether the rule requires an input box on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoxRequirement {
    #[default]
    Box,
    /// A box with enough rows above it to show everything that belongs there.
    BoxWithRoom,
    NoBox,
    Nothing,
}

/// The required style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StyleCondition {
    Bold,
    Dim,
    NotDim,
    Reverse,
    /// Dim or grey.
    Faint,
    NotFaint,
    /// Neither the default colour nor a shade of grey.
    Coloured,
    /// In the terminal's default colour, neither coloured nor dim.
    Plain,
    /// On another background than the row around it.
    Filled,
}

/// The pattern, or its first group, must match text with this style. A capture without styles never matches.
#[derive(Debug)]
pub(crate) struct StyleRule {
    pub(crate) pattern: Regex,
    pub(crate) is: StyleCondition,
}

#[derive(Debug)]
pub(crate) struct ScreenRule {
    pub(crate) name: String,
    pub(crate) region: ScreenRegion,
    pub(crate) needs: BoxRequirement,
    pub(crate) all: Vec<Regex>,
    pub(crate) any: Vec<Regex>,
    pub(crate) none: Vec<Regex>,
    pub(crate) style: Vec<StyleRule>,
    /// Whether a capture without styles matches, too.
    pub(crate) plain_too: bool,
    /// Patterns that must not match in other regions.
    pub(crate) absent: Vec<(ScreenRegion, Regex)>,
    pub(crate) title: Option<Regex>,
    pub(crate) not_title: Option<Regex>,
    /// The title must repeat a name that the first group finds below the box. A stale title of a shell does not.
    pub(crate) title_from: Option<Regex>,
    pub(crate) state: State,
    pub(crate) conclusive: bool,
    /// The rule concludes from something that is absent. An event of the agent overrules it.
    pub(crate) yields: bool,
    /// The rule matches only a screen without any turn, as after the conversation was restarted.
    pub(crate) anew: bool,
    priority: i32,
}

pub(super) fn compile(raw: Vec<ScreenRuleToml>) -> Result<Vec<ScreenRule>, String> {
    let mut rules = raw.into_iter().map(compile_rule).collect::<Result<Vec<_>, _>>()?;
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    Ok(rules)
}

fn compile_rule(raw: ScreenRuleToml) -> Result<ScreenRule, String> {
    check_name("rule", &raw.name)?;
    let what = |key: &str| format!("rule '{}': '{key}'", raw.name);
    let style =
        |s: &StyleRuleToml| Ok(StyleRule { pattern: compile_pattern(&what("style.match"), &s.r#match)?, is: s.is });
    let absence = |a: &AbsentRuleToml| Ok((a.region, compile_pattern(&what("absent.match"), &a.r#match)?));
    let rule = ScreenRule {
        region: raw.region,
        needs: raw.needs,
        all: compile_all(&what("all"), &raw.all)?,
        any: compile_all(&what("any"), &raw.any)?,
        none: compile_all(&what("none"), &raw.none)?,
        style: raw.style.iter().map(style).collect::<Result<_, String>>()?,
        absent: raw.absent.iter().map(absence).collect::<Result<_, String>>()?,
        title: compile_optional(&what("title"), raw.title.as_deref())?,
        not_title: compile_optional(&what("not_title"), raw.not_title.as_deref())?,
        title_from: compile_optional(&what("title_from"), raw.title_from.as_deref())?,
        plain_too: raw.plain_too,
        state: raw.state,
        conclusive: raw.conclusive,
        yields: raw.yields,
        anew: raw.anew,
        priority: raw.priority,
        name: raw.name,
    };
    match rule.invalid_reason() {
        Some(why) => Err(format!("rule '{}' {why}", rule.name)),
        None => Ok(rule),
    }
}

impl ScreenRule {
    fn invalid_reason(&self) -> Option<&'static str> {
        if self.all.is_empty() && self.any.is_empty() && self.style.is_empty() {
            return Some("needs a pattern: add 'all', 'any' or 'style'");
        }
        if self.state == State::Unknown {
            return Some("must not have the state 'unknown', which applies when no rule matches");
        }
        if self.anew && self.state != State::Idle {
            return Some("must have the state 'idle', because it has 'anew'");
        }
        let within_box = matches!(self.region, ScreenRegion::Footer | ScreenRegion::Box | ScreenRegion::Rim);
        (within_box && !matches!(self.needs, BoxRequirement::Box | BoxRequirement::BoxWithRoom))
            .then_some("can never match: its region exists only with an input box")
    }
}
