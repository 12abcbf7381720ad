//! The record of installed hooks, so that uninstall restores every file exactly.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agtmux_api::paths::Paths;
use serde::{Deserialize, Serialize};

use super::edit::EditHints;
use super::files;

/// The record of the settings files that setup changed. Without the record, uninstall still recognises the hooks.
/// However, uninstall then cannot restore the original layout of a file, and misses files outside the agent's current
/// settings directory.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupRecord {
    #[serde(default)]
    files: BTreeMap<PathBuf, SetupRecordEntry>,
    /// The file of this record. Hooks and MCP servers have one each, because both may be in one settings file.
    #[serde(skip)]
    pub(super) path: PathBuf,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupRecordEntry {
    #[serde(default)]
    pub(super) agent: String,
    /// The name of the settings file in the agent's manifest. The path of this entry in the record may end with another
    /// file name, because links in that path are resolved.
    #[serde(default)]
    pub(super) file: String,
    /// Whether setup created the file.
    #[serde(default)]
    pub(super) created: bool,
    /// How many parent directories setup created for the file.
    #[serde(default)]
    pub(super) made_dirs: usize,
    #[serde(default)]
    pub(super) hints: EditHints,
}

impl SetupRecord {
    /// Loads the record. An unreadable record counts as empty.
    pub(super) fn load(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap_or_default();
        let Self { files, .. } = serde_json::from_slice(&bytes).unwrap_or_default();
        // Directories that did not exist when the record was written may be links now.
        let files =
            files.into_iter().map(|(path, entry)| (files::resolve_links(&path).unwrap_or(path), entry)).collect();
        Self { files, path }
    }

    /// Waits for other setups and locks them out while the returned file is open.
    pub(super) fn lock(paths: &Paths) -> std::io::Result<File> {
        paths.prepare_state_dir().map_err(std::io::Error::other)?;
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(paths.setup_lock())?;
        file.lock()?;
        Ok(file)
    }

    /// The recorded files of an agent, including files outside its current settings directory.
    pub(super) fn files_of(&self, agent: &str) -> impl Iterator<Item = (&Path, &SetupRecordEntry)> {
        self.files.iter().filter(move |(_, entry)| entry.agent == agent).map(|(path, entry)| (path.as_path(), entry))
    }

    /// Recorded files that no longer exist, each with the number of directories that setup created for it. A file is
    /// omitted if its directory is missing too, because the directory may come back with its content.
    pub(super) fn missing_files(&self, agent: &str) -> Vec<(PathBuf, usize)> {
        let is_gone = |path: &Path| !path.exists() && path.parent().is_some_and(Path::is_dir);
        let gone = self.files_of(agent).filter(|(path, _)| is_gone(path));
        gone.map(|(path, entry)| (path.to_owned(), entry.made_dirs)).collect()
    }

    /// How many parent directories setup created for this file or for a file beside it.
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
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        paths.prepare_state_dir().map_err(std::io::Error::other)?;
        let mut draft = files::create_draft(&self.path)?;
        draft.write_all(&serde_json::to_vec_pretty(self)?)?;
        draft.persist(&self.path)?;
        Ok(())
    }
}
