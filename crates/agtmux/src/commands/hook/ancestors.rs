//! The processes above this one: one of them is the agent.

use std::fs;
use std::os::unix::process::parent_id;
use std::process::{Command, Stdio};

const MOST: usize = 32;
const INIT: u32 = 1;

/// The nearest first, without init.
pub(super) fn of_this_process() -> Vec<u32> {
    let first = parent_id();
    let chain = climb(first, parent_in_proc);
    if chain.len() == 1 && parent_in_proc(first).is_none() { from_ps(first) } else { chain }
}

fn climb(first: u32, parent: impl Fn(u32) -> Option<u32>) -> Vec<u32> {
    let above = std::iter::successors(Some(first), |pid| parent(*pid));
    above.take_while(|pid| *pid > INIT).take(MOST).collect()
}

fn parent_in_proc(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses and blanks.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Where there is no /proc. One process for the whole table.
fn from_ps(first: u32) -> Vec<u32> {
    let ps = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let table = ps.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split_ascii_whitespace().map(str::parse::<u32>);
        Some((words.next()?.ok()?, words.next()?.ok()?))
    };
    let parents: std::collections::HashMap<u32, u32> = table.lines().filter_map(row).collect();
    climb(first, |pid| parents.get(&pid).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_climb_the_same_tree() {
        let chain = of_this_process();
        assert_eq!(chain.first(), Some(&parent_id()));
        assert_eq!(from_ps(parent_id()), chain);
        assert!(!chain.contains(&INIT));
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(climb(5, Some).len(), MOST);
    }
}
