//! Decides whether an agent is behind a process.
//!
//! The environment of a process can show that an agent is behind the process, but never that no agent is: a process can
//! set its own environment, but not its ancestors, its start time and its control group.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{PaneId, SessionId};
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use jiff::Timestamp;

use super::ancestry::{MAX_ANCESTORS, agent_among, own_chain, try_ancestors};
use super::{Actions, desktop};
use crate::engine::LocalAgents;
use crate::store::past_runtimes;

/// Whether an agent is behind a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallerOrigin {
    /// No agent started the caller.
    NotAgent,
    Agent(String),
    /// An agent may have started the caller, but agtmux cannot be sure.
    Unknown(UnknownOrigin),
}

/// Why an agent may be behind a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownOrigin {
    Ended,
    Unreadable,
    NotInspectable(u32),
    TaskFilesGone,
    TaskOfUnknown,
    UnvisitedPane(PaneId),
    ServerJob,
    Detached,
    GitOfDaemon,
}

impl fmt::Display for UnknownOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the caller ended before it could be checked"),
            Self::Unreadable => f.write_str("the process table cannot be read at the moment"),
            Self::NotInspectable(pid) => write!(f, "agtmux is not allowed to inspect process {pid}"),
            Self::TaskFilesGone => f.write_str("the caller runs in a task whose files are gone"),
            Self::TaskOfUnknown => f.write_str("the caller runs in a task that an agent may have started"),
            Self::UnvisitedPane(pane) => {
                write!(
                    f,
                    "pane {pane} was created while an agent was running, and you have not typed in that pane since"
                )
            }
            Self::ServerJob => f.write_str("tmux started the caller outside a pane while an agent ran"),
            Self::Detached => f.write_str("the caller has no parent process and was started while an agent ran"),
            Self::GitOfDaemon => {
                f.write_str("git started the caller, for example as a filter that the settings of a repository name")
            }
        }
    }
}

impl UnknownOrigin {
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::UnvisitedPane(_) => {
                "show the pane in your tmux client, press a key in the pane and repeat the command; or set \
                 actions.allow_from_unknown in the configuration"
            }
            Self::ServerJob => {
                "answer in the interface, in a popup that a key opens (`exec agtmux`, see docs/tmux.md); or run the \
                 command in a shell of your own, or set actions.allow_from_unknown in the configuration"
            }
            _ => "run the command in a shell of your own, or set actions.allow_from_unknown in the configuration",
        }
    }
}

/// A pane that contains a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainingPane {
    pub(crate) key: PaneKey,
    /// The sessions that show the pane.
    pub(crate) sessions: Vec<SessionId>,
}

impl Actions {
    pub(super) async fn origin_of_process(&self, pid: u32) -> CallerOrigin {
        let processes = self.0.discovery.processes();
        match self.origin_in_table(&*processes, pid).await {
            // `NotAgent` proves nothing if the process table was unreadable during the check. agtmux reads the table
            // again to find out.
            CallerOrigin::NotAgent if try_ancestors(&*processes, pid).is_err() => {
                CallerOrigin::Unknown(UnknownOrigin::Unreadable)
            }
            origin => origin,
        }
    }

    async fn origin_in_table(&self, processes: &dyn ProcessTable, pid: u32) -> CallerOrigin {
        let Ok(ancestry) = try_ancestors(processes, pid) else {
            return CallerOrigin::Unknown(UnknownOrigin::Unreadable);
        };
        let Some(caller) = ancestry.first().filter(|_| ancestry.len() < MAX_ANCESTORS) else {
            return CallerOrigin::Unknown(UnknownOrigin::Ended);
        };
        if let Some(found) = agent_among(&self.0.discovery.registry(), &ancestry) {
            return CallerOrigin::Agent(found);
        }
        if is_below_own_git(&ancestry, std::process::id()) {
            return CallerOrigin::Unknown(UnknownOrigin::GitOfDaemon);
        }
        if !processes.is_inspectable(pid) && !is_started_by_other_user(processes, caller) {
            return CallerOrigin::Unknown(UnknownOrigin::NotInspectable(pid));
        }
        if let Some(origin) = self.origin_of_tasks(processes, &ancestry) {
            return origin;
        }
        if let Some(agent) = self.0.agent_shells.agent_behind(processes, &ancestry) {
            return CallerOrigin::Agent(agent);
        }
        if let Some(agent) = self.agent_of_caller_pane(processes, &ancestry).await {
            return CallerOrigin::Agent(agent);
        }
        self.origin_by_age(processes, &ancestry).await
    }

    /// Decides the origin of a process that has no agent among its ancestors. An agent may have started the process all
    /// the same: through tmux, or as an orphan.
    async fn origin_by_age(&self, processes: &dyn ProcessTable, ancestry: &[ProcessInfo]) -> CallerOrigin {
        let pids: Vec<u32> = ancestry.iter().map(|process| process.pid).collect();
        let agents = self.0.engine.local_agents(pids).await;
        match agents.server_at.filter(|at| *at > 0) {
            Some(at) => self.origin_in_server(processes, &ancestry[..at], &agents).await,
            None => self.origin_outside_tmux(processes, own_chain(ancestry), &agents).await,
        }
    }

    /// The origin of a process below a tmux server. The last process in the chain is the one that the server itself
    /// started.
    async fn origin_in_server(
        &self,
        processes: &dyn ProcessTable,
        chain: &[ProcessInfo],
        agents: &LocalAgents,
    ) -> CallerOrigin {
        let Some(first) = chain.last() else { return CallerOrigin::Unknown(UnknownOrigin::Ended) };
        if !self.started_while_an_agent_ran(processes, first, agents).await || self.is_task_of_a_person(first).await {
            return CallerOrigin::NotAgent;
        }
        match &agents.pane {
            Some(pane) if self.is_visited(processes, first, pane).await => CallerOrigin::NotAgent,
            Some(pane) => CallerOrigin::Unknown(UnknownOrigin::UnvisitedPane(pane.key.pane)),
            None => match (chain, &agents.server) {
                ([interface], Some(server)) if self.is_popup_of_a_person(processes, interface, server).await => {
                    CallerOrigin::NotAgent
                }
                _ => CallerOrigin::Unknown(UnknownOrigin::ServerJob),
            },
        }
    }

    /// The origin of a process outside every tmux server. `chain` contains the process and its ancestors. The last
    /// process in the chain has no known parent.
    pub(super) async fn origin_outside_tmux(
        &self,
        processes: &dyn ProcessTable,
        chain: &[ProcessInfo],
        agents: &LocalAgents,
    ) -> CallerOrigin {
        let Some(top) = chain.last() else { return CallerOrigin::Unknown(UnknownOrigin::Ended) };
        // A process with parent 0 was started from outside the container.
        let is_entered = top.ppid == 0;
        if is_entered
            || is_below_other_user(processes, chain)
            || !self.started_while_an_agent_ran(processes, top, agents).await
        {
            return CallerOrigin::NotAgent;
        }
        let own_uid = rustix::process::geteuid().as_raw();
        match desktop::has_own_group(processes, top, &agents.pids) || desktop::is_desktop_program(top, own_uid) {
            true => CallerOrigin::NotAgent,
            false => CallerOrigin::Unknown(UnknownOrigin::Detached),
        }
    }

    /// Whether an agent already ran when this process started. In that case the agent may have started the process.
    pub(super) async fn started_while_an_agent_ran(
        &self,
        processes: &dyn ProcessTable,
        process: &ProcessInfo,
        agents: &LocalAgents,
    ) -> bool {
        if agents.agents.iter().any(|agent| agent.start < process.start) {
            return true;
        }
        let Some(at) = processes.started_at(process.pid).and_then(to_timestamp) else {
            return processes.reports_details();
        };
        // If the store cannot be read, assume that an agent ran.
        self.0.store.read(move |connection| past_runtimes::agent_ran_at(connection, at)).await.unwrap_or(true)
    }
}

/// Whether a git process that the daemon started is in the chain. git runs filters and hooks of repositories, and agents
/// can change those.
fn is_below_own_git(ancestry: &[ProcessInfo], daemon: u32) -> bool {
    ancestry.windows(2).any(|pair| pair[1].pid == daemon && pair[0].name == b"git")
}

/// Whether a process in the chain belongs to another user, for example to root in the chain of a login. Also true on a
/// system that does not report the users of processes, because the answer is unknown there.
fn is_below_other_user(processes: &dyn ProcessTable, chain: &[ProcessInfo]) -> bool {
    let own = rustix::process::geteuid().as_raw();
    !processes.reports_details() || chain.iter().any(|process| processes.uid(process.pid).is_some_and(|uid| uid != own))
}

/// Whether the parent of this process belongs to another user. An agent cannot start a process as the child of another
/// user's process. A login is an example: agtmux cannot inspect the process that sshd runs for the login, because that
/// process has changed its user.
fn is_started_by_other_user(processes: &dyn ProcessTable, process: &ProcessInfo) -> bool {
    process.ppid > 1 && processes.uid(process.ppid).is_some_and(|uid| uid != rustix::process::geteuid().as_raw())
}

pub(super) fn to_timestamp(time: SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Timestamp::from_microsecond(i64::try_from(since.as_micros()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::actions::ancestry::{TestTable, test_process};

    #[test]
    fn a_login_of_another_user_is_recognized() {
        let own = rustix::process::geteuid().as_raw();
        let chain = [test_process(90, 80, 5, "agtmux"), test_process(80, 70, 4, "sh"), test_process(70, 1, 3, "login")];
        let table = |login| {
            let uids = HashMap::from([(90, own), (80, own), (70, login)]);
            TestTable { uids, ..TestTable::default() }
        };
        assert!(is_below_other_user(&table(own + 1), &chain));
        assert!(!is_below_other_user(&table(own), &chain));
        assert!(!is_below_other_user(&TestTable::default(), &chain), "no user could be read");
        let without_details = TestTable { has_no_details: true, ..TestTable::default() };
        assert!(is_below_other_user(&without_details, &chain), "this system does not report users");
    }

    #[test]
    fn only_the_git_of_the_daemon_makes_a_caller_unknown() {
        let chain = |second: &str| {
            [
                test_process(90, 80, 9, "agtmux"),
                test_process(80, 70, 8, "sh"),
                test_process(70, 60, 7, second),
                test_process(60, 1, 1, "agtmux"),
            ]
        };
        assert!(is_below_own_git(&chain("git"), 60));
        assert!(!is_below_own_git(&chain("git"), 61), "the git of a person");
        assert!(!is_below_own_git(&chain("on-event"), 60), "a program that the settings of the daemon name");
    }

    #[test]
    fn a_hidden_process_is_accepted_only_below_a_process_of_another_user() {
        let own = rustix::process::geteuid().as_raw();
        let processes =
            TestTable { uids: HashMap::from([(1, own + 1), (70, own + 1), (80, own)]), ..TestTable::default() };
        let started_by = |ppid| is_started_by_other_user(&processes, &test_process(90, ppid, 5, "sshd"));
        assert!(started_by(70), "sshd of a login");
        for (ppid, why) in [(80, "an own process"), (1, "an orphan"), (60, "an unknown parent")] {
            assert!(!started_by(ppid), "{why}");
        }
    }
}
