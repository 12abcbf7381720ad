//! Runs the user's program (`tasks.on_event`) for each task event, in the order of the events. The events are read
//! from the store, so the program also gets events from before a crash of the daemon.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::config;
use agtmux_api::wire::TaskEventsQuery;
use agtmux_core::task::TaskEvent;
use agtmux_tmux::ssh::ProcessGroup;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::background::BackgroundTasks;
use crate::store::TaskArchive;

/// The pause before the store is read again after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

pub(super) struct EventProgramRunner(Option<Arc<Notify>>);

/// The user's program and its time limit.
#[derive(Clone)]
struct EventProgram {
    argv: Vec<String>,
    timeout: Duration,
}

/// How far the user's program has processed the event log.
struct EventCursor {
    archive: Arc<TaskArchive>,
    /// The file that stores the `seq` of the last event that was passed to the program.
    path: PathBuf,
}

impl EventProgramRunner {
    /// Starts the runner. The configured command is split at spaces; no shell is involved.
    pub(super) fn start(
        config: &config::TasksConfig,
        archive: Arc<TaskArchive>,
        state_dir: &Path,
        background: &BackgroundTasks,
    ) -> Self {
        let cursor = EventCursor { archive, path: state_dir.join("on_event.seq") };
        let words: Vec<String> = config.on_event.split_whitespace().map(ToOwned::to_owned).collect();
        let program = EventProgram { argv: words, timeout: config.on_event_timeout.0 };
        if program.argv.is_empty() {
            // Forget the position, so that a program configured later does not get events from before.
            let _ = std::fs::remove_file(&cursor.path);
            return Self(None);
        }
        // Read the position before new events can happen.
        let after = cursor
            .last_seq()
            .inspect_err(|error| tracing::warn!(error, "cannot read the event position; tasks.on_event starts later"))
            .ok();
        let wake_up = Arc::new(Notify::new());
        let (cursor, woken, mut after) = (Arc::new(cursor), Arc::clone(&wake_up), after);
        background.keep("on_event", move || {
            // If this background task is started again, it continues at the saved position.
            run_for_each_event(program.clone(), Arc::clone(&cursor), after.take(), Arc::clone(&woken))
        });
        Self(Some(wake_up))
    }

    /// Tells the runner that new events are stored.
    pub(super) fn wake(&self) {
        if let Some(wake_up) = &self.0 {
            wake_up.notify_one();
        }
    }
}

impl EventCursor {
    /// The `seq` after which to continue. On the first start, this is the `seq` of the newest event. If the saved `seq`
    /// is higher, it belongs to an earlier store, and the newest event is used instead.
    fn last_seq(&self) -> Result<u64, String> {
        let last = self.archive.last_seq().map_err(|error| error.to_string())?;
        let known: Option<u64> = std::fs::read_to_string(&self.path).ok().and_then(|text| text.trim().parse().ok());
        let seq = known.map_or(last, |known| known.min(last));
        if known != Some(seq) {
            self.save(seq).map_err(|error| error.to_string())?;
        }
        Ok(seq)
    }

    fn next_events(&self, after: Option<u64>) -> Result<Vec<TaskEvent>, String> {
        let after = after.map_or_else(|| self.last_seq(), Ok)?;
        let query = TaskEventsQuery { after: Some(after), limit: Some(64), ..TaskEventsQuery::default() };
        self.archive.events(&query).map_err(|error| error.to_string())
    }

    fn save(&self, seq: u64) -> io::Result<()> {
        let draft = self.path.with_extension("draft");
        std::fs::write(&draft, seq.to_string())?;
        std::fs::rename(draft, &self.path)
    }
}

async fn run_for_each_event(
    program: EventProgram,
    cursor: Arc<EventCursor>,
    mut after: Option<u64>,
    wake_up: Arc<Notify>,
) {
    loop {
        let reader = Arc::clone(&cursor);
        let next =
            spawn_blocking(move || reader.next_events(after)).await.unwrap_or_else(|error| Err(error.to_string()));
        let events = match next {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(error, "cannot read events for tasks.on_event");
                sleep(RETRY_DELAY).await;
                continue;
            }
        };
        if events.is_empty() {
            wake_up.notified().await;
        }
        for event in events {
            after = Some(event.seq);
            if let Err(error) = run_program(&program, &event, &cursor).await {
                tracing::warn!(program = program.argv[0], seq = event.seq, error, "tasks.on_event failed");
            }
        }
    }
}

async fn run_program(
    EventProgram { argv: words, timeout: time_limit }: &EventProgram,
    event: &TaskEvent,
    cursor: &EventCursor,
) -> Result<(), String> {
    let mut line = serde_json::to_vec(event).map_err(|error| error.to_string())?;
    line.push(b'\n');
    let started = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    // The program runs at most once per event, so advance the position now.
    let saved = cursor.save(event.seq);
    // When the daemon stops, it drops the group, which kills the program. Processes that an ended program left in the
    // background keep running.
    let mut group = ProcessGroup::new(started.map_err(|error| error.to_string())?);
    let ended = timeout(*time_limit, write_and_wait(group.child(), &line)).await;
    if ended.is_err() {
        group.kill().await;
    }
    saved.map_err(|error| format!("cannot save the event position, so the event may be repeated: {error}"))?;
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("the program did not end within {} s", time_limit.as_secs_f64())),
    }
}

async fn write_and_wait(child: &mut Child, line: &[u8]) -> io::Result<std::process::ExitStatus> {
    if let Some(mut input) = child.stdin.take() {
        // The program need not read its input.
        let _ = input.write_all(line).await;
    }
    child.wait().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_a_deleted_store_is_reset() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("state.db");
        let store = rusqlite::Connection::open(&path).expect("created");
        store.execute_batch("CREATE TABLE task_events (seq INTEGER PRIMARY KEY)").expect("created");
        let cursor = EventCursor { archive: Arc::new(TaskArchive::new(&path)), path: dir.path().join("on_event.seq") };
        let marked = || std::fs::read_to_string(&cursor.path).ok();
        store.execute_batch("INSERT INTO task_events VALUES (1), (7)").expect("stored");
        assert_eq!((cursor.last_seq(), marked().as_deref()), (Ok(7), Some("7")), "first start");
        cursor.save(3).expect("written");
        assert_eq!(cursor.last_seq(), Ok(3), "continues where it stopped");
        cursor.save(500).expect("written");
        assert_eq!((cursor.last_seq(), marked().as_deref()), (Ok(7), Some("7")), "position of another store");
    }
}
