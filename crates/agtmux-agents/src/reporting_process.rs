//! Finds the process of an agent that has sent an event. Used if no manifest recognises the agent in the process table.

use crate::command_line::is_shell;
use crate::foreground::job_positions;
use crate::process::ProcessFacts;

/// The pid of the agent that sent an event. This is the outermost process among the senders that belongs to the
/// foreground job and is not a shell.
///
/// `processes` are all processes of the pane, parents before children. `senders` are the pids of the process that sent
/// the event and of its ancestors.
pub fn reporting_process(processes: &[ProcessFacts<'_>], foreground: Option<u32>, senders: &[u32]) -> Option<u32> {
    let positions = job_positions(processes, foreground);
    let fits = |process: &ProcessFacts<'_>| senders.contains(&process.pid) && !process.zombie && !is_shell(process);
    let shown = processes.iter().zip(positions).filter(|(process, at)| at.in_foreground && fits(process));
    shown.min_by_key(|(_, position)| position.depth).map(|(process, _)| process.pid)
}

/// Whether the process with this pid is suspended. None if the pane does not show the process, because the process has
/// ended, has become a shell, or runs in the background.
pub fn is_shown_suspended(processes: &[ProcessFacts<'_>], foreground: Option<u32>, pid: u32) -> Option<bool> {
    let at = processes.iter().position(|process| process.pid == pid)?;
    let process = &processes[at];
    if process.zombie || is_shell(process) {
        return None;
    }
    (process.stopped || job_positions(processes, foreground)[at].in_foreground).then_some(process.stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, ppid: u32, pgrp: u32, exe: &str) -> ProcessFacts<'_> {
        let exe = Some(std::path::Path::new(exe));
        ProcessFacts { pid, ppid, pgrp, tpgid: None, stopped: false, zombie: false, name: b"", argv: &[], exe }
    }

    /// A pane with a shell, an agent in the foreground with a helper and a hook, and a job in the background.
    fn pane() -> Vec<ProcessFacts<'static>> {
        vec![
            process(10, 1, 10, "/bin/bash"),
            process(20, 10, 20, "/bin/foo"),
            process(21, 20, 20, "/bin/node"),
            process(22, 21, 20, "/bin/sh"),
            process(23, 22, 20, "/bin/agtmux"),
            process(30, 10, 30, "/bin/bar"),
        ]
    }

    #[test]
    fn the_outermost_process_of_the_foreground_job_that_is_no_shell_reports() {
        assert_eq!(reporting_process(&pane(), Some(20), &[22, 21, 20, 10]), Some(20));
        assert_eq!(reporting_process(&pane(), Some(20), &[22, 21]), Some(21), "only senders count");
        assert_eq!(reporting_process(&pane(), Some(20), &[22, 10]), None, "shells do not count");
        assert_eq!(reporting_process(&pane(), Some(20), &[30, 10]), None, "the background does not count");
        assert_eq!(reporting_process(&pane(), Some(20), &[99]), None, "a process outside the pane does not count");
    }

    #[test]
    fn a_process_is_shown_in_the_foreground_or_suspended() {
        let mut processes = pane();
        assert_eq!(is_shown_suspended(&processes, Some(20), 20), Some(false));
        assert_eq!(is_shown_suspended(&processes, Some(10), 20), None, "it runs in the background");
        processes[1].stopped = true;
        assert_eq!(is_shown_suspended(&processes, Some(10), 20), Some(true));
        processes[1].exe = Some(std::path::Path::new("/bin/zsh"));
        assert_eq!(is_shown_suspended(&processes, Some(20), 20), None, "it has become a shell");
        assert_eq!(is_shown_suspended(&processes, Some(20), 40), None);
    }
}
