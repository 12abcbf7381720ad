//! The ancestors of this process. One of them is the agent.

use std::fs;
use std::os::unix::process::parent_id;
use std::process::{Command, Stdio};

const MAX_DEPTH: usize = 32;
const INIT: u32 = 1;

/// An ancestor and its start time in clock ticks since boot, the unit that the daemon uses. `start` is `None` if the
/// system does not report the start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ancestor {
    pub(super) pid: u32,
    pub(super) start: Option<u64>,
}

/// The parent of a process, and the start time of the process.
type ParentRow = (u32, Option<u64>);

/// The ancestors of this process except init, the nearest first.
pub(super) fn of_this_process() -> Vec<Ancestor> {
    let first = parent_id();
    let chain = collect_ancestors(first, read_proc);
    if chain.len() == 1 && chain[0].start.is_none() { from_ps(first) } else { chain }
}

fn collect_ancestors(first: u32, look: impl Fn(u32) -> Option<ParentRow>) -> Vec<Ancestor> {
    let mut chain = Vec::new();
    let mut next = Some(first);
    while let Some(pid) = next.filter(|pid| *pid > INIT && chain.len() < MAX_DEPTH) {
        let row = look(pid);
        chain.push(Ancestor { pid, start: row.and_then(|(_, start)| start) });
        next = row.map(|(parent, _)| parent);
    }
    chain
}

fn read_proc(pid: u32) -> Option<ParentRow> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain parentheses and spaces.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut words = std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace();
    Some((words.nth(1)?.parse().ok()?, words.nth(17)?.parse().ok()))
}

/// Finds the ancestors on systems without /proc. Calls ps once for all processes.
fn from_ps(first: u32) -> Vec<Ancestor> {
    let ps = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let table = ps.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<u32>);
        Some((words.next()?.ok()?, (words.next()?.ok()?, None)))
    };
    let rows: std::collections::HashMap<u32, ParentRow> = table.lines().filter_map(row).collect();
    collect_ancestors(first, |pid| rows.get(&pid).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pids(chain: &[Ancestor]) -> Vec<u32> {
        chain.iter().map(|ancestor| ancestor.pid).collect()
    }

    #[test]
    fn proc_and_ps_give_the_same_ancestors() {
        let chain = of_this_process();
        assert_eq!(chain.first().map(|ancestor| ancestor.pid), Some(parent_id()));
        assert_eq!(pids(&from_ps(parent_id())), pids(&chain));
        assert!(!pids(&chain).contains(&INIT));
    }

    #[test]
    fn a_cycle_ends_at_the_maximum_depth() {
        assert_eq!(collect_ancestors(5, |pid| Some((pid, None))).len(), MAX_DEPTH);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn start_times_match_the_process_table() {
        let processes = agtmux_tmux::platform::process_table(false);
        for ancestor in of_this_process() {
            assert_eq!(ancestor.start, processes.start_time(ancestor.pid), "{ancestor:?}");
        }
    }
}
