//! Stores events for a daemon that is not running: one file per event. Deletes the oldest events when the spool is
//! full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use agtmux_api::paths::Paths;
use agtmux_core::redact;
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::Value;
use uuid::Uuid;

const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 16 << 20;
/// A temporary file older than this was left behind by a process that crashed.
const ABANDONED_AFTER: Duration = Duration::from_secs(60);

/// How long to wait for other processes that store events. Each needs about a millisecond.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(1);

/// Stores the event. Errors are ignored: losing an event must not fail the agent's hook.
pub(super) fn store(paths: &Paths, body: &[u8], at: Timestamp) {
    if paths.prepare_spool().is_ok() {
        let _ = put(&paths.spool_dir(), &redacted(body), at, MAX_FILES, MAX_BYTES);
    }
}

/// Removes secrets before the event is written to disk.
fn redacted(body: &[u8]) -> Vec<u8> {
    let Ok(mut event) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    redact::json(&mut event);
    event.to_string().into_bytes()
}

fn put(dir: &Path, body: &[u8], at: Timestamp, most_files: usize, most_bytes: u64) -> io::Result<()> {
    // Hooks of several agents may store events at the same time. Without the lock, each would count the files before
    // the others add theirs.
    let _lock = lock(dir);
    make_room(dir, body.len() as u64, most_files, most_bytes)?;
    let mut draft = tempfile::Builder::new().suffix(".tmp").tempfile_in(dir)?;
    draft.write_all(body)?;
    // The names sort by time.
    draft.persist(dir.join(format!("{:020}-{}.json", at.as_nanosecond(), Uuid::new_v4().simple())))?;
    Ok(())
}

/// Locks the spool until the returned file is dropped. `None` if this process cannot get the lock in time. The caller
/// then stores the event without the lock, because losing the event would be worse than exceeding the size limit of the
/// spool.
fn lock(dir: &Path) -> Option<File> {
    let (file, deadline) = (File::open(dir).ok()?, Instant::now() + LOCK_TIMEOUT);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(file),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(_) => return None,
        }
    }
}

fn make_room(dir: &Path, coming: u64, most_files: usize, most_bytes: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)?.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if is_draft(&entry.path()) {
            let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            if age.is_some_and(|age| age > ABANDONED_AFTER) {
                let _ = fs::remove_file(entry.path());
            }
        } else if meta.is_file() {
            files.push((entry.path(), meta.len()));
        }
    }
    files.sort();
    let (mut count, mut bytes) = (files.len() + 1, files.iter().map(|(_, len)| len).sum::<u64>() + coming);
    for (path, length) in files {
        if count <= most_files && bytes <= most_bytes {
            break;
        }
        let _ = fs::remove_file(path);
        count -= 1;
        bytes -= length;
    }
    Ok(())
}

fn is_draft(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "tmp")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn bodies(dir: &Path) -> Vec<String> {
        let mut paths: Vec<PathBuf> = fs::read_dir(dir).expect("there").flatten().map(|e| e.path()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).expect("readable")).collect()
    }

    #[test]
    fn the_oldest_event_is_dropped_when_the_spool_is_full() {
        let dir = tempfile::tempdir().expect("a directory");
        for (second, body) in (1..).zip(["1", "2", "3", "4"]) {
            let at = Timestamp::from_second(second).expect("in range");
            put(dir.path(), body.as_bytes(), at, 3, 1000).expect("put");
        }
        assert_eq!(bodies(dir.path()), ["2", "3", "4"]);
        put(dir.path(), b"55555", Timestamp::from_second(9).expect("in range"), 3, 6).expect("put");
        assert_eq!(bodies(dir.path()), ["4", "55555"]);
    }

    #[test]
    fn the_limits_hold_while_eight_writers_store_events() {
        const MAX: usize = 20;
        let dir = tempfile::tempdir().expect("a directory");
        thread::scope(|scope| {
            for writer in 0..8 {
                let dir = dir.path();
                scope.spawn(move || {
                    for n in 0..50 {
                        let at = Timestamp::from_second(n * 8 + writer).expect("in range");
                        put(dir, b"event", at, MAX, 1000).expect("put");
                        // Without the lock, the listing could count both a new file and the file removed for it.
                        let _lock = lock(dir).expect("the lock is free soon");
                        let count = bodies(dir).len();
                        assert!(count <= MAX, "{count} files after an event was stored");
                    }
                });
            }
        });
        assert_eq!(bodies(dir.path()).len(), MAX);
    }

    #[test]
    fn secrets_are_not_stored() {
        let secret = "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1111222233334444";
        let body = serde_json::json!({"payload": {"prompt": secret}}).to_string();
        let kept = String::from_utf8(redacted(body.as_bytes())).expect("text");
        assert!(!kept.contains(secret) && kept.contains("prompt"), "{kept}");
    }
}
