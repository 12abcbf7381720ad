//! Run ids. A run is one launch of a task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The unique id of one launch of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

const MAX_LEN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a run id: expected 1 to 64 letters, digits or '-'")]
pub struct RunIdError;

impl RunId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<uuid::Uuid> for RunId {
    fn from(id: uuid::Uuid) -> Self {
        Self(id.to_string())
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(s: &str) -> Result<Self, RunIdError> {
        Self::try_from(s.to_owned())
    }
}

/// Validates the id: it is read from a window option, which any process may set, and becomes part of a path.
impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(id: String) -> Result<Self, RunIdError> {
        let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if plain && (1..=MAX_LEN).contains(&id.len()) { Ok(Self(id)) } else { Err(RunIdError) }
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_is_safe_in_a_path() {
        let id = RunId::from(uuid::Uuid::from_u128(7));
        assert_eq!(id.as_str().parse(), Ok(id));
        for bad in ["", "..", "a/b", "a b", "a\n", &"1".repeat(65)] {
            assert_eq!(bad.parse::<RunId>(), Err(RunIdError), "{bad:?}");
        }
    }
}
