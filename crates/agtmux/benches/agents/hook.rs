//! What a hook costs the agent that calls it, beside the least that any program costs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::scripted_agent::{BenchAgent, binary};

pub(crate) struct HookCost {
    pub(crate) hook: Vec<Duration>,
    pub(crate) hook_cpu: Duration,
    pub(crate) baseline: Vec<Duration>,
    pub(crate) baseline_cpu: Duration,
}

/// In turns, so that both meet the same machine.
pub(crate) fn measure(puppet: &BenchAgent, times: usize) -> HookCost {
    let mut cost =
        HookCost { hook: Vec::new(), hook_cpu: Duration::ZERO, baseline: Vec::new(), baseline_cpu: Duration::ZERO };
    for _ in 0..times {
        let mut hook = puppet.world.command(binary());
        hook.args(["hook", "claude", "Notification"]);
        let (wall, cpu) = time_command(&mut hook);
        cost.hook.push(wall);
        cost.hook_cpu += cpu;
        let (wall, cpu) = time_command(&mut puppet.world.command("true"));
        cost.baseline.push(wall);
        cost.baseline_cpu += cpu;
    }
    cost
}

fn time_command(command: &mut Command) -> (Duration, Duration) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (before, begun) = (children_cpu_time(), Instant::now());
    let status = command.status();
    let wall = begun.elapsed();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} works");
    (wall, children_cpu_time() - before)
}

/// The time that ended children have used.
fn children_cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("always told");
    let span =
        |time: TimeVal| Duration::new(time.tv_sec().unsigned_abs(), u32::try_from(time.tv_usec()).unwrap_or(0) * 1000);
    span(usage.user_time()) + span(usage.system_time())
}
