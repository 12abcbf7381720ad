//! Measures the time and the CPU time that a hook costs the agent. The baseline is the program `true`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agtmux_testkit::TestWorld;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

pub(crate) struct HookCost {
    pub(crate) hook: Vec<Duration>,
    pub(crate) hook_cpu: Duration,
    pub(crate) baseline: Vec<Duration>,
    pub(crate) baseline_cpu: Duration,
}

/// Alternates between the hook and `true`, so that both run under the same load.
pub(crate) fn measure(world: &TestWorld, times: usize) -> HookCost {
    let mut cost =
        HookCost { hook: Vec::new(), hook_cpu: Duration::ZERO, baseline: Vec::new(), baseline_cpu: Duration::ZERO };
    for _ in 0..times {
        let (wall, cpu) = time_command(world.agtmux().args(["hook", "claude", "Notification"]));
        cost.hook.push(wall);
        cost.hook_cpu += cpu;
        let (wall, cpu) = time_command(&mut world.command("true"));
        cost.baseline.push(wall);
        cost.baseline_cpu += cpu;
    }
    cost
}

fn time_command(command: &mut Command) -> (Duration, Duration) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (before, start) = (children_cpu_time(), Instant::now());
    let status = command.status();
    let wall = start.elapsed();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} succeeds");
    (wall, children_cpu_time() - before)
}

/// The CPU time of all reaped children.
fn children_cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage succeeds");
    let span =
        |time: TimeVal| Duration::new(time.tv_sec().unsigned_abs(), u32::try_from(time.tv_usec()).unwrap_or(0) * 1000);
    span(usage.user_time()) + span(usage.system_time())
}
