//! Reads the files in which agents store their conversations.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use agtmux_agents::{ConversationReader, ConversationStore, ConversationTurn, KnownAgent};
use rusqlite::{Connection, OpenFlags};
use tokio::task::spawn_blocking;

use super::ActionPane;
use crate::observe::agent_paths::{agent_file_root, matching_paths, open_own_file};
use crate::store::past_runtimes::PastRuntime;

/// The first read covers this many bytes at the end of the file. If they do not contain enough turns, a second read
/// covers `MAX_READ_BYTES`.
const FIRST_READ_BYTES: u64 = 4 << 20;
const MAX_READ_BYTES: u64 = 256 << 20;

/// The conversation of one agent, on this host.
pub(super) struct StoredConversation {
    agent: Arc<KnownAgent>,
    session: String,
    root: PathBuf,
    path: String,
}

impl StoredConversation {
    /// The conversation of this runtime. `None` if the agent runs on another host, stores no conversations, or has not
    /// reported its session.
    pub(super) fn of(pane: &ActionPane<'_>, past: &PastRuntime) -> Option<Self> {
        if !pane.located.key.server.target.is_local() {
            return None;
        }
        let discovery = &pane.actions.0.discovery;
        let agent = discovery.registry().agent(&past.agent_type)?.clone();
        let (store, session) = (agent.conversation()?, past.session.clone()?);
        let path = store.path_of(&session)?;
        let process = pane.located.agent.as_ref().map(|agent| agent.runtime.process);
        let table = discovery.processes();
        let root = match (process, &store.root_variable) {
            (Some(process), Some(variable)) => {
                let set = table.environment_variable(process.pid, variable).filter(|value| !value.is_empty());
                match set {
                    Some(value) => PathBuf::from(value).join(&store.below_variable),
                    None => agent_file_root(None, &store.root, process, &*table)?,
                }
            }
            (Some(process), None) => agent_file_root(None, &store.root, process, &*table)?,
            (None, _) => Path::new(&std::env::var_os("HOME")?).join(&store.root),
        };
        root.is_absolute().then_some(Self { agent, session, root, path })
    }

    /// The last turns, oldest first. `None` if the conversation cannot be found or read.
    pub(super) async fn read(&self, most: usize) -> Option<Vec<ConversationTurn>> {
        let (agent, session) = (self.agent.clone(), self.session.clone());
        let (root, path) = (self.root.clone(), self.path.clone());
        let read = move || {
            let store = agent.conversation()?;
            let file = newest(matching_paths(&root, &path))?;
            let mut turns = match &store.query {
                Some(query) => query_turns(store, &file, query, &session)?,
                None => file_turns(store, &file, most)?,
            };
            Some(turns.split_off(turns.len().saturating_sub(most)))
        };
        spawn_blocking(read).await.ok().flatten()
    }
}

/// The file that was changed last, of those that exist.
fn newest(paths: Vec<PathBuf>) -> Option<PathBuf> {
    let changed_at = |path: &PathBuf| -> Option<SystemTime> { std::fs::symlink_metadata(path).ok()?.modified().ok() };
    paths.into_iter().filter_map(|path| Some((changed_at(&path)?, path))).max().map(|(_, path)| path)
}

fn file_turns(store: &ConversationStore, path: &Path, most: usize) -> Option<Vec<ConversationTurn>> {
    let (_, length) = open_own_file(path)?;
    let turns = turns_in_tail(store, path, length, FIRST_READ_BYTES)?;
    // The first turn may be incomplete, because it began before the part that was read.
    if turns.len() > most || length <= FIRST_READ_BYTES {
        return Some(turns);
    }
    turns_in_tail(store, path, length, MAX_READ_BYTES)
}

/// The turns in the last bytes of the file.
fn turns_in_tail(store: &ConversationStore, path: &Path, length: u64, most: u64) -> Option<Vec<ConversationTurn>> {
    let (mut file, _) = open_own_file(path)?;
    let from = length.saturating_sub(most);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut lines = BufReader::new(File::take(file, most)).split(b'\n');
    if from > 0 {
        // The first line is probably incomplete.
        lines.next()?.ok()?;
    }
    let mut reader = ConversationReader::new(store);
    for line in lines {
        reader.push(&line.ok()?);
    }
    Some(reader.turns())
}

fn query_turns(store: &ConversationStore, path: &Path, query: &str, session: &str) -> Option<Vec<ConversationTurn>> {
    // Checks the owner of the file.
    open_own_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let records = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open_with_flags(path, flags)?;
        let mut statement = connection.prepare(query)?;
        statement.query_map(&[(":session", session)], |row| row.get(0))?.collect()
    };
    let records = records().inspect_err(|error| tracing::debug!(%error, path = %path.display(), "cannot read")).ok()?;
    let mut reader = ConversationReader::new(store);
    records.iter().for_each(|record| reader.push(record.as_bytes()));
    Some(reader.turns())
}
