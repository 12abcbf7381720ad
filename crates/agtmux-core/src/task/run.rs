//! Run ids. A run is one launch of a task.

use crate::text_types::checked_text_type;

checked_text_type!(
    /// The unique id of one launch of a task.
    RunId,
    check_run_id,
    RunIdError
);

const MAX_LEN: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a run id: expected 1 to 64 letters, digits or '-'")]
pub struct RunIdError;

impl From<uuid::Uuid> for RunId {
    fn from(id: uuid::Uuid) -> Self {
        Self(id.to_string())
    }
}

/// Rejects ids that are not safe in a path. The id becomes part of a path, and it comes from a window option, which any
/// process may set.
fn check_run_id(id: &str) -> Result<(), RunIdError> {
    let plain = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if plain && (1..=MAX_LEN).contains(&id.len()) { Ok(()) } else { Err(RunIdError) }
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
