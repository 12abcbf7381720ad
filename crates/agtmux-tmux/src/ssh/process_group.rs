//! A program and whatever it has started, ended together.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use tokio::time::timeout;

/// A child that leads a process group of its own. Whoever lets go of it has the whole group killed.
#[derive(Debug)]
pub struct ProcessGroup(Child);

impl ProcessGroup {
    pub fn new(child: Child) -> Self {
        Self(child)
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Asks all of them to end, and kills those that have not.
    pub async fn terminate(&mut self, grace: Duration) {
        let Some(group) = self.group_id() else { return };
        let _ = kill_process_group(group, Signal::TERM);
        let _ = timeout(grace, self.0.wait()).await;
        // While one of them is left the number is still theirs, and nobody has got it in this moment.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = timeout(grace, self.0.wait()).await;
    }

    /// None once its end was seen: the number may be another's by then.
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

    /// One that has started another which does not listen to TERM. Both hold its stdout.
    async fn with_company() -> ProcessGroup {
        let mut command = Command::new("sh");
        command.args(["-c", "(trap '' TERM; echo; while :; do sleep 600; done) & wait"]);
        let child = command.stdout(Stdio::piped()).process_group(0).spawn().expect("a shell");
        let mut group = ProcessGroup::new(child);
        let out = group.child().stdout.as_mut().expect("piped");
        out.read_exact(&mut [0]).await.expect("it has begun");
        group
    }

    #[tokio::test]
    async fn whatever_it_has_started_ends_with_it() {
        for politely in [true, false] {
            let mut group = with_company().await;
            let mut out = group.child().stdout.take().expect("piped");
            if politely {
                group.terminate(Duration::from_millis(200)).await;
            } else {
                drop(group);
            }
            let ended = timeout(Duration::from_secs(20), out.read_to_end(&mut Vec::new())).await;
            assert_eq!(ended.expect("nobody holds it").expect("read"), 0);
        }
    }
}
