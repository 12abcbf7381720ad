//! What a program that is taken for ssh has started, and whether it has ended.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tokio::time::timeout;

pub(super) const SOON: Duration = Duration::from_secs(20);

/// The process that has written its number there.
pub(super) async fn wait_for_pid_file(file: &Path) -> Pid {
    let number = || std::fs::read_to_string(file).unwrap_or_default().trim().parse().ok().and_then(Pid::from_raw);
    let noted = async {
        loop {
            match number() {
                Some(id) => return id,
                None => tokio::task::yield_now().await,
            }
        }
    };
    timeout(SOON, noted).await.expect("it was started")
}

/// Nobody waits for it but the first process of the machine, which may take its time.
pub(super) async fn wait_for_exit(id: Pid) {
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).unwrap_or_default();
    let is_zombie = || stat().rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let ends = async {
        while test_kill_process(id).is_ok() && !is_zombie() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, ends).await.expect("it ends");
}
