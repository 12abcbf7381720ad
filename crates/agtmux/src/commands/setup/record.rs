//! What setup has put where, so that it can be taken out to the last byte.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use serde::{Deserialize, Serialize};

use super::edit::EditHints;
use super::files;

/// Without it our entries are still known, but not what was there before them, nor where else they are.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    #[serde(default)]
    files: BTreeMap<PathBuf, SetupRecordEntry>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupRecordEntry {
    /// Whose settings these are, and which: behind a link a file may have any name.
    #[serde(default)]
    pub(super) agent: String,
    #[serde(default)]
    pub(super) file: String,
    /// There was no such file before.
    #[serde(default)]
    pub(super) created: bool,
    /// Nor so many of the directories above it.
    #[serde(default)]
    pub(super) made_dirs: usize,
    #[serde(default)]
    pub(super) hints: EditHints,
}

impl SetupRecord {
    /// One that cannot be read counts as none.
    pub(super) fn load(paths: &Paths) -> Self {
        let bytes = fs::read(paths.setup_record()).unwrap_or_default();
        let Self { files } = serde_json::from_slice(&bytes).unwrap_or_default();
        // Directories that were not there when it was written may be behind links.
        let files =
            files.into_iter().map(|(path, entry)| (files::resolve_links(&path).unwrap_or(path), entry)).collect();
        Self { files }
    }

    /// Waits until no other setup changes anything, and keeps them waiting for as long as the file is open.
    pub(super) fn lock(paths: &Paths) -> std::io::Result<File> {
        paths.prepare_state_dir().map_err(std::io::Error::other)?;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(paths.setup_lock())?;
        file.lock()?;
        Ok(file)
    }

    /// The files of an agent, wherever they are.
    pub(super) fn files_of(&self, agent: &str) -> impl Iterator<Item = (&Path, &SetupRecordEntry)> {
        self.files.iter().filter(move |(_, entry)| entry.agent == agent).map(|(path, entry)| (path.as_path(), entry))
    }

    /// Files that are no longer there, and how many of the directories above each were made for it. Where the directory
    /// is not there either, it may come back with all that is in it.
    pub(super) fn missing_files(&self, agent: &str) -> Vec<(PathBuf, usize)> {
        let is_gone = |path: &Path| !path.exists() && path.parent().is_some_and(Path::is_dir);
        let gone = self.files_of(agent).filter(|(path, _)| is_gone(path));
        gone.map(|(path, entry)| (path.to_owned(), entry.made_dirs)).collect()
    }

    /// How many of the directories above this file were made for it, or for one beside it.
    pub(super) fn made_dirs(&self, file: &Path) -> usize {
        let beside = self.files.iter().filter(|(path, _)| path.parent() == file.parent());
        beside.map(|(_, entry)| entry.made_dirs).max().unwrap_or_default()
    }

    pub(super) fn entry(&self, file: &Path) -> SetupRecordEntry {
        self.files.get(file).cloned().unwrap_or_default()
    }

    pub(super) fn set(&mut self, file: &Path, entry: Option<SetupRecordEntry>) {
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
        let path = paths.setup_record();
        let mut draft = files::create_draft(&path)?;
        draft.write_all(&serde_json::to_vec_pretty(self)?)?;
        draft.persist(path)?;
        Ok(())
    }
}
