//! Does the log still give the states that were published?

use std::path::Path;

use agtmux_core::engine::{Input, StateEngine, Transition};
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::store::log::{self, StoredTransition};

/// How a replay went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    /// Every input gave what was stored.
    Same { inputs: u64, transitions: u64 },
    /// The first that did not.
    Differs { n: u64, stored: String, replayed: String },
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("'{path}' cannot be read: {message}")]
    Unreadable { path: String, message: String },
    #[error("'{0}' has no checkpoint to begin from: no agtmux daemon has written it")]
    NoCheckpoint(String),
}

/// One line of a log in JSON: an input and what it brought about. The first line may be a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Checkpoint { n: u64, checkpoint: Box<StateEngine> },
    Logged { n: u64, at: Timestamp, input: Input, transitions: Vec<Transition> },
}

/// Runs the inputs after the last checkpoint of a database again. The file is only read.
pub fn replay_database(path: &Path) -> Result<Replayed, ReplayError> {
    let unreadable =
        |e: rusqlite::Error| ReplayError::Unreadable { path: path.display().to_string(), message: e.to_string() };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(unreadable)?;
    let Some((start, mut engine)) = log::first_checkpoint(&connection).map_err(unreadable)? else {
        return Err(ReplayError::NoCheckpoint(path.display().to_string()));
    };
    let mut stored = log::transitions_after(&connection, start).map_err(unreadable)?.into_iter().peekable();
    let (mut inputs, mut transitions) = (0, 0);
    for (n, at, input) in log::inputs_after(&connection, start).map_err(unreadable)? {
        inputs += 1;
        let replayed: Vec<StoredTransition> =
            engine.apply(input, at).iter().map(|t| StoredTransition::of(0, n, at, t)).collect();
        let mut expected = Vec::new();
        while let Some(next) = stored.next_if(|t| t.n <= n) {
            expected.push(next);
        }
        let same = expected.len() == replayed.len() && expected.iter().zip(&replayed).all(|(a, b)| a.same_change(b));
        if !same {
            return Ok(Replayed::Differs { n, stored: format!("{expected:?}"), replayed: format!("{replayed:?}") });
        }
        transitions += replayed.len() as u64;
    }
    let last = log::states(&connection).map_err(unreadable)?;
    let replayed: Vec<_> = engine.runtimes().map(|(id, r)| (id.to_string(), r.state, r.reason, r.version)).collect();
    if last != replayed {
        return Ok(Replayed::Differs {
            n: start + inputs,
            stored: format!("{last:?}"),
            replayed: format!("{replayed:?}"),
        });
    }
    Ok(Replayed::Same { inputs, transitions })
}

/// The same for lines of JSON.
pub fn replay_lines(name: &str, text: &str) -> Result<Replayed, ReplayError> {
    let mut engine = StateEngine::new(jiff::SignedDuration::from_secs(120));
    let (mut inputs, mut count) = (0, 0);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: Line = serde_json::from_str(line).map_err(|e| ReplayError::Unreadable {
            path: name.to_owned(),
            message: format!("line {}: {e}", number + 1),
        })?;
        match line {
            Line::Checkpoint { checkpoint, .. } => engine = *checkpoint,
            Line::Logged { n, at, input, transitions } => {
                inputs += 1;
                let replayed = engine.apply(input, at);
                if replayed != transitions {
                    let (stored, replayed) = (format!("{transitions:?}"), format!("{replayed:?}"));
                    return Ok(Replayed::Differs { n, stored, replayed });
                }
                count += replayed.len() as u64;
            }
        }
    }
    Ok(Replayed::Same { inputs, transitions: count })
}
