use std::fmt;
use std::str::FromStr;

use agtmux_core::state::State;
use agtmux_core::wire_enum::UnknownVariantError;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// One or more states. In queries and in JSON, the states are written as one comma-separated string: `running,idle`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSet(Vec<State>);

impl StateSet {
    /// Creates a set of these states. Returns `None` if there are no states, because an empty set would match nothing.
    pub fn new(states: impl IntoIterator<Item = State>) -> Option<Self> {
        let states: Vec<State> = states.into_iter().collect();
        (!states.is_empty()).then_some(Self(states))
    }

    pub fn contains(&self, state: State) -> bool {
        self.0.contains(&state)
    }

    pub fn iter(&self) -> impl Iterator<Item = State> + '_ {
        self.0.iter().copied()
    }
}

impl From<State> for StateSet {
    fn from(state: State) -> Self {
        Self(vec![state])
    }
}

impl FromStr for StateSet {
    type Err = UnknownVariantError;

    fn from_str(text: &str) -> Result<Self, UnknownVariantError> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for StateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|state| state.as_str()).collect();
        f.write_str(&words.join(","))
    }
}

impl Serialize for StateSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StateSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_states_is_one_text_with_commas() {
        let both: StateSet = "running,idle".parse().expect("two states");
        assert!(both.contains(State::Idle) && both.contains(State::Running) && !both.contains(State::Error));
        assert_eq!(serde_json::to_string(&both).expect("writes"), "\"running,idle\"");
        assert_eq!(serde_json::from_str::<StateSet>("\"running,idle\"").expect("reads"), both);
        assert_eq!(serde_json::to_string(&StateSet::from(State::Idle)).expect("writes"), "\"idle\"");
        for bad in ["", "running,", "running,busy", "running idle"] {
            assert!(bad.parse::<StateSet>().is_err(), "{bad}");
        }
    }
}
