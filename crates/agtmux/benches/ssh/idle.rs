//! What it costs to keep in touch with hosts on which nothing happens.

use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::{TestHost, TestHosts, TestWorld, process, wait_until};
use serde_json::Value;

use crate::SshBenchPlan;
use crate::meter::{self, Who};
use crate::setup::binary;

pub(crate) struct IdleTargetsCost {
    pub(crate) label: &'static str,
    pub(crate) targets: usize,
    /// Percent of a core that the hub's daemon used with these targets, and without any.
    pub(crate) cpu: f64,
    pub(crate) cpu_without_targets: f64,
    /// The ssh processes together.
    pub(crate) ssh_cpu: f64,
    pub(crate) processes_started: usize,
}

/// More aliases than hosts: each is a target of its own to the hub.
const HOSTS: usize = 4;

/// With agtmux on the hosts, or with tmux and a shell only.
pub(crate) fn measure(plan: &SshBenchPlan, bare: bool) -> IdleTargetsCost {
    let hub = TestWorld::with_agtmux(binary());
    let reach = TestHosts::for_hub(&hub);
    let start = |alias: String| if bare { reach.agentless(&alias) } else { reach.with_agtmux(&alias, binary()) };
    let hosts: Vec<TestHost> = (0..HOSTS).map(|n| start(format!("box{n}"))).collect();
    for host in &hosts {
        host.tmux("default").new_session("work", &host.world().fake_agent_command("claude"));
    }
    let daemon = start_daemon(&hub);
    let rest = || std::thread::sleep(plan.idle);
    let [cpu_alone] = meter::percent([Who::WithChildren(daemon)], rest);
    for n in 0..plan.targets {
        reach.alias(&hosts[n % HOSTS], &format!("idle{n}"));
        let added = hub.agtmux().args(["target", "add", &format!("idle{n}")]).stdout(Stdio::null()).status();
        assert!(added.is_ok_and(|status| status.success()), "it can be reached");
    }
    wait_until("everything to be told", Duration::from_secs(60), || pane_count(&hub) == plan.targets);
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
    IdleTargetsCost {
        label: what,
        targets: plan.targets,
        cpu,
        cpu_without_targets: cpu_alone,
        ssh_cpu,
        processes_started: spawned,
    }
}

fn run_json(hub: &TestWorld, args: &[&str]) -> Value {
    let output = hub.agtmux().args(args).output().expect("it runs");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn start_daemon(hub: &TestWorld) -> u32 {
    let started = hub.agtmux().args(["daemon", "start"]).stdout(Stdio::null()).status();
    assert!(started.is_ok_and(|status| status.success()), "the daemon starts");
    let pid = run_json(hub, &["daemon", "status", "--json"])["pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("pids are small")
}

fn pane_count(hub: &TestWorld) -> usize {
    run_json(hub, &["list", "panes", "--json"])["items"].as_array().map_or(0, Vec::len)
}
