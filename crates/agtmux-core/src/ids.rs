//! Identifier types. Each id has its own type, so a window id cannot be used as a pane id.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_types::text_type;

text_type!(
    /// The name of a host whose tmux is watched. `host` is the machine that runs the daemon.
    TargetName
);

impl TargetName {
    /// The name of the machine that runs the daemon. This machine is always watched.
    pub const LOCAL: &'static str = "host";

    pub fn local() -> Self {
        Self::new(Self::LOCAL)
    }

    pub fn is_local(&self) -> bool {
        self.0 == Self::LOCAL
    }
}

text_type!(
    /// The name of a tmux server. If the server's socket is in the user's tmux directory, this is the file name of the
    /// socket. Otherwise it is the full path of the socket.
    ServerName
);

/// Identifies a tmux server. The key does not contain the generation, so it stays the same when the server restarts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerKey {
    pub target: TargetName,
    pub server: ServerName,
}

/// One run of a tmux server. Pane ids restart at %0 with each generation, so an id is unique only together with its
/// generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Generation {
    pub pid: u32,
    /// The start time of the server in seconds since the Unix epoch, as tmux reports it.
    pub start_time: i64,
}

/// Identifies a process. The start time distinguishes it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessRef {
    pub pid: u32,
    /// The start time of the process in the kernel's own unit. Start times are comparable only on one host.
    pub start: u64,
}

macro_rules! tmux_ids {
    ($($(#[$doc:meta])* $name:ident: $sigil:literal,)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sigil, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = TmuxIdError;

            fn from_str(s: &str) -> Result<Self, TmuxIdError> {
                let digits = s.strip_prefix($sigil).ok_or(TmuxIdError)?;
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(TmuxIdError);
                }
                digits.parse().map(Self).map_err(|_| TmuxIdError)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

tmux_ids! {
    /// A tmux pane id, such as `%12`.
    PaneId: "%",
    /// A tmux window id, such as `@3`.
    WindowId: "@",
    /// A tmux session id, such as `$0`.
    SessionId: "$",
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a tmux id: expected %N for a pane, @N for a window, $N for a session")]
pub struct TmuxIdError;

text_type!(
    /// The type of an agent. It is the name of the agent's manifest, such as `claude` or `codex`.
    AgentType
);

impl AgentType {
    /// The type of a managed task's runtime.
    pub const TASK: &'static str = "task";

    pub fn task() -> Self {
        Self::new(Self::TASK)
    }

    pub fn is_task(&self) -> bool {
        self.0 == Self::TASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_only_with_their_own_sigil() {
        assert_eq!("%7".parse(), Ok(PaneId(7)));
        assert_eq!("@7".parse::<PaneId>(), Err(TmuxIdError));
        assert_eq!("%".parse::<PaneId>(), Err(TmuxIdError));
        assert_eq!("%+7".parse::<PaneId>(), Err(TmuxIdError));
        assert_eq!("%99999999999".parse::<PaneId>(), Err(TmuxIdError));
        assert_eq!(WindowId(3).to_string(), "@3");
    }
}
