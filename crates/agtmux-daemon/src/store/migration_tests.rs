//! Opens a store that the previous schema version wrote. The directory `evidence/` contains that store as SQL.

use std::collections::BTreeMap;

use agtmux_core::state::State;

use super::*;
use crate::replay::{ReplayError, ReplayOutcome, replay_database};

const RECORDED: &str = include_str!("../../evidence/store-schema-6.sql");

fn recorded_store(dir: &Path) -> PathBuf {
    let path = dir.join("state.db");
    let connection = Connection::open(&path).expect("a new database");
    connection.execute_batch(RECORDED).expect("the recording is valid SQL");
    path
}

/// How many agents are in each state.
fn count_states(contents: &StoreContents) -> BTreeMap<State, usize> {
    let states = contents.states.as_ref().expect("the store has a checkpoint");
    let mut counts = BTreeMap::new();
    for (_, record) in states.runtimes() {
        *counts.entry(record.state).or_default() += 1;
    }
    counts
}

#[test]
fn a_store_of_the_previous_version_is_migrated_with_everything_in_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = recorded_store(dir.path());
    let (store, contents) = Store::open(&path).expect("the store opens");
    assert_eq!(store.quarantined(), None, "the store counts as sound");
    let expected = [
        (State::Running, 2),
        (State::WaitingApproval, 1),
        (State::Completed, 1),
        (State::Error, 1),
        (State::Unknown, 1),
    ];
    assert_eq!(count_states(&contents), BTreeMap::from(expected));
    assert_eq!(contents.last_input_seq, 47);
    assert_eq!((contents.cursors.len(), contents.memories.len()), (4, 1));
    assert_eq!(contents.disabled_adapters, BTreeSet::from(["qwen".to_owned()]));
    let sessions: Vec<_> = contents.tasks.values().collect();
    assert!(matches!(sessions[..], [session] if session.runs.len() == 1), "one task still runs: {sessions:?}");
    assert!(sessions[0].runs.keys().all(|run| sessions[0].machine.awaits_exit(run)), "the machine is readable");
    drop(store);
    let version: u32 = Connection::open(&path)
        .and_then(|connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0)))
        .expect("readable");
    assert_eq!(version, schema::VERSION);
}

#[test]
fn a_migrated_store_replays_to_the_stored_states() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = recorded_store(dir.path());
    drop(Store::open(&path).expect("the store opens"));
    let replayed = replay_database(&path).expect("the log is readable");
    assert!(matches!(replayed, ReplayOutcome::Same { inputs, .. } if inputs > 0), "{replayed:?}");
}

#[test]
fn replay_rejects_a_store_of_the_previous_version() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = recorded_store(dir.path());
    let error = replay_database(&path).expect_err("the store is not migrated");
    assert!(matches!(error, ReplayError::OtherSchema { found: 6, .. }), "{error}");
}
