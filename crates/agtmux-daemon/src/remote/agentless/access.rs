//! Gives actions access to the tmux server and the processes of a pane, directly on this host,
//! or through a shell on a host where agtmux is not installed.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agtmux_api::wire::ServerHealth;
use agtmux_core::ids::{ServerKey, ServerName, TargetName};
use agtmux_tmux::host::{HostShell, ShellError};
use agtmux_tmux::platform::{self, PaneProcesses, ProcessInfo, ProcessSnapshot, ProcessTable};
use agtmux_tmux::{TmuxServer, platform::signal_process};
use tokio::sync::Notify;

use super::server::AgentlessServer;
use crate::remote::timeouts::PROGRAM_TIMEOUT;

/// The tmux server and the process table of a pane.
pub(crate) struct ServerAccess {
    pub(crate) tmux: TmuxServer,
    pub(crate) processes: HostProcesses,
}

/// The process table of a pane's host.
#[derive(Clone)]
pub(crate) enum HostProcesses {
    Local(Arc<dyn ProcessTable>),
    Remote { shell: HostShell, timeout: Duration },
}

/// The process list could not be read, so it is unknown which processes exist.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the processes of the host: {0}")]
pub(crate) struct ProcessesUnavailable(String);

/// Why a signal was not sent, or may not have been sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignalError {
    #[error("{0}")]
    NotSent(String),
    /// The connection broke after the request was sent.
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

fn unreadable(error: std::io::Error) -> ProcessesUnavailable {
    ProcessesUnavailable(error.to_string())
}

async fn list_processes(shell: &HostShell, timeout: Duration) -> Result<ProcessSnapshot, ProcessesUnavailable> {
    let snapshot = shell.processes(timeout).await.map_err(|error| ProcessesUnavailable(error.to_string()))?;
    // A complete list contains at least `ps` itself.
    if snapshot.is_empty() { Err(ProcessesUnavailable("ps printed nothing".into())) } else { Ok(snapshot) }
}

impl HostProcesses {
    /// The process tree below `root`. `None` if the root is gone or the host does not answer. Meant for callers that
    /// poll, and therefore try again.
    pub(crate) async fn tree(&self, root: u32) -> Option<PaneProcesses> {
        self.try_tree(root).await.ok().flatten()
    }

    /// The process tree below `root`, or `None` if the root is gone.
    pub(crate) async fn try_tree(&self, root: u32) -> Result<Option<PaneProcesses>, ProcessesUnavailable> {
        match self {
            Self::Local(table) => Ok(table.trees(&[root]).map_err(unreadable)?.pop().flatten()),
            Self::Remote { shell, timeout } => Ok(list_processes(shell, *timeout).await?.tree(root)),
        }
    }

    pub(crate) async fn try_process(&self, pid: u32) -> Result<Option<ProcessInfo>, ProcessesUnavailable> {
        match self {
            Self::Local(table) => table.try_process(pid).map_err(unreadable),
            Self::Remote { shell, timeout } => Ok(list_processes(shell, *timeout).await?.process(pid)),
        }
    }

    /// The working directory of a process. Not available on agentless hosts.
    pub(crate) fn cwd(&self, pid: u32) -> Option<PathBuf> {
        match self {
            Self::Local(table) => table.cwd(pid),
            Self::Remote { .. } => None,
        }
    }

    /// Sends TERM or KILL to this process, but not to another process that has reused its pid. Returns false if the
    /// process has ended.
    pub(crate) async fn signal_process(&self, process: &ProcessInfo, kill: bool) -> Result<bool, SignalError> {
        match self {
            Self::Local(table) => {
                let done = signal_process(&**table, process.pid, process.start, kill);
                done.map_err(|error| SignalError::NotSent(error.to_string()))
            }
            Self::Remote { shell, timeout } => Ok(shell.signal_process(process, kill, *timeout).await?),
        }
    }

    /// The longest line that a terminal in line mode accepts. `None` in other modes and on agentless hosts.
    pub(crate) fn max_line_bytes(&self, tty: &str) -> Option<usize> {
        match self {
            Self::Local(_) => platform::max_line_bytes(Path::new(tty)),
            Self::Remote { .. } => None,
        }
    }

    /// The number of typed bytes that no program has read yet. `None` on agentless hosts.
    pub(crate) fn unread_input(&self, tty: &str) -> Option<u64> {
        match self {
            Self::Local(_) => platform::unread_input(Path::new(tty)),
            Self::Remote { .. } => None,
        }
    }
}

/// The agentless hosts that are currently watched.
#[derive(Default)]
pub(crate) struct AgentlessHostMap {
    /// Weak references, because the watcher of a host owns the host.
    hosts: Mutex<HashMap<TargetName, Weak<AgentlessHost>>>,
}

pub(super) struct AgentlessHost {
    pub(super) shell: HostShell,
    /// Wakes the watcher after an action on this host.
    pub(super) wake: Notify,
    servers: Mutex<BTreeMap<ServerName, (PathBuf, ServerHealth)>>,
}

impl AgentlessHostMap {
    /// Registers a host until the returned value is dropped.
    pub(super) fn watch(&self, target: TargetName, shell: HostShell) -> Arc<AgentlessHost> {
        let host = Arc::new(AgentlessHost { shell, wake: Notify::new(), servers: Mutex::default() });
        let mut hosts = lock(&self.hosts);
        hosts.retain(|_, known| known.strong_count() > 0);
        hosts.insert(target, Arc::downgrade(&host));
        host
    }

    fn host(&self, target: &TargetName) -> Option<Arc<AgentlessHost>> {
        lock(&self.hosts).get(target)?.upgrade()
    }

    /// Access to a server of a watched host.
    pub(crate) fn server_access(&self, key: &ServerKey, timeout: Duration) -> Option<ServerAccess> {
        let host = self.host(&key.target).filter(|host| !host.shell.has_ended())?;
        let socket = lock(&host.servers).get(&key.server).map(|(socket, _)| socket.clone())?;
        // Limit the configured timeout: agtmux notices the loss of a host only when a request to the host times out.
        let timeout = timeout.min(PROGRAM_TIMEOUT);
        let processes = HostProcesses::Remote { shell: host.shell.clone(), timeout };
        Some(ServerAccess { tmux: host.shell.tmux(socket, timeout), processes })
    }

    pub(crate) fn wake(&self, target: &TargetName) {
        if let Some(host) = self.host(target) {
            host.wake.notify_one();
        }
    }

    pub(crate) fn reports(&self) -> Vec<ServerHealth> {
        let hosts: Vec<Arc<AgentlessHost>> = lock(&self.hosts).values().filter_map(Weak::upgrade).collect();
        let reports = |host: &Arc<AgentlessHost>| -> Vec<ServerHealth> {
            lock(&host.servers).values().map(|(_, report)| report.clone()).collect()
        };
        hosts.iter().flat_map(reports).collect()
    }
}

impl AgentlessHost {
    pub(super) fn publish_health(&self, server: &AgentlessServer) {
        let observer = &server.observer;
        let health = observer.health(server.count(), "polling", false);
        lock(&self.servers).insert(observer.key.server.clone(), (observer.socket.clone(), health));
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

    const TIMEOUT: Duration = Duration::from_secs(10);

    /// A shell on this machine that is used as an agentless host.
    async fn there(id_file: &Path) -> HostProcesses {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$1\"; exec sh", "sh"]).arg(id_file);
        let shell = HostShell::open(command, TIMEOUT).await.expect("a shell");
        HostProcesses::Remote { shell, timeout: TIMEOUT }
    }

    #[tokio::test]
    async fn a_host_that_does_not_answer_reports_an_error_instead_of_no_processes() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let id_file = dir.path().join("id");
        let processes = there(&id_file).await;
        let own = std::process::id();
        let found = processes.try_process(own).await.expect("the host answers").expect("this process is listed");
        assert!(processes.try_tree(own).await.expect("the host answers").is_some());
        let id = std::fs::read_to_string(&id_file).expect("the pid file is written");
        let id = rustix::process::Pid::from_raw(id.trim().parse().expect("a pid")).expect("a non-zero pid");
        rustix::process::kill_process(id, rustix::process::Signal::KILL).expect("the shell is a child of this test");
        assert!(processes.try_process(own).await.is_err() && processes.try_tree(own).await.is_err());
        // No process is signalled: the shell is gone.
        assert!(matches!(processes.signal_process(&found, false).await, Err(SignalError::Unknown(_))));
    }
}
