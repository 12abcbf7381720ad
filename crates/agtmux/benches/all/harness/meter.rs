//! Reads CPU time from the kernel.

use std::fs;
use std::time::{Duration, Instant};

use agtmux_testkit::process;

/// The processes whose CPU time is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CpuScope {
    Alone(u32),
    /// The process with its reaped children.
    WithChildren(u32),
}

impl CpuScope {
    fn used(self) -> Duration {
        match self {
            Self::Alone(pid) => own_time(pid),
            Self::WithChildren(pid) => own_time(pid) + children_time(pid),
        }
    }
}

/// The CPU use of each scope while `during` runs, in percent of one core.
pub(crate) fn percent<const N: usize>(scopes: [CpuScope; N], during: impl FnOnce()) -> [f64; N] {
    let (start, before) = (Instant::now(), scopes.map(CpuScope::used));
    during();
    let (took, after) = (start.elapsed(), scopes.map(CpuScope::used));
    std::array::from_fn(|n| (after[n].saturating_sub(before[n])).as_secs_f64() / took.as_secs_f64() * 100.0)
}

/// The CPU time of the process itself. It is read from `schedstat`, which counts nanoseconds, because `stat` counts
/// ticks of 10 ms.
fn own_time(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let schedstat = fs::read_to_string(task.path().join("schedstat")).ok()?;
        schedstat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn children_time(pid: u32) -> Duration {
    let with = process::cpu_time_with_children(pid).unwrap_or_default();
    with.saturating_sub(process::cpu_time(pid).unwrap_or_default())
}

/// The page faults of all child processes that have ended. While this number is unchanged, no further child has ended.
pub(crate) fn children_faults(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(8).and_then(|field| field.parse().ok()).unwrap_or(0)
}
