//! Finds the agent behind a process in a shared terminal.
//!
//! A command of an agent runs below the shell of the terminal, not below the agent. From the first such command on,
//! every process that the shell starts counts as started by the agent. The command may change the shell so that it acts
//! later, and no mark in the terminal proves that a command has ended. Without this rule, an agent could approve its
//! own dialogs from a shared terminal.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agtmux_api::mirror_files::MirrorExecRecord;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use jiff::{SignedDuration, Timestamp};

use super::Actions;
use super::origin::to_timestamp;

/// A tolerance for comparing start times, because the kernel reports them in steps of 10 ms.
const CLOCK_STEP: SignedDuration = SignedDuration::from_millis(20);

/// The shells in which commands of agents ran, by process id and start time.
#[derive(Debug, Default)]
pub(super) struct AgentShells(Mutex<HashMap<(u32, u64), AgentShell>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct AgentShell {
    agent: String,
    /// When the first command of an agent was typed into this shell.
    since: Timestamp,
}

impl AgentShells {
    fn insert(&self, shell: (u32, u64), record: &MirrorExecRecord, since: Timestamp) {
        record.agent.iter().for_each(|agent| self.insert_agent(shell, agent, since));
    }

    fn insert_agent(&self, shell: (u32, u64), agent: &str, since: Timestamp) {
        let agent = agent.to_owned();
        let mut shells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shells.entry(shell).or_insert(AgentShell { agent, since });
    }

    /// The agent that may have started this process. `ancestry` begins with the process itself.
    pub(super) fn agent_behind(&self, processes: &dyn ProcessTable, ancestry: &[ProcessInfo]) -> Option<String> {
        let shells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shell_of = |process: &ProcessInfo| shells.get(&(process.pid, process.start));
        let (at, shell) = ancestry.iter().enumerate().find_map(|(at, process)| Some((at, shell_of(process)?)))?;
        let is_older = |job: &ProcessInfo| {
            let started = processes.started_at(job.pid).and_then(to_timestamp);
            started.is_some_and(|started| started + CLOCK_STEP < shell.since)
        };
        let is_job_of_person = at.checked_sub(1).is_some_and(|below| is_older(&ancestry[below]));
        (!is_job_of_person).then(|| shell.agent.clone())
    }
}

impl Actions {
    /// Notes that an agent sent a command to this shell. Every process that the shell starts from now on counts as a
    /// process of that agent.
    pub(crate) fn begin_mirror_exec(&self, shell: Option<(u32, u64)>, record: &MirrorExecRecord) {
        shell.into_iter().for_each(|shell| self.0.agent_shells.insert(shell, record, record.typed_at));
    }

    /// Notes a command that an agent sent to an earlier daemon. This daemon may not know of commands that agents sent
    /// even earlier, so all processes of the shell count as processes of the agent.
    pub(crate) fn remember_mirror_exec(&self, shell: Option<(u32, u64)>, record: &MirrorExecRecord) {
        shell.into_iter().for_each(|shell| self.0.agent_shells.insert(shell, record, Timestamp::MIN));
    }

    /// Notes a shell that an agent used with an earlier daemon. All processes of the shell count as processes of the
    /// agent.
    pub(crate) fn remember_agent_shell(&self, shell: (u32, u64), agent: &str) {
        self.0.agent_shells.insert_agent(shell, agent, Timestamp::MIN);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use agtmux_tmux::platform::PaneProcesses;

    use super::*;
    use crate::actions::ancestry::test_process;

    /// A process table that contains the start time of each process, in seconds.
    struct Started(HashMap<u32, u64>);

    impl ProcessTable for Started {
        fn foreground_pgrp(&self, _: u32) -> Option<u32> {
            None
        }

        fn start_time(&self, _: u32) -> Option<u64> {
            None
        }

        fn trees(&self, roots: &[u32]) -> std::io::Result<Vec<Option<PaneProcesses>>> {
            Ok(vec![None; roots.len()])
        }

        fn is_stopped(&self, _: u32) -> bool {
            false
        }

        fn started_at(&self, pid: u32) -> Option<SystemTime> {
            Some(UNIX_EPOCH + Duration::from_secs(*self.0.get(&pid)?))
        }
    }

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).expect("a time")
    }

    fn record(agent: Option<&str>, from: i64) -> MirrorExecRecord {
        MirrorExecRecord {
            exec: format!("e{from}"),
            command: "x".into(),
            cwd: None,
            agent: agent.map(str::to_owned),
            typed_at: second(from),
            deadline: second(from + 9),
        }
    }

    #[test]
    fn what_a_shell_starts_after_the_first_command_of_an_agent_belongs_to_the_agent() {
        let (shells, shell) = (AgentShells::default(), (50, 7));
        let chain = |job: u32| {
            [test_process(99, job, 20, "agtmux"), test_process(job, 50, 10, "sh"), test_process(50, 1, 7, "bash")]
        };
        let table = Started(HashMap::from([(60, 5), (61, 11), (62, 15)]));
        let agent = |job| shells.agent_behind(&table, &chain(job));
        assert_eq!(agent(61), None, "no agent has used the shell");
        shells.insert(shell, &record(Some("claude"), 10), second(10));
        shells.insert(shell, &record(Some("claude"), 14), second(14));
        assert_eq!(agent(60), None, "started by the person before");
        for job in [61, 62, 63] {
            assert_eq!(agent(job).as_deref(), Some("claude"), "job {job}");
        }
        let of_shell = |pid| shells.agent_behind(&table, &[test_process(pid, 1, 7, "bash")]);
        assert_eq!(of_shell(50).as_deref(), Some("claude"), "the shell itself connects");
        assert_eq!(of_shell(51), None, "another shell");
    }

    #[test]
    fn every_process_of_a_shell_that_an_earlier_daemon_knew_belongs_to_the_agent() {
        let (shells, table) = (AgentShells::default(), Started(HashMap::from([(60, 5)])));
        shells.insert_agent((50, 7), "claude", Timestamp::MIN);
        let chain = [test_process(60, 50, 10, "sh"), test_process(50, 1, 7, "bash")];
        assert_eq!(shells.agent_behind(&table, &chain).as_deref(), Some("claude"));
    }

    #[test]
    fn a_command_of_a_person_is_no_command_of_an_agent() {
        let shells = AgentShells::default();
        shells.insert((50, 7), &record(None, 10), second(10));
        assert_eq!(shells.agent_behind(&Started(HashMap::new()), &[test_process(50, 1, 7, "bash")]), None);
    }
}
