//! Rules that judge a region of the screen.

use agtmux_core::state::State;
use serde::Deserialize;

use super::default_true;
use super::pattern::{Pattern, check_all, check_name};

/// A region of the screen. Blank rows are skipped in every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScreenRegion {
    Whole,
    /// The last rows of the screen.
    Bottom,
    /// The rows below the input box.
    Footer,
    /// The text in the input box, without ghost text.
    Box,
    /// The `top` or `lid` row above the input box. Without such a row, the first row of the box.
    Rim,
    /// The last few rows above the input box. Without an input box, the last few rows of the screen.
    Above,
    /// The last entry of the transcript.
    Last,
    /// The part of the transcript that begins with the last message of the user.
    Turn,
    /// All rows above the input box, or the whole screen if there is no box.
    Transcript,
}

impl ScreenRegion {
    pub(crate) const COUNT: usize = Self::Transcript as usize + 1;
}

/// Whether the rule requires an input box on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BoxRequirement {
    #[default]
    Box,
    /// A box with at least as many rows above it as the region `Above` can contain.
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
    /// In the terminal's default colour and not dim.
    Plain,
    /// On a background that differs from the background at the start of the row.
    Filled,
}

/// A condition on the style of text. The text that the pattern `match` finds must have the style `is`. If the pattern
/// has a group, only the text of the first group must have that style. In a capture without styles, a rule with such a
/// condition matches only if the rule has `plain_too`.
#[derive(Debug, Deserialize)]
pub(crate) struct StyleRule {
    #[serde(rename = "match")]
    pub(crate) pattern: Pattern,
    pub(crate) is: StyleCondition,
    /// Whether to check only the last row that the pattern matches.
    #[serde(default)]
    pub(crate) last: bool,
}

/// A pattern that must not match in the given region of the screen.
#[derive(Debug, Deserialize)]
pub(crate) struct AbsentRule {
    pub(crate) region: ScreenRegion,
    #[serde(rename = "match")]
    pub(crate) pattern: Pattern,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ScreenRule {
    pub(crate) name: String,
    pub(crate) region: ScreenRegion,
    #[serde(default)]
    pub(crate) needs: BoxRequirement,
    #[serde(default)]
    pub(crate) all: Vec<Pattern>,
    #[serde(default)]
    pub(crate) any: Vec<Pattern>,
    #[serde(default)]
    pub(crate) none: Vec<Pattern>,
    #[serde(default)]
    pub(crate) style: Vec<StyleRule>,
    /// Whether the rule can match a capture without styles. In such a capture, `style` is not checked.
    #[serde(default)]
    pub(crate) plain_too: bool,
    #[serde(default)]
    pub(crate) absent: Vec<AbsentRule>,
    pub(crate) title: Option<Pattern>,
    pub(crate) not_title: Option<Pattern>,
    /// A pattern whose first group finds a name in the rows below the input box. The title must contain that name. This
    /// excludes a stale title that a shell has set.
    pub(crate) title_from: Option<Pattern>,
    pub(crate) state: State,
    #[serde(default = "default_true")]
    pub(crate) conclusive: bool,
    /// Whether the rule infers the state from text that is missing on the screen. The agent's own events overrule such
    /// a rule.
    #[serde(default)]
    pub(crate) yields: bool,
    /// Whether a matching screen shows no trace of a turn, for example because the conversation was restarted.
    #[serde(default)]
    pub(crate) anew: bool,
    /// Whether a dialog may be drawn over the screen while the rule matches. The rule then does not show that a dialog
    /// has closed which the agent has reported.
    #[serde(default)]
    pub(crate) overlaid: bool,
    #[serde(default)]
    pub(super) priority: i32,
}

impl ScreenRule {
    pub(super) fn check(&self) -> Result<(), String> {
        check_name("rule", &self.name)?;
        let what = |key: &str| format!("rule '{}': '{key}'", self.name);
        check_all(&what("all"), &self.all)?;
        check_all(&what("any"), &self.any)?;
        check_all(&what("none"), &self.none)?;
        check_all(&what("style.match"), self.style.iter().map(|style| &style.pattern))?;
        check_all(&what("absent.match"), self.absent.iter().map(|absent| &absent.pattern))?;
        check_all(&what("title"), &self.title)?;
        check_all(&what("not_title"), &self.not_title)?;
        check_all(&what("title_from"), &self.title_from)?;
        let invalid = |why: &str| Err(format!("rule '{}' {why}", self.name));
        if self.all.is_empty() && self.any.is_empty() && self.style.is_empty() {
            return invalid("needs a pattern: add 'all', 'any' or 'style'");
        }
        if self.state == State::Unknown {
            return invalid("must not have the state 'unknown', which applies when no rule matches");
        }
        if self.anew && self.state != State::Idle {
            return invalid("must have the state 'idle', because it has 'anew'");
        }
        let within_box = matches!(self.region, ScreenRegion::Footer | ScreenRegion::Box | ScreenRegion::Rim);
        if within_box && !matches!(self.needs, BoxRequirement::Box | BoxRequirement::BoxWithRoom) {
            return invalid("can never match: its region exists only with an input box");
        }
        Ok(())
    }
}
