//! The seven states, why a state is what it is, and how sure we are.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A closed set of words that reads and prints the way it goes over the wire.
macro_rules! wire_words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, utoipa::ToSchema))]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(s: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|v| v.as_str() == s).ok_or_else(|| UnknownWord {
                    given: s.to_owned(),
                    known: &[$($word,)+],
                })
            }
        }
    };
}

wire_words!(
    /// What an agent is doing. In order of precedence, the strongest first.
    State {
        Error => "error",
        WaitingApproval => "waiting_approval",
        WaitingInput => "waiting_input",
        Running => "running",
        Completed => "completed",
        Idle => "idle",
        Unknown => "unknown",
    }
);

impl State {
    /// Whether a person is being waited for.
    pub fn needs_action(self) -> bool {
        matches!(self, Self::Error | Self::WaitingApproval | Self::WaitingInput)
    }

    pub fn is_waiting(self) -> bool {
        matches!(self, Self::WaitingApproval | Self::WaitingInput)
    }
}

wire_words!(
    /// Why a state is `unknown`.
    ReasonCode {
        /// The agent is there, but nothing reads its state.
        NoAdapter => "no_adapter",
        /// The agent was stopped with Ctrl-Z.
        Suspended => "suspended",
        /// The agent's process is gone.
        ProcessGone => "process_gone",
        /// Its tmux server or host does not answer.
        TargetUnreachable => "target_unreachable",
        /// What was known is too old to be trusted.
        StaleSignal => "stale_signal",
        /// The agent said something that its adapter cannot read.
        UnsupportedSignal => "unsupported_signal",
        /// Sources disagree and none outranks the other.
        ConflictingEvidence => "conflicting_evidence",
    }
);

wire_words!(
    /// How sure we are of a state.
    Confidence {
        High => "high",
        Medium => "medium",
        Low => "low",
    }
);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not one of {}", known.join(", "))]
pub struct UnknownWord {
    pub given: String,
    pub known: &'static [&'static str],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
    }

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let message = "busy".parse::<State>().expect_err("not a state").to_string();
        assert!(message.contains("waiting_approval"), "{message}");
    }

    #[test]
    fn order_is_precedence() {
        assert!(State::Error < State::WaitingApproval);
        assert!(State::Running < State::Completed);
        assert!(State::Idle < State::Unknown);
    }
}
