//! Rules that judge a pane's title.

use agtmux_core::state::State;
use serde::Deserialize;

use super::pattern::{Pattern, check_name};

#[derive(Debug, Deserialize)]
pub(crate) struct TitleRule {
    pub(crate) name: String,
    #[serde(rename = "match")]
    pub(crate) pattern: Pattern,
    pub(crate) state: State,
    #[serde(default)]
    pub(crate) conclusive: bool,
}

impl TitleRule {
    pub(super) fn check(&self) -> Result<(), String> {
        check_name("rule", &self.name)?;
        if self.state == State::Unknown {
            return Err(format!("rule '{}' must not have the state 'unknown'", self.name));
        }
        self.pattern.check(&format!("rule '{}': 'match'", self.name))
    }
}
