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

pub(super) fn compile(written: Vec<TitleRuleToml>) -> Result<Vec<TitleRule>, String> {
    written.into_iter().map(compile_rule).collect()
}

fn compile_rule(written: TitleRuleToml) -> Result<TitleRule, String> {
    check_name("rule", &written.name)?;
    if written.state == State::Unknown {
        return Err(format!("rule '{}' must not conclude 'unknown'", written.name));
    }
    let pattern = compile_pattern(&format!("rule '{}': 'match'", written.name), &written.r#match)?;
    Ok(TitleRule { name: written.name, pattern, state: written.state, conclusive: written.conclusive })
}
