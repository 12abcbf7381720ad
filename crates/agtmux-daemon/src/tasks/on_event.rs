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
const TRY_AGAIN: Duration = Duration::from_secs(5);

pub(super) struct OnEvent(Option<Arc<Notify>>);

/// The user's program, and how long it may take.
struct Program {
    words: Vec<String>,
    patience: Duration,
}

/// How far the program was told.
struct Told {
    archive: Arc<TaskArchive>,
    /// Holds the number of the last event that it was given.
    mark: PathBuf,
}

impl OnEvent {
    /// The words are separated by spaces. No shell reads them.
    pub(super) fn start(config: &config::Tasks, archive: Arc<TaskArchive>, state_dir: &Path) -> Self {
        let told = Told { archive, mark: state_dir.join("on_event.seq") };
        let words: Vec<String> = config.on_event.split_whitespace().map(ToOwned::to_owned).collect();
        let program = Program { words, patience: config.on_event_timeout.0 };
        if program.words.is_empty() {
            // What happens while there is no program is nobody's business later.
            let _ = std::fs::remove_file(&told.mark);
            return Self(None);
        }
        // Before anything can happen that it is to be told.
        let after = told.so_far().inspect_err(|error| tracing::warn!(error, "tasks.on_event begins later")).ok();
        let news = Arc::new(Notify::new());
        tokio::spawn(tell_all(program, Arc::new(told), after, Arc::clone(&news)));
        Self(Some(news))
    }

    /// Something was stored.
    pub(super) fn nudge(&self) {
        if let Some(news) = &self.0 {
            news.notify_one();
        }
    }
}

impl Told {
    /// From its first day on: what happened before that is history. A store that was begun anew counts from its beginning, and no
    /// mark of one before it may be beyond that.
    fn so_far(&self) -> Result<u64, String> {
        let last = self.archive.last_seq().map_err(|error| error.to_string())?;
        let known: Option<u64> = std::fs::read_to_string(&self.mark).ok().and_then(|text| text.trim().parse().ok());
        let seq = known.map_or(last, |known| known.min(last));
        if known != Some(seq) {
            self.note(seq).map_err(|error| error.to_string())?;
        }
        Ok(seq)
    }

    fn next(&self, after: Option<u64>) -> Result<Vec<TaskEvent>, String> {
        let after = after.map_or_else(|| self.so_far(), Ok)?;
        let query = TaskEventsQuery { after: Some(after), limit: Some(64), ..TaskEventsQuery::default() };
        self.archive.events(&query).map_err(|error| error.to_string())
    }

    fn note(&self, seq: u64) -> io::Result<()> {
        let draft = self.mark.with_extension("draft");
        std::fs::write(&draft, seq.to_string())?;
        std::fs::rename(draft, &self.mark)
    }
}

async fn tell_all(program: Program, told: Arc<Told>, mut after: Option<u64>, news: Arc<Notify>) {
    loop {
        let asked = Arc::clone(&told);
        let next = spawn_blocking(move || asked.next(after)).await.unwrap_or_else(|error| Err(error.to_string()));
        let events = match next {
            Ok(events) => events,
            Err(error) => {
                tracing::warn!(error, "what tasks.on_event is to be told cannot be read");
                sleep(TRY_AGAIN).await;
                continue;
            }
        };
        if events.is_empty() {
            news.notified().await;
        }
        for event in events {
            after = Some(event.seq);
            if let Err(error) = run(&program, &event, &told).await {
                tracing::warn!(program = program.words[0], seq = event.seq, error, "tasks.on_event failed");
            }
        }
    }
}

async fn run(Program { words, patience }: &Program, event: &TaskEvent, told: &Told) -> Result<(), String> {
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
    let noted = told.note(event.seq);
    let mut child = started.map_err(|error| error.to_string())?;
    let group = Group::of(&child);
    let ended = timeout(*patience, whole(&mut child, &line)).await;
    match ended {
        // What it has left behind goes on: that is its own business.
        Ok(_) => group.let_go(),
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

async fn whole(child: &mut Child, line: &[u8]) -> io::Result<std::process::ExitStatus> {
    if let Some(mut input) = child.stdin.take() {
        // One that does not want to know need not read it.
        let _ = input.write_all(line).await;
    }
    child.wait().await
}

/// The program and what it has started, which end when nobody waits for them any more: the time is up, or the daemon stops.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())))
    }

    fn let_go(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
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
        let told = Told { archive: Arc::new(TaskArchive::of(&path)), mark: dir.path().join("on_event.seq") };
        let marked = || std::fs::read_to_string(&told.mark).ok();
        store.execute_batch("INSERT INTO task_events VALUES (1), (7)").expect("stored");
        assert_eq!((told.so_far(), marked().as_deref()), (Ok(7), Some("7")), "its first day");
        told.note(3).expect("written");
        assert_eq!(told.so_far(), Ok(3), "it goes on where it was");
        told.note(500).expect("written");
        assert_eq!((told.so_far(), marked().as_deref()), (Ok(7), Some("7")), "of another store");
    }
}
