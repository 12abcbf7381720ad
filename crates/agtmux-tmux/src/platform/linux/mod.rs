//! The Linux backend. It uses inotify for terminals, files and directories, pidfd for processes, and `/proc` for the
//! process table.

mod inotify;
mod paths;
mod pidfd;
mod procfs;
mod pts;
mod readiness;
mod selftest;
mod terminals;
#[cfg(test)]
mod terminals_tests;
mod watcher;

use super::stat;

pub(super) use procfs::ProcFs;
pub(super) use watcher::open as open_watcher;
