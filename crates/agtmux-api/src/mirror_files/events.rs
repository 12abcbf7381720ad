//! The events of the shell in a shared terminal, as lines of JSON in two files. When the newer file is full, it
//! replaces the older one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agtmux_core::mirror::ShellEvent;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::open_no_follow;
use crate::task_files::older_log;

/// When a file has this size, the next event goes into a new file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// An event of the shell, and the time at which the reader of the pane's output saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorEventLine {
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: ShellEvent,
}

/// Appends events to the file of a shared terminal.
#[derive(Debug)]
pub struct MirrorEventWriter {
    path: PathBuf,
    file: File,
}

impl MirrorEventWriter {
    /// Opens the file for new events. Also returns the number of the last command that the earlier events mention.
    pub fn open(path: &Path) -> io::Result<(Self, u64)> {
        let lines = read_lines::<MirrorEventLine>(path);
        let last = lines.iter().filter_map(|line| match line.event {
            ShellEvent::Started { number, .. } | ShellEvent::Ended { number, .. } => Some(number),
            _ => None,
        });
        let last = last.max().unwrap_or(0);
        Ok((Self { path: path.to_owned(), file: open_append(path)? }, last))
    }

    /// Writes several events in one call, so that a follower wakes up only once.
    pub fn write(&mut self, lines: &[MirrorEventLine]) -> io::Result<()> {
        if self.file.metadata()?.len() >= MAX_FILE_BYTES {
            fs::rename(&self.path, older_log(&self.path))?;
            self.file = open_append(&self.path)?;
        }
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line)?;
            bytes.push(b'\n');
        }
        self.file.write_all(&bytes)
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Appends a line to a log that consists of a newer and an older file. If the newer file is full, it first becomes the
/// older one.
pub(super) fn append_line(path: &Path, line: &impl Serialize) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|data| data.len() >= MAX_FILE_BYTES) {
        fs::rename(path, older_log(path))?;
    }
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    open_append(path)?.write_all(&bytes)
}

/// Reads all lines of the older and the newer file, oldest first. Lines that cannot be parsed are skipped.
pub(super) fn read_lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let read = |path: &Path| {
        let mut bytes = Vec::new();
        open_no_follow(path).and_then(|mut file| file.read_to_end(&mut bytes)).map(|_| bytes).unwrap_or_default()
    };
    let bytes = [read(&older_log(path)), read(path)].concat();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Reads the events that were written since the last call, even if the writer has started a new file in the meantime.
#[derive(Debug)]
pub struct MirrorEventFollower {
    path: PathBuf,
    file: Option<File>,
    position: u64,
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
}

impl MirrorEventFollower {
    /// The first read begins with the oldest event that still exists.
    pub fn new(path: PathBuf) -> Self {
        let older = open_no_follow(&older_log(&path)).ok();
        Self { path, file: older, position: 0, partial: Vec::new() }
    }

    pub fn read_new(&mut self) -> io::Result<Vec<MirrorEventLine>> {
        let mut bytes = std::mem::take(&mut self.partial);
        loop {
            self.read_current(&mut bytes)?;
            if !self.open_next()? {
                break;
            }
        }
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.partial = bytes.split_off(end);
        Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    fn read_current(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(self.position))?;
        self.position += file.read_to_end(bytes)? as u64;
        Ok(())
    }

    /// Opens the newer file, unless it is already open. No event is lost: the current file has been read to its end,
    /// and the writer never writes to a file after starting the next one.
    fn open_next(&mut self) -> io::Result<bool> {
        let next = match open_no_follow(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            next => next?,
        };
        let identity = |file: &File| file.metadata().map(|data| (data.dev(), data.ino()));
        let current = self.file.as_ref().map(identity).transpose()?;
        if current == Some(identity(&next)?) {
            return Ok(false);
        }
        (self.file, self.position) = (Some(next), 0);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64) -> MirrorEventLine {
        MirrorEventLine { at: Timestamp::UNIX_EPOCH, event: ShellEvent::Ready { seq } }
    }

    #[test]
    fn a_follower_reads_every_event_once_also_across_files() {
        let dir = std::env::temp_dir().join(format!("agtmux-mirror-events-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("created");
        let path = dir.join("events");
        let (mut writer, last) = MirrorEventWriter::open(&path).expect("opened");
        assert_eq!(last, 0);
        let mut follower = MirrorEventFollower::new(path.clone());
        let text = "x".repeat(100_000);
        for seq in 0..100 {
            let long = ShellEvent::Started { number: seq + 1, exec: None, text: Some(text.clone()), cwd: None };
            let long = MirrorEventLine { at: Timestamp::UNIX_EPOCH, event: long };
            writer.write(&[line(seq), long.clone()]).expect("written");
            assert_eq!(follower.read_new().expect("read"), [line(seq), long]);
        }
        assert!(older_log(&path).exists(), "the file was replaced at least once");
        assert!(follower.read_new().expect("read").is_empty());
        let (_, last) = MirrorEventWriter::open(&path).expect("opened");
        assert_eq!(last, 100);
        let kept = MirrorEventFollower::new(path).read_new().expect("read");
        assert_eq!(kept.len() % 2, 0, "whole lines");
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn a_line_that_is_written_in_two_parts_is_read_once() {
        let dir = std::env::temp_dir().join(format!("agtmux-mirror-partial-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("created");
        let path = dir.join("events");
        let mut file = open_append(&path).expect("opened");
        let bytes = [serde_json::to_vec(&line(7)).expect("JSON"), b"\n".to_vec()].concat();
        let mut follower = MirrorEventFollower::new(path);
        file.write_all(&bytes[..9]).expect("written");
        assert!(follower.read_new().expect("read").is_empty());
        file.write_all(&bytes[9..]).expect("written");
        assert_eq!(follower.read_new().expect("read"), [line(7)]);
        fs::remove_dir_all(dir).expect("removed");
    }
}
