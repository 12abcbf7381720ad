//! What a hook costs the agent that calls it, beside the least that any program costs.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::puppet::{Puppet, binary};

pub(crate) struct Cost {
    pub(crate) hook: Vec<Duration>,
    pub(crate) hook_cpu: Duration,
    pub(crate) nothing: Vec<Duration>,
    pub(crate) nothing_cpu: Duration,
}

/// In turns, so that both meet the same machine.
pub(crate) fn measure(puppet: &Puppet, times: usize) -> Cost {
    let mut cost =
        Cost { hook: Vec::new(), hook_cpu: Duration::ZERO, nothing: Vec::new(), nothing_cpu: Duration::ZERO };
    for _ in 0..times {
        let mut hook = puppet.world.command(binary());
        hook.args(["hook", "claude", "Notification"]);
        let (wall, cpu) = time(&mut hook);
        cost.hook.push(wall);
        cost.hook_cpu += cpu;
        let (wall, cpu) = time(&mut puppet.world.command("true"));
        cost.nothing.push(wall);
        cost.nothing_cpu += cpu;
    }
    cost
}

fn time(command: &mut Command) -> (Duration, Duration) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (before, begun) = (children(), Instant::now());
    let status = command.status();
    let wall = begun.elapsed();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} works");
    (wall, children() - before)
}

/// The time that ended children have used.
fn children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("always told");
    let span =
        |time: TimeVal| Duration::new(time.tv_sec().unsigned_abs(), u32::try_from(time.tv_usec()).unwrap_or(0) * 1000);
    span(usage.user_time()) + span(usage.system_time())
}
