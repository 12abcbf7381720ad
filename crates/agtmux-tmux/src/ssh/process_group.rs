//! A child process together with the other processes of its process group.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

/// A child that leads its own process group. Dropping it kills the whole group.
#[derive(Debug)]
pub struct ProcessGroup(Child);

impl ProcessGroup {
    pub fn new(child: Child) -> Self {
        Self(child)
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Sends TERM to the group. When the leader has ended or `grace` has passed, sends KILL to the processes that
    /// remain.
    pub async fn terminate(&mut self, grace: Duration) {
        let Some(group) = self.group_id() else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = timeout(grace, self.0.wait()).await;
        // While one member remains, the kernel does not reuse the group id.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = timeout(grace, self.0.wait()).await;
    }

    /// Sends KILL to the group and waits for its leader.
    pub async fn kill(&mut self) {
        if let Some(group) = self.group_id() {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait().await;
    }

    /// The group id, which is the pid of the leader. `None` after the leader was reaped, because the pid may be reused.
    fn group_id(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.0.id()?).ok()?)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.group_id() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;
    use tokio::io::AsyncReadExt;
    use tokio::process::Command;

    /// A shell with a child that ignores TERM. Both have the stdout pipe open.
    async fn group_with_child() -> ProcessGroup {
        let mut command = Command::new("sh");
        command.args(["-c", "(trap '' TERM; echo; while :; do sleep 600; done) & wait"]);
        let child = command.stdout(Stdio::piped()).process_group(0).spawn().expect("a shell");
        let mut group = ProcessGroup::new(child);
        let out = group.child().stdout.as_mut().expect("piped");
        out.read_exact(&mut [0]).await.expect("the child has started");
        group
    }

    #[tokio::test]
    async fn terminate_and_drop_end_the_whole_group() {
        for terminate in [true, false] {
            let mut group = group_with_child().await;
            let mut out = group.child().stdout.take().expect("piped");
            if terminate {
                group.terminate(Duration::from_millis(200)).await;
            } else {
                drop(group);
            }
            let ended = timeout(Duration::from_secs(20), out.read_to_end(&mut Vec::new())).await;
            assert_eq!(ended.expect("the pipe is closed").expect("read"), 0);
        }
    }
}
