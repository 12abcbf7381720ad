//! Replays the inputs of the engine log and checks whether they still produce the states that were published.

use std::path::Path;

use agtmux_core::resolver::{ResolverInput, StateResolver, StateTransition};
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use crate::store::log::{self, StoredTransition};
use crate::store::schema;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayOutcome {
    /// Every input produced the stored transitions.
    Same { inputs: u64, transitions: u64 },
    /// The first input whose replayed transitions differ from the stored ones.
    Differs { n: u64, stored: String, replayed: String },
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot read '{path}': {message}")]
    Unreadable { path: String, message: String },
    #[error(
        "'{path}' has schema version {found}, and this agtmux reads version {}; open it once with the daemon of this \
         version to migrate it",
        schema::VERSION
    )]
    OtherSchema { path: String, found: u32 },
    #[error("'{0}' is not the database of an agtmux daemon: no checkpoint found")]
    NoCheckpoint(String),
}

/// One line of a JSON log: an input and the transitions that it caused. The first line may be a checkpoint instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReplayLine {
    Checkpoint { n: u64, checkpoint: Box<StateResolver> },
    Logged { n: u64, at: Timestamp, input: ResolverInput, transitions: Vec<StateTransition> },
}

/// Replays the inputs after the oldest checkpoint in a database. The database is opened read-only.
pub fn replay_database(path: &Path) -> Result<ReplayOutcome, ReplayError> {
    let unreadable =
        |e: rusqlite::Error| ReplayError::Unreadable { path: path.display().to_string(), message: e.to_string() };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(unreadable)?;
    let found: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(unreadable)?;
    if found != schema::VERSION && found != 0 {
        return Err(ReplayError::OtherSchema { path: path.display().to_string(), found });
    }
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
        while let Some(next) = stored.next_if(|t| t.input_seq <= n) {
            expected.push(next);
        }
        let same = expected.len() == replayed.len() && expected.iter().zip(&replayed).all(|(a, b)| a.same_change(b));
        if !same {
            return Ok(ReplayOutcome::Differs {
                n,
                stored: format!("{expected:?}"),
                replayed: format!("{replayed:?}"),
            });
        }
        transitions += replayed.len() as u64;
    }
    let last = log::states(&connection).map_err(unreadable)?;
    let replayed: Vec<_> = engine.runtimes().map(|(id, r)| (id.to_string(), r.state, r.reason, r.version)).collect();
    if last != replayed {
        return Ok(ReplayOutcome::Differs {
            n: start + inputs,
            stored: format!("{last:?}"),
            replayed: format!("{replayed:?}"),
        });
    }
    Ok(ReplayOutcome::Same { inputs, transitions })
}

/// Replays a log of JSON lines.
pub fn replay_lines(name: &str, text: &str) -> Result<ReplayOutcome, ReplayError> {
    let mut engine = StateResolver::new(jiff::SignedDuration::from_secs(120));
    let (mut inputs, mut count) = (0, 0);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line: ReplayLine = serde_json::from_str(line).map_err(|e| ReplayError::Unreadable {
            path: name.to_owned(),
            message: format!("line {}: {e}", number + 1),
        })?;
        match line {
            ReplayLine::Checkpoint { checkpoint, .. } => engine = *checkpoint,
            ReplayLine::Logged { n, at, input, transitions } => {
                inputs += 1;
                let replayed = engine.apply(input, at);
                if replayed != transitions {
                    let (stored, replayed) = (format!("{transitions:?}"), format!("{replayed:?}"));
                    return Ok(ReplayOutcome::Differs { n, stored, replayed });
                }
                count += replayed.len() as u64;
            }
        }
    }
    Ok(ReplayOutcome::Same { inputs, transitions: count })
}

#[cfg(test)]
mod tests {
    use agtmux_core::ids::{AgentType, ServerKey, ServerName, TargetName};
    use agtmux_core::runtime::RuntimeId;
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::*;

    /// Three lines of a log: a checkpoint, the start of an agent, and the end of that agent.
    fn lines() -> Vec<String> {
        let mut engine = StateResolver::new(SignedDuration::from_secs(120));
        let runtime = RuntimeId::from_stored("r".into());
        let server = ServerKey { target: TargetName::local(), server: ServerName::new("default") };
        let agent_type = AgentType::new("claude");
        let checkpoint = ReplayLine::Checkpoint { n: 0, checkpoint: Box::new(engine.clone()) };
        let inputs = [
            ResolverInput::Started { runtime: runtime.clone(), server, agent_type, suspended: false },
            ResolverInput::Ended { runtime },
        ];
        let logged = inputs.into_iter().zip(1..).map(|(input, n)| {
            let at = Timestamp::UNIX_EPOCH;
            let transitions = engine.apply(input.clone(), at);
            ReplayLine::Logged { n, at, input, transitions }
        });
        let lines: Vec<ReplayLine> = [checkpoint].into_iter().chain(logged).collect();
        lines.iter().map(|line| serde_json::to_string(line).expect("a line is JSON")).collect()
    }

    #[test]
    fn the_first_difference_of_a_replay_is_reported() {
        let mut lines = lines();
        let same = replay_lines("log", &lines.join("\n")).expect("read");
        assert_eq!(same, ReplayOutcome::Same { inputs: 2, transitions: 1 });
        lines[1] = lines[1].replace("\"state\":\"unknown\"", "\"state\":\"running\"");
        let differs = replay_lines("log", &lines.join("\n")).expect("read");
        assert!(matches!(differs, ReplayOutcome::Differs { n: 1, .. }), "{differs:?}");
        lines[2] = "nonsense".into();
        lines.remove(1);
        let error = replay_lines("log", &lines.join("\n")).expect_err("invalid JSON").to_string();
        assert!(error.contains("'log'") && error.contains("line 2"), "{error}");
    }

    proptest! {
        #[test]
        fn a_damaged_log_is_replayed_or_refused_with_its_line(
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            order in Just((0..3usize).collect::<Vec<_>>()).prop_shuffle(),
            cut in any::<bool>(),
        ) {
            let lines = lines();
            let mut bytes = order.iter().map(|n| lines[*n].as_str()).collect::<Vec<_>>().join("\n").into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(if cut { at } else { bytes.len() });
            if let Err(error) = replay_lines("log", &String::from_utf8_lossy(&bytes)) {
                prop_assert!(error.to_string().contains("line "), "{error}");
            }
        }

        #[test]
        fn any_text_is_replayed_or_refused(text in any::<String>()) {
            let _ = replay_lines("log", &text);
        }
    }
}
