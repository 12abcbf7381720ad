//! Rules that judge a pane's title.

use agtmux_core::state::State;
use regex::Regex;
use serde::Deserialize;

use super::pattern::{check_name, compile as compile_pattern};

#[derive(Deserialize)]
pub(super) struct TitleRuleToml {
    name: String,
    r#match: String,
    state: State,
    #[serde(default)]
    conclusive: bool,
}

#[derive(Debug)]
pub(crate) struct TitleRule {
    pub(crate) name: String,
    pub(crate) pattern: Regex,
    pub(crate) state: State,
    pub(crate) conclusive: bool,
}

pub(super) fn compile(raw: Vec<TitleRuleToml>) -> Result<Vec<TitleRule>, String> {
    raw.into_iter().map(compile_rule).collect()
}

fn compile_rule(raw: TitleRuleToml) -> Result<TitleRule, String> {
    check_name("rule", &raw.name)?;
    if raw.state == State::Unknown {
        return Err(format!("rule '{}' must not have the state 'unknown'", raw.name));
    }
    let pattern = compile_pattern(&format!("rule '{}': 'match'", raw.name), &raw.r#match)?;
    Ok(TitleRule { name: raw.name, pattern, state: raw.state, conclusive: raw.conclusive })
}
