//! Keeps what the interface remembers in a file of the state directory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::model::InterfaceMemory;

/// A larger file was not written by the interface.
const MAX_BYTES: u64 = 1 << 20;

pub(super) struct MemoryFile {
    path: PathBuf,
    /// What the file contains.
    saved: InterfaceMemory,
}

impl MemoryFile {
    /// Reads the file. A missing or damaged file is the same as an empty one: it has only conveniences.
    pub(super) fn open(path: PathBuf) -> Self {
        let saved = read(&path).unwrap_or_default();
        Self { path, saved }
    }

    pub(super) fn saved(&self) -> &InterfaceMemory {
        &self.saved
    }

    /// Writes the file if the memory has changed. Without a place for it, the interface forgets.
    pub(super) fn save(&mut self, memory: InterfaceMemory) {
        if memory != self.saved && write(&self.path, &memory).is_ok() {
            self.saved = memory;
        }
    }
}

fn read(path: &Path) -> Option<InterfaceMemory> {
    let is_small = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    serde_json::from_slice(&is_small.then(|| fs::read(path).ok())??).ok()
}

/// Replaces the file in one step.
fn write(path: &Path, memory: &InterfaceMemory) -> std::io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(&serde_json::to_vec(memory)?).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RowGrouping;

    #[test]
    fn a_damaged_file_is_an_empty_one_and_is_replaced() {
        let dir = std::env::temp_dir().join(format!("agtmux-memory-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("made");
        let path = dir.join("interface.json");
        for content in ["", "{", "[1]", "{\"grouping\":\"unheard-of\"}"] {
            fs::write(&path, content).expect("written");
            assert_eq!(*MemoryFile::open(path.clone()).saved(), InterfaceMemory::default(), "{content}");
        }
        let memory = InterfaceMemory { grouping: RowGrouping::State, ..InterfaceMemory::default() };
        MemoryFile::open(path.clone()).save(memory.clone());
        assert_eq!(*MemoryFile::open(path.clone()).saved(), memory);
        let names: Vec<_> = fs::read_dir(&dir).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["interface.json"]);
        fs::remove_dir_all(&dir).expect("removed");
    }
}
