//! Finds and opens the files of agents.

use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agtmux_core::ids::ProcessRef;
use agtmux_tmux::platform::ProcessTable;

/// The search looks at no more directory entries than this.
const MAX_ENTRIES: usize = 10_000;

/// The directory of an agent's files: the directory that a variable in the agent's environment names, otherwise the
/// default directory below the agent's home directory.
pub(crate) fn agent_file_root(
    variable: Option<&str>,
    below_home: &str,
    process: ProcessRef,
    table: &dyn ProcessTable,
) -> Option<PathBuf> {
    let value = |name: &str| table.environment_variable(process.pid, name).filter(|value| !value.is_empty());
    let usual = || Some(Path::new(&value("HOME").or_else(|| std::env::var_os("HOME"))?).join(below_home));
    variable.and_then(value).map(PathBuf::from).or_else(usual).filter(|root| root.is_absolute())
}

/// Opens a regular file of this user. Refuses symbolic links and does not block on FIFOs.
pub(crate) fn open_own_file(path: &Path) -> Option<(File, u64)> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let ours = metadata.is_file() && metadata.uid() == rustix::process::getuid().as_raw();
    ours.then_some((file, metadata.len()))
}

/// The paths below `root` that match a pattern with `*`. A part of the pattern without `*` is not checked for existence.
pub(crate) fn matching_paths(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut paths = vec![root.to_owned()];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        paths = paths.iter().flat_map(|path| matching_entries(path, part)).take(MAX_ENTRIES).collect();
    }
    paths
}

/// The entries of a directory that match a pattern.
pub(super) fn matching_entries(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    if !pattern.contains('*') {
        return vec![dir.join(pattern)];
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let fits = |name: &[u8]| agtmux_agents::name_matches(pattern, name);
    entries.filter(|entry| fits(entry.file_name().as_bytes())).map(|entry| entry.path()).collect()
}
