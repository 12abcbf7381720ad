//! Finds the agent behind a process in a shared terminal.
//!
//! A command of an agent runs below the shell of the terminal, not below the agent. What it starts counts as started by
//! the agent, also background jobs that it leaves behind. Otherwise an agent could approve its own dialogs there.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agtmux_api::mirror_files::MirrorExecRecord;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};
use jiff::{SignedDuration, Timestamp};

use super::Actions;
use super::origin::to_timestamp;

/// The kernel reports start times in steps of 10 ms.
const CLOCK_STEP: SignedDuration = SignedDuration::from_millis(20);
/// When a shell has more commands of agents than this, the two oldest become one.
const MAX_TIMES: usize = 10_000;

/// The times in which commands of agents ran, by shell.
#[derive(Debug, Default)]
pub(super) struct MirrorExecTimes(Mutex<HashMap<(u32, u64), Vec<ExecTime>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ExecTime {
    exec: String,
    agent: String,
    from: Timestamp,
    /// `None` while the command runs.
    to: Option<Timestamp>,
}

impl ExecTime {
    fn contains(&self, at: Timestamp) -> bool {
        at >= self.from - CLOCK_STEP && self.to.is_none_or(|to| at <= to + CLOCK_STEP)
    }
}

impl MirrorExecTimes {
    fn begin(&self, shell: (u32, u64), record: &MirrorExecRecord) {
        let Some(agent) = record.agent.clone() else { return };
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = times.entry(shell).or_default();
        times.push(ExecTime { exec: record.exec.clone(), agent, from: record.typed_at, to: None });
        if times.len() > MAX_TIMES {
            let oldest = times.remove(0);
            times[0].from = oldest.from;
        }
    }

    fn end(&self, shell: (u32, u64), exec: &str, at: Timestamp) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = times.get_mut(&shell).into_iter().flatten();
        times.filter(|time| time.exec == exec && time.to.is_none()).for_each(|time| time.to = Some(at));
    }

    /// The agent whose command started this process or one of its ancestors. `ancestry` begins with the process itself.
    pub(super) fn agent_behind(&self, processes: &dyn ProcessTable, ancestry: &[ProcessInfo]) -> Option<String> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, times) = ancestry
            .iter()
            .enumerate()
            .find_map(|(at, process)| Some((at, times.get(&(process.pid, process.start))?)))?;
        let found = match at.checked_sub(1).map(|below| &ancestry[below]) {
            // The shell itself is the caller.
            None => times.iter().find(|time| time.to.is_none()),
            Some(job) => match processes.started_at(job.pid).and_then(to_timestamp) {
                Some(started) => times.iter().find(|time| time.contains(started)),
                // Without its start time the job may belong to any command.
                None => times.last(),
            },
        };
        found.map(|time| time.agent.clone())
    }
}

impl Actions {
    /// From now on, processes that the shell starts count as processes of the agent of this request.
    pub(crate) fn begin_mirror_exec(&self, shell: Option<(u32, u64)>, record: &MirrorExecRecord) {
        shell.into_iter().for_each(|shell| self.0.mirror_execs.begin(shell, record));
    }

    pub(crate) fn end_mirror_exec(&self, shell: Option<(u32, u64)>, exec: &str) {
        self.end_mirror_exec_at(shell, exec, Timestamp::now());
    }

    pub(crate) fn end_mirror_exec_at(&self, shell: Option<(u32, u64)>, exec: &str, at: Timestamp) {
        shell.into_iter().for_each(|shell| self.0.mirror_execs.end(shell, exec, at));
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use agtmux_tmux::platform::PaneProcesses;

    use super::*;
    use crate::actions::ancestry::test_process;

    /// Processes that started at these seconds.
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
    fn jobs_of_a_command_belong_to_its_agent_also_after_its_end() {
        let (times, shell) = (MirrorExecTimes::default(), (50, 7));
        let chain = |job: u32| {
            [test_process(99, job, 20, "agtmux"), test_process(job, 50, 10, "sh"), test_process(50, 1, 7, "bash")]
        };
        let table = Started(HashMap::from([(60, 5), (61, 11), (62, 15), (63, 21)]));
        let agent = |job| times.agent_behind(&table, &chain(job));
        times.begin(shell, &record(Some("claude"), 10));
        times.end(shell, "e10", second(12));
        assert_eq!(agent(60), None, "started by the person before");
        assert_eq!(agent(61).as_deref(), Some("claude"), "left behind");
        assert_eq!(agent(62), None, "started by the person after");
        times.begin(shell, &record(Some("claude"), 20));
        assert_eq!(agent(63).as_deref(), Some("claude"), "the command runs");
        assert_eq!(agent(62), None, "a job of the person keeps running");
        let of_shell = |pid| times.agent_behind(&table, &[test_process(pid, 1, 7, "bash")]);
        assert_eq!(of_shell(50).as_deref(), Some("claude"), "the shell itself connects");
        assert_eq!(of_shell(51), None, "another shell");
        times.end(shell, "e20", second(22));
        assert_eq!(of_shell(50), None);
    }

    #[test]
    fn a_command_of_a_person_is_no_command_of_an_agent() {
        let times = MirrorExecTimes::default();
        times.begin((50, 7), &record(None, 10));
        assert_eq!(times.agent_behind(&Started(HashMap::new()), &[test_process(50, 1, 7, "bash")]), None);
    }
}
