//! Rules that judge a part of the screen.

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

/// A part of the screen. Blank rows are left out of all of them.
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
    /// From the last thing that the user said.
    Turn,
}

impl ScreenRegion {
    pub(crate) const COUNT: usize = Self::Turn as usize + 1;
}

/// What else must be on screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoxRequirement {
    #[default]
    Box,
    /// A box with so many rows above it that whatever belongs there is on screen.
    BoxWithRoom,
    NoBox,
    Nothing,
}

/// How a piece of text looks.
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
    /// Neither default nor a shade of grey.
    Coloured,
    /// In the terminal's own ink, neither coloured nor receding.
    Plain,
    /// On another ground than the row around it.
    Filled,
}

/// The pattern, or its first group, must be found with this look. A capture that does not tell looks fits none.
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
    /// Whether a capture that does not tell looks fits as if it had those.
    pub(crate) plain_too: bool,
    /// What must not be found in other regions.
    pub(crate) absent: Vec<(ScreenRegion, Regex)>,
    pub(crate) title: Option<Regex>,
    pub(crate) not_title: Option<Regex>,
    /// The title must repeat a name that the first group finds below the box: one that a shell left behind does not.
    pub(crate) title_from: Option<Regex>,
    pub(crate) state: State,
    pub(crate) conclusive: bool,
    /// It concludes from what is not to be seen: an agent that says otherwise is right.
    pub(crate) yields: bool,
    /// It fits only where nothing of any turn is left.
    pub(crate) anew: bool,
    priority: i32,
}

pub(super) fn compile(written: Vec<ScreenRuleToml>) -> Result<Vec<ScreenRule>, String> {
    let mut rules = written.into_iter().map(compile_rule).collect::<Result<Vec<_>, _>>()?;
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
    Ok(rules)
}

fn compile_rule(written: ScreenRuleToml) -> Result<ScreenRule, String> {
    check_name("rule", &written.name)?;
    let what = |key: &str| format!("rule '{}': '{key}'", written.name);
    let style =
        |s: &StyleRuleToml| Ok(StyleRule { pattern: compile_pattern(&what("style.match"), &s.r#match)?, is: s.is });
    let absence = |a: &AbsentRuleToml| Ok((a.region, compile_pattern(&what("absent.match"), &a.r#match)?));
    let rule = ScreenRule {
        region: written.region,
        needs: written.needs,
        all: compile_all(&what("all"), &written.all)?,
        any: compile_all(&what("any"), &written.any)?,
        none: compile_all(&what("none"), &written.none)?,
        style: written.style.iter().map(style).collect::<Result<_, String>>()?,
        absent: written.absent.iter().map(absence).collect::<Result<_, String>>()?,
        title: compile_optional(&what("title"), written.title.as_deref())?,
        not_title: compile_optional(&what("not_title"), written.not_title.as_deref())?,
        title_from: compile_optional(&what("title_from"), written.title_from.as_deref())?,
        plain_too: written.plain_too,
        state: written.state,
        conclusive: written.conclusive,
        yields: written.yields,
        anew: written.anew,
        priority: written.priority,
        name: written.name,
    };
    match rule.invalid_reason() {
        Some(why) => Err(format!("rule '{}' {why}", rule.name)),
        None => Ok(rule),
    }
}

impl ScreenRule {
    fn invalid_reason(&self) -> Option<&'static str> {
        if self.all.is_empty() && self.any.is_empty() && self.style.is_empty() {
            return Some("must look for something: give it 'all', 'any' or 'style'");
        }
        if self.state == State::Unknown {
            return Some("must not conclude 'unknown': that is what is left when no rule fits");
        }
        if self.anew && self.state != State::Idle {
            return Some("must conclude 'idle' where nothing of any turn is left: see its 'anew'");
        }
        let within_box = matches!(self.region, ScreenRegion::Footer | ScreenRegion::Box | ScreenRegion::Rim);
        (within_box && !matches!(self.needs, BoxRequirement::Box | BoxRequirement::BoxWithRoom))
            .then_some("can never fit: its region is only there with an input box")
    }
}
