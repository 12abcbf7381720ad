//! Which actions agents may request.

use agtmux_core::named_enum;
use serde::{Deserialize, Serialize};

named_enum!(
    /// An action that agents may request only if the settings allow it.
    AgentAction {
        Send => "send",
        Respond => "respond",
        Kill => "kill",
        Resume => "resume",
        StopTask => "stop_task",
    }
);

/// The actions that agents may request: all (`true`), none (`false`), or those in a list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AgentActions {
    all: bool,
    /// One bit per action, in the order of `AgentAction::ALL`.
    listed: u8,
}

impl AgentActions {
    pub const ALL: Self = Self { all: true, listed: 0 };

    /// Whether agents may request all actions, including those that cannot be allowed one by one.
    pub fn all(self) -> bool {
        self.all
    }

    pub fn allows(self, action: AgentAction) -> bool {
        self.all || self.listed & (1 << action as u8) != 0
    }
}

impl FromIterator<AgentAction> for AgentActions {
    fn from_iter<I: IntoIterator<Item = AgentAction>>(actions: I) -> Self {
        Self { all: false, listed: actions.into_iter().fold(0, |bits, action| bits | 1 << action as u8) }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "true, false, or a list such as [\"send\", \"respond\"]")]
enum WrittenActions {
    All(bool),
    Listed(Vec<String>),
}

impl<'de> Deserialize<'de> for AgentActions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WrittenActions::deserialize(deserializer)? {
            WrittenActions::All(all) => Ok(Self { all, listed: 0 }),
            WrittenActions::Listed(names) => {
                let actions = names.iter().map(|name| name.parse().map_err(serde::de::Error::custom));
                actions.collect()
            }
        }
    }
}

impl Serialize for AgentActions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.listed {
            0 => serializer.serialize_bool(self.all),
            _ => serializer.collect_seq(AgentAction::ALL.iter().filter(|action| self.allows(**action))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use super::*;

    fn allowed(value: &str) -> Result<AgentActions, String> {
        let text = format!("[actions]\nallow_from_agents = {value}\n");
        let config = Config::parse(&text, Path::new("/c.toml")).map_err(|error| error.to_string())?;
        Ok(config.actions.allow_from_agents)
    }

    #[test]
    fn agents_may_request_all_actions_none_or_those_in_the_list() {
        assert!(AgentAction::ALL.iter().all(|action| allowed("true").expect("valid").allows(*action)));
        for value in ["false", "[]"] {
            let none = allowed(value).expect("valid");
            assert!(!none.all() && !AgentAction::ALL.iter().any(|action| none.allows(*action)), "{value}");
        }
        let some = allowed("['send', 'stop_task']").expect("valid");
        assert!(some.allows(AgentAction::Send) && some.allows(AgentAction::StopTask));
        assert!(!some.allows(AgentAction::Respond) && !some.all());
        let written = serde_json::to_string(&some).expect("writes");
        assert_eq!(written, r#"["send","stop_task"]"#);
        assert_eq!(serde_json::from_str::<AgentActions>(&written).expect("reads"), some);
    }

    #[test]
    fn an_unknown_action_is_rejected_with_the_known_ones() {
        let error = allowed("['approve']").expect_err("unknown");
        assert!(error.contains("'approve'") && error.contains("respond") && error.contains("line 2"), "{error}");
        assert!(allowed("'all'").expect_err("a text").contains("true, false, or a list"));
    }
}
