//! The path of this executable.

use std::path::PathBuf;
use std::sync::LazyLock;

/// The path is determined once, at the first call. After an upgrade has replaced the file, the kernel would report the
/// path of a deleted file.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| std::env::current_exe().unwrap_or_default());

/// The path of this executable, for processes that the daemon starts. The first call determines the path, so the daemon
/// must call this function when it starts.
pub(crate) fn path() -> PathBuf {
    PATH.clone()
}
