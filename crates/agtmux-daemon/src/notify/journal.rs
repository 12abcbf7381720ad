//! The notification log and the list of open notices, in memory and in two small files.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agtmux_api::paths::Paths;
use agtmux_api::wire::{NotifyLogItem, NotifyLogQuery};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::background::BackgroundTasks;

/// The most lines in memory. When the file becomes too large, it is written again with these lines.
const MAX_ITEMS: usize = 1000;
const MAX_FILE_BYTES: u64 = 4 << 20;
const DEFAULT_LIMIT: u32 = 200;

pub(super) struct Journal {
    items: Mutex<VecDeque<NotifyLogItem>>,
    /// The size of the file.
    file_bytes: AtomicU64,
    writes: mpsc::UnboundedSender<JournalWrite>,
}

enum JournalWrite {
    Line(String),
    /// All lines in memory, because the file has become too large.
    All(Vec<String>),
    OpenNotices(String),
}

struct JournalFiles {
    log: PathBuf,
    open_notices: PathBuf,
}

impl Journal {
    pub(super) fn open(paths: &Paths, background: &BackgroundTasks) -> Arc<Self> {
        let files = Arc::new(JournalFiles { log: paths.notify_log(), open_notices: paths.open_notices() });
        let (writes, waiting) = mpsc::unbounded_channel();
        let file_bytes = AtomicU64::new(fs::metadata(&files.log).map_or(0, |meta| meta.len()));
        let journal = Self { items: Mutex::new(read_log(&files.log)), file_bytes, writes };
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        background.keep("notify_log", move || write_all(files.clone(), waiting.clone()));
        Arc::new(journal)
    }

    pub(super) fn add(&self, item: NotifyLogItem) {
        let mut items = self.items();
        if items.len() == MAX_ITEMS {
            items.pop_front();
        }
        let line = serde_json::to_string(&item);
        items.push_back(item);
        let Ok(line) = line else { return };
        let bytes = self.file_bytes.fetch_add(line.len() as u64 + 1, Ordering::Relaxed);
        if bytes <= MAX_FILE_BYTES {
            let _ = self.writes.send(JournalWrite::Line(line));
            return;
        }
        let lines: Vec<String> = items.iter().filter_map(|item| serde_json::to_string(item).ok()).collect();
        self.file_bytes.store(lines.iter().map(|line| line.len() as u64 + 1).sum(), Ordering::Relaxed);
        let _ = self.writes.send(JournalWrite::All(lines));
    }

    /// The newest items that match, oldest first.
    pub(super) fn list(&self, query: &NotifyLogQuery) -> Vec<NotifyLogItem> {
        let limit = usize::try_from(query.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let items = self.items();
        let matching = items.iter().rev().filter(|item| query.since.is_none_or(|since| item.at >= since));
        let mut newest: Vec<NotifyLogItem> = matching.take(limit).cloned().collect();
        newest.reverse();
        newest
    }

    pub(super) fn save_open_notices(&self, document: String) {
        let _ = self.writes.send(JournalWrite::OpenNotices(document));
    }

    fn items(&self) -> MutexGuard<'_, VecDeque<NotifyLogItem>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the newest lines. A damaged line is skipped.
fn read_log(path: &Path) -> VecDeque<NotifyLogItem> {
    let text = fs::read(path).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').rev();
    let mut items: Vec<NotifyLogItem> =
        lines.filter_map(|line| serde_json::from_slice(line).ok()).take(MAX_ITEMS).collect();
    items.reverse();
    items.into()
}

async fn write_all(files: Arc<JournalFiles>, writes: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<JournalWrite>>>) {
    let mut writes = writes.lock().await;
    while let Some(write) = writes.recv().await {
        let files = files.clone();
        let written = spawn_blocking(move || files.write(write)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "cannot write the notification log");
        }
    }
}

impl JournalFiles {
    fn write(&self, write: JournalWrite) -> io::Result<()> {
        match write {
            JournalWrite::Line(line) => {
                let mut file = fs::OpenOptions::new().append(true).create(true).open(&self.log)?;
                file.write_all(format!("{line}\n").as_bytes())
            }
            JournalWrite::All(lines) => replace(&self.log, lines.join("\n") + "\n"),
            JournalWrite::OpenNotices(document) => replace(&self.open_notices, document),
        }
    }
}

fn replace(path: &Path, text: String) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!("agtmuxd.{name}.draft"));
    fs::write(&draft, text)?;
    fs::rename(draft, path)
}

#[cfg(test)]
mod tests {
    use agtmux_api::wire::{NoticeKind, NotifyLogEvent};
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::super::message::NoticeWriter;
    use super::*;

    fn item(second: i64) -> NotifyLogItem {
        let at = Timestamp::from_second(second).expect("a time");
        let notice = NoticeWriter { zone: TimeZone::UTC }.test("n", at);
        assert_eq!(notice.kind, NoticeKind::Test);
        NotifyLogItem { at, event: NotifyLogEvent::Sent, channel: None, reason: None, notice }
    }

    #[test]
    fn a_damaged_line_is_skipped_and_the_order_is_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notify.jsonl");
        let line = |second| serde_json::to_string(&item(second)).expect("JSON");
        fs::write(&path, format!("{}\n{{\"at\": \n\u{0}\n{}\n", line(1), line(2))).expect("written");
        let seconds: Vec<i64> = read_log(&path).iter().map(|item| item.at.as_second()).collect();
        assert_eq!(seconds, [1, 2]);
    }

    #[test]
    fn a_query_returns_the_newest_lines() {
        let (writes, _) = mpsc::unbounded_channel();
        let journal = Journal { items: Mutex::default(), file_bytes: AtomicU64::new(0), writes };
        (0..10).for_each(|second| journal.add(item(second)));
        let seconds = |since: Option<i64>, limit| -> Vec<i64> {
            let since = since.map(|since| Timestamp::from_second(since).expect("a time"));
            journal.list(&NotifyLogQuery { since, limit }).iter().map(|item| item.at.as_second()).collect()
        };
        assert_eq!(seconds(None, Some(2)), [8, 9]);
        assert_eq!(seconds(Some(7), None), [7, 8, 9]);
    }

    #[test]
    fn a_file_that_becomes_too_large_is_written_again() {
        let (writes, mut waiting) = mpsc::unbounded_channel();
        let journal = Journal { items: Mutex::default(), file_bytes: AtomicU64::new(MAX_FILE_BYTES), writes };
        (0..3).for_each(|second| journal.add(item(second)));
        let mut next = || match waiting.try_recv() {
            Ok(JournalWrite::Line(_)) => "line",
            Ok(JournalWrite::All(lines)) if lines.len() == 2 => "all",
            _ => "other",
        };
        assert_eq!([next(), next(), next()], ["line", "all", "line"]);
    }
}
