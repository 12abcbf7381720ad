//! How a pane is reached by those who act on it: here, or through the shell of its host.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agtmux_api::wire::ServerHealth;
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_tmux::host::{HostShell, ShellError};
use agtmux_tmux::platform::{self, PaneProcesses, ProcessInfo, ProcessSnapshot, ProcessTable};
use agtmux_tmux::{TmuxServer, platform::signal_process};
use tokio::sync::Notify;

use crate::remote_timeouts::PROGRAM_TIMEOUT;

/// Everything that an action needs of the place where it is done.
pub(crate) struct ServerAccess {
    pub(crate) tmux: TmuxServer,
    pub(crate) processes: HostProcesses,
}

/// The process table of the host that a pane is on.
#[derive(Clone)]
pub(crate) enum HostProcesses {
    Local(Arc<dyn ProcessTable>),
    Remote { shell: HostShell, patience: Duration },
}

/// Nobody told of the processes there. That is no word about any of them.
#[derive(Debug, thiserror::Error)]
#[error("its processes cannot be seen: {0}")]
pub(crate) struct ProcessesUnavailable(String);

/// Why a process was not struck, or may not have been.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignalError {
    #[error("{0}")]
    NotSent(String),
    /// It was on its way when the line fell silent.
    #[error("{0}")]
    Unknown(String),
}

impl From<ShellError> for SignalError {
    fn from(error: ShellError) -> Self {
        match error {
            ShellError::Spawn(_) | ShellError::Unsupported(_) => Self::NotSent(error.to_string()),
            ShellError::Timeout { .. } | ShellError::Closed(_) | ShellError::OutputTooLarge(_) => {
                Self::Unknown(error.to_string())
            }
        }
    }
}

async fn list_processes(shell: &HostShell, patience: Duration) -> Result<ProcessSnapshot, ProcessesUnavailable> {
    let snapshot = shell.processes(patience).await.map_err(|error| ProcessesUnavailable(error.to_string()))?;
    // Not even those who tell are in it.
    if snapshot.is_empty() { Err(ProcessesUnavailable("its ps says nothing".into())) } else { Ok(snapshot) }
}

impl HostProcesses {
    /// None where the root is gone, or nobody answers: only for those who go on looking.
    pub(crate) async fn tree(&self, root: u32) -> Option<PaneProcesses> {
        self.try_tree(root).await.ok().flatten()
    }

    /// None where the root is gone.
    pub(crate) async fn try_tree(&self, root: u32) -> Result<Option<PaneProcesses>, ProcessesUnavailable> {
        match self {
            Self::Local(table) => Ok(table.trees(&[root]).pop().flatten()),
            Self::Remote { shell, patience } => Ok(list_processes(shell, *patience).await?.tree(root)),
        }
    }

    pub(crate) async fn try_process(&self, pid: u32) -> Result<Option<ProcessInfo>, ProcessesUnavailable> {
        match self {
            Self::Local(table) => Ok(table.process(pid)),
            Self::Remote { shell, patience } => Ok(list_processes(shell, *patience).await?.process(pid)),
        }
    }

    /// Where a process is; None where that is not told.
    pub(crate) fn cwd(&self, pid: u32) -> Option<PathBuf> {
        match self {
            Self::Local(table) => table.cwd(pid),
            Self::Remote { .. } => None,
        }
    }

    /// Sends TERM, or KILL, to this process and to no other that has got its number since. False if it has ended.
    pub(crate) async fn signal_process(&self, process: &ProcessInfo, kill: bool) -> Result<bool, SignalError> {
        match self {
            Self::Local(table) => {
                let done = signal_process(&**table, process.pid, process.start, kill);
                done.map_err(|error| SignalError::NotSent(error.to_string()))
            }
            Self::Remote { shell, patience } => Ok(shell.signal_process(process, kill, *patience).await?),
        }
    }

    /// The longest line that this terminal takes, where it collects lines and we can see it.
    pub(crate) fn max_line_bytes(&self, tty: &str) -> Option<usize> {
        match self {
            Self::Local(_) => platform::max_line_bytes(Path::new(tty)),
            Self::Remote { .. } => None,
        }
    }

    /// How much of what was typed into this terminal was not read yet, where we can see it.
    pub(crate) fn unread_input(&self, tty: &str) -> Option<u64> {
        match self {
            Self::Local(_) => platform::unread_input(Path::new(tty)),
            Self::Remote { .. } => None,
        }
    }
}

/// The hosts that are watched through a shell at this moment.
#[derive(Default)]
pub(crate) struct AgentlessHostMap {
    hosts: Mutex<HashMap<TargetName, Arc<AgentlessHost>>>,
}

pub(super) struct AgentlessHost {
    pub(super) shell: HostShell,
    /// Somebody has acted there.
    pub(super) wake: Notify,
    servers: Mutex<BTreeMap<ServerName, (PathBuf, Option<ServerHealth>)>>,
}

/// A host that is watched until this is dropped.
pub(super) struct WatchedHost<'a> {
    hosts: &'a AgentlessHostMap,
    target: TargetName,
    pub(super) host: Arc<AgentlessHost>,
}

impl Drop for WatchedHost<'_> {
    fn drop(&mut self) {
        let mut hosts = lock(&self.hosts.hosts);
        if hosts.get(&self.target).is_some_and(|host| Arc::ptr_eq(host, &self.host)) {
            hosts.remove(&self.target);
        }
    }
}

impl AgentlessHostMap {
    pub(super) fn watch(&self, target: TargetName, shell: HostShell) -> WatchedHost<'_> {
        let host = Arc::new(AgentlessHost { shell, wake: Notify::new(), servers: Mutex::default() });
        lock(&self.hosts).insert(target.clone(), host.clone());
        WatchedHost { hosts: self, target, host }
    }

    /// The way to a server of such a host.
    pub(in crate::observe) fn server_access(&self, key: &ServerKey, patience: Duration) -> Option<ServerAccess> {
        let host = lock(&self.hosts).get(&key.target).filter(|host| !host.shell.has_ended()).cloned()?;
        let socket = lock(&host.servers).get(&key.server).map(|(socket, _)| socket.clone())?;
        // Whatever the settings say: a question that nobody answers is how such a host is known to be gone.
        let patience = patience.min(PROGRAM_TIMEOUT);
        let processes = HostProcesses::Remote { shell: host.shell.clone(), patience };
        Some(ServerAccess { tmux: host.shell.tmux(socket, patience), processes })
    }

    pub(in crate::observe) fn wake(&self, target: &TargetName) {
        if let Some(host) = lock(&self.hosts).get(target) {
            host.wake.notify_one();
        }
    }

    pub(in crate::observe) fn reports(&self) -> Vec<ServerHealth> {
        let hosts: Vec<Arc<AgentlessHost>> = lock(&self.hosts).values().cloned().collect();
        let of =
            |host: Arc<AgentlessHost>| lock(&host.servers).values().filter_map(|(_, report)| report.clone()).collect();
        hosts.into_iter().flat_map(|host| -> Vec<ServerHealth> { of(host) }).collect()
    }
}

impl AgentlessHost {
    pub(super) fn put_server(&self, name: ServerName, socket: PathBuf, report: Option<ServerHealth>) {
        lock(&self.servers).insert(name, (socket, report));
    }

    pub(super) fn drop_server(&self, name: &ServerName) {
        lock(&self.servers).remove(name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::process::Command;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// The shell of this machine, as if it were another's.
    async fn there(id_file: &Path) -> HostProcesses {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$1\"; exec sh", "sh"]).arg(id_file);
        let shell = HostShell::open(command, PATIENCE).await.expect("a shell");
        HostProcesses::Remote { shell, patience: PATIENCE }
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_says_nothing_of_its_processes() {
        let dir = tempfile::tempdir().expect("a directory");
        let id_file = dir.path().join("id");
        let processes = there(&id_file).await;
        let own = std::process::id();
        let found = processes.try_process(own).await.expect("it answers").expect("we live");
        assert!(processes.try_tree(own).await.expect("it answers").is_some());
        let id = std::fs::read_to_string(&id_file).expect("it was written");
        let id = rustix::process::Pid::from_raw(id.trim().parse().expect("a pid")).expect("not 0");
        rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("it is ours");
        assert!(processes.try_process(own).await.is_err() && processes.try_tree(own).await.is_err());
        // Nobody is struck by this: the shell is gone.
        assert!(matches!(processes.signal_process(&found, false).await, Err(SignalError::Unknown(_))));
    }
}
