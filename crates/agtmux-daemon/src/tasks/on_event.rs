//! A program of the user's for each event, one after the other. It never keeps the daemon waiting, and what it was not told yet is
//! read from the store: also what happened before a daemon was killed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::config;
use agtmux_api::wire::TaskEventsQuery;
use agtmux_core::task::TaskEvent;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::store::TaskArchive;

/// Where the store cannot be read.
const RETRY_DELAY: Duration = Duration::from_secs(5);

pub(super) struct EventProgramRunner(Option<Arc<Notify>>);

/// The user's program, and how long it may take.
struct EventProgram {
    argv: Vec<String>,
    timeout: Duration,
}

/// How far the program was told.
struct EventCursor {
    archive: Arc<TaskArchive>,
    /// Holds the number of the last event that it was given.
    path: PathBuf,
}

impl EventProgramRunner {
    /// The words are separated by spaces. No shell reads them.
    pub(super) fn start(config: &config::TasksConfig, archive: Arc<TaskArchive>, state_dir: &Path) -> Self {
        let told = EventCursor { archive, path: state_dir.join("on_event.seq") };
        let words: Vec<String> = config.on_event.split_whitespace().map(ToOwned::to_owned).collect();
        let program = EventProgram { argv: words, timeout: config.on_event_timeout.0 };
        if program.argv.is_empty() {
            // What happens while there is no program is nobody's business later.
            let _ = std::fs::remove_file(&told.path);
            return Self(None);
        }
        // Before anything can happen that it is to be told.
        let after = told.last_seq().inspect_err(|error| tracing::warn!(error, "tasks.on_event begins later")).ok();
        let news = Arc::new(Notify::new());
        tokio::spawn(run_for_each_event(program, Arc::new(told), after, Arc::clone(&news)));
        Self(Some(news))
    }

    /// Something was stored.
    pub(super) fn wake(&self) {
        if let Some(news) = &self.0 {
            news.notify_one();
        }
    }
}

impl EventCursor {
    /// From its first day on: what happened before that is history. A store that was begun anew counts from its beginning, and no
    /// mark of one before it may be beyond that.
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

async fn run_for_each_event(program: EventProgram, told: Arc<EventCursor>, mut after: Option<u64>, news: Arc<Notify>) {
    loop {
        let asked = Arc::clone(&told);
        let next =
            spawn_blocking(move || asked.next_events(after)).await.unwrap_or_else(|error| Err(error.to_string()));
        let events = match next {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(error, "what tasks.on_event is to be told cannot be read");
                sleep(RETRY_DELAY).await;
                continue;
            }
        };
        if events.is_empty() {
            news.notified().await;
        }
        for event in events {
            after = Some(event.seq);
            if let Err(error) = run_program(&program, &event, &told).await {
                tracing::warn!(program = program.argv[0], seq = event.seq, error, "tasks.on_event failed");
            }
        }
    }
}

async fn run_program(
    EventProgram { argv: words, timeout: patience }: &EventProgram,
    event: &TaskEvent,
    told: &EventCursor,
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
    // It has its turn from here on, and gets no other one for this event.
    let noted = told.save(event.seq);
    let mut child = started.map_err(|error| error.to_string())?;
    let group = ProcessGroupGuard::new(&child);
    let ended = timeout(*patience, write_and_wait(&mut child, &line)).await;
    match ended {
        // What it has left behind goes on: that is its own business.
        Ok(_) => group.release(),
        Err(_) => {
            drop(group);
            let _ = child.wait().await;
        }
    }
    noted.map_err(|error| format!("it may be told once more: {error}"))?;
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("it did not end within {} s", patience.as_secs_f64())),
    }
}

async fn write_and_wait(child: &mut Child, line: &[u8]) -> io::Result<std::process::ExitStatus> {
    if let Some(mut input) = child.stdin.take() {
        // One that does not want to know need not read it.
        let _ = input.write_all(line).await;
    }
    child.wait().await
}

/// The program and what it has started, which end when nobody waits for them any more: the time is up, or the daemon stops.
struct ProcessGroupGuard(Option<Pid>);

impl ProcessGroupGuard {
    fn new(child: &Child) -> Self {
        Self(child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())))
    }

    fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_store_that_is_gone_hides_nothing_of_the_next_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state.db");
        let store = rusqlite::Connection::open(&path).expect("made");
        store.execute_batch("CREATE TABLE task_events (seq INTEGER PRIMARY KEY)").expect("made");
        let told = EventCursor { archive: Arc::new(TaskArchive::new(&path)), path: dir.path().join("on_event.seq") };
        let marked = || std::fs::read_to_string(&told.path).ok();
        store.execute_batch("INSERT INTO task_events VALUES (1), (7)").expect("stored");
        assert_eq!((told.last_seq(), marked().as_deref()), (Ok(7), Some("7")), "its first day");
        told.save(3).expect("written");
        assert_eq!(told.last_seq(), Ok(3), "it goes on where it was");
        told.save(500).expect("written");
        assert_eq!((told.last_seq(), marked().as_deref()), (Ok(7), Some("7")), "of another store");
    }
}
