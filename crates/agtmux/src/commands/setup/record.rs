//! What setup has put where, so that it can be taken out to the last byte.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use serde::{Deserialize, Serialize};

use super::edit::Hints;

/// Losing it costs no more than a pair of empty brackets that stays or goes.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    #[serde(default)]
    files: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// There was no such file before.
    #[serde(default)]
    pub(super) created: bool,
    /// Nor so many of the directories above it.
    #[serde(default)]
    pub(super) made_dirs: usize,
    #[serde(default)]
    pub(super) hints: Hints,
}

impl Record {
    /// One that cannot be read counts as none.
    pub(super) fn load(paths: &Paths) -> Self {
        let bytes = fs::read(paths.setup_record()).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(super) fn of(&self, file: &Path) -> Entry {
        self.files.get(file).cloned().unwrap_or_default()
    }

    pub(super) fn set(&mut self, file: &Path, entry: Option<Entry>) {
        match entry {
            Some(entry) => self.files.insert(file.to_owned(), entry),
            None => self.files.remove(file),
        };
    }

    pub(super) fn save(&self, paths: &Paths) -> std::io::Result<()> {
        if self.files.is_empty() {
            return match fs::remove_file(paths.setup_record()) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        paths.prepare_state_dir().map_err(std::io::Error::other)?;
        let mut draft = tempfile::NamedTempFile::new_in(&paths.state_dir)?;
        draft.write_all(&serde_json::to_vec_pretty(self)?)?;
        draft.persist(paths.setup_record())?;
        Ok(())
    }
}
