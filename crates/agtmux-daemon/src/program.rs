//! The path of this executable.

use std::path::PathBuf;
use std::sync::LazyLock;

/// The path at the first call. Later, an upgrade may have replaced the file, and the kernel then reports a deleted path.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| std::env::current_exe().unwrap_or_default());

/// The path of this executable, for processes that the daemon starts. The first call determines the path, so it must
/// happen when the daemon starts.
pub(crate) fn path() -> PathBuf {
    PATH.clone()
}
