//! What it costs to keep in touch with hosts on which nothing happens.

use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::{Host, Hosts, World, process, wait_until};
use serde_json::Value;

use crate::Plan;
use crate::meter::{self, Who};
use crate::room::binary;

pub(crate) struct Idle {
    pub(crate) what: &'static str,
    pub(crate) targets: usize,
    /// Percent of a core that the hub's daemon used with these targets, and without any.
    pub(crate) cpu: f64,
    pub(crate) cpu_alone: f64,
    /// The ssh processes together.
    pub(crate) ssh_cpu: f64,
    pub(crate) spawned: usize,
}

/// More aliases than hosts: each is a target of its own to the hub.
const HOSTS: usize = 4;

/// With agtmux on the hosts, or with tmux and a shell only.
pub(crate) fn measure(plan: &Plan, bare: bool) -> Idle {
    let hub = World::with_agtmux(binary());
    let reach = Hosts::of(&hub);
    let start = |alias: String| if bare { reach.bare(&alias) } else { reach.with_agtmux(&alias, binary()) };
    let hosts: Vec<Host> = (0..HOSTS).map(|n| start(format!("box{n}"))).collect();
    for host in &hosts {
        host.tmux("default").new_session("work", &host.world().stand_in("claude"));
    }
    let daemon = pid(&hub);
    let rest = || std::thread::sleep(plan.idle);
    let [cpu_alone] = meter::percent([Who::WithChildren(daemon)], rest);
    for n in 0..plan.targets {
        reach.alias(&hosts[n % HOSTS], &format!("idle{n}"));
        let added = hub.agtmux().args(["target", "add", &format!("idle{n}")]).stdout(Stdio::null()).status();
        assert!(added.is_ok_and(|status| status.success()), "it can be reached");
    }
    wait_until("everything to be told", Duration::from_secs(60), || panes(&hub) == plan.targets);
    // What the last of them brought with it is over.
    std::thread::sleep(Duration::from_secs(3));
    let before = process::children(daemon);
    let faults = meter::children_faults(daemon);
    let ssh_before: Duration = before.iter().filter_map(|pid| process::cpu_time(*pid)).sum();
    let [cpu] = meter::percent([Who::WithChildren(daemon)], rest);
    let ssh_after: Duration = before.iter().filter_map(|pid| process::cpu_time(*pid)).sum();
    let after = process::children(daemon);
    let fresh = after.iter().filter(|pid| !before.contains(pid)).count();
    // One that came and went between the looks has left its page faults behind.
    let spawned = fresh + usize::from(meter::children_faults(daemon) > faults);
    let ssh_cpu = (ssh_after.saturating_sub(ssh_before)).as_secs_f64() / plan.idle.as_secs_f64() * 100.0;
    drop(hosts);
    let what = if bare { "idle targets without agtmux" } else { "idle targets" };
    Idle { what, targets: plan.targets, cpu, cpu_alone, ssh_cpu, spawned }
}

fn status(hub: &World, args: &[&str]) -> Value {
    let output = hub.agtmux().args(args).output().expect("it runs");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn pid(hub: &World) -> u32 {
    let started = hub.agtmux().args(["daemon", "start"]).stdout(Stdio::null()).status();
    assert!(started.is_ok_and(|status| status.success()), "the daemon starts");
    let pid = status(hub, &["daemon", "status", "--json"])["pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("pids are small")
}

fn panes(hub: &World) -> usize {
    status(hub, &["list", "panes", "--json"])["items"].as_array().map_or(0, Vec::len)
}
