//! Test helpers for the processes that a fake ssh starts.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tokio::time::timeout;

pub(super) const SOON: Duration = Duration::from_secs(20);

/// Waits for the pid file and returns the pid.
pub(super) async fn wait_for_pid_file(file: &Path) -> Pid {
    let number = || std::fs::read_to_string(file).unwrap_or_default().trim().parse().ok().and_then(Pid::from_raw);
    let wait = async {
        loop {
            match number() {
                Some(id) => return id,
                None => tokio::task::yield_now().await,
            }
        }
    };
    timeout(SOON, wait).await.expect("the process starts")
}

/// Waits until the process is gone. A zombie counts as gone, because only pid 1 can reap it.
pub(super) async fn wait_for_exit(id: Pid) {
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).unwrap_or_default();
    let is_zombie = || stat().rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let wait = async {
        while test_kill_process(id).is_ok() && !is_zombie() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, wait).await.expect("the process ends");
}
