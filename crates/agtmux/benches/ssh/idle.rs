//! Measures the cost of connections to idle hosts.

use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::{TestHost, TestHosts, TestWorld, process, wait_until};
use serde_json::Value;

use crate::SshBenchPlan;
use crate::meter::{self, CpuScope};
use crate::setup::binary;

pub(crate) struct IdleTargetsCost {
    pub(crate) label: &'static str,
    pub(crate) targets: usize,
    /// CPU use of the hub's daemon in percent of one core, with these targets and without any.
    pub(crate) cpu: f64,
    pub(crate) cpu_without_targets: f64,
    /// CPU use of all ssh processes together.
    pub(crate) ssh_cpu: f64,
    pub(crate) processes_started: usize,
}

/// Fewer hosts than targets: the hub treats each alias as its own target.
const HOSTS: usize = 4;

/// Measures idle hosts with agtmux, or idle agentless hosts (tmux and a shell only).
pub(crate) fn measure(plan: &SshBenchPlan, agentless: bool) -> IdleTargetsCost {
    let hub = TestWorld::with_agtmux(binary());
    let hosts_of_hub = TestHosts::for_hub(&hub);
    let start = |alias: String| {
        if agentless { hosts_of_hub.agentless(&alias) } else { hosts_of_hub.with_agtmux(&alias, binary()) }
    };
    let hosts: Vec<TestHost> = (0..HOSTS).map(|n| start(format!("box{n}"))).collect();
    for host in &hosts {
        host.tmux("default").new_session("work", &host.world().fake_agent_command("claude"));
    }
    let daemon = start_daemon(&hub);
    let rest = || std::thread::sleep(plan.idle);
    let [cpu_without_targets] = meter::percent([CpuScope::WithChildren(daemon)], rest);
    for n in 0..plan.targets {
        hosts_of_hub.alias(&hosts[n % HOSTS], &format!("idle{n}"));
        let added = hub.agtmux().args(["target", "add", &format!("idle{n}")]).stdout(Stdio::null()).status();
        assert!(added.is_ok_and(|status| status.success()), "the target can be reached");
    }
    wait_until("all panes to be listed", Duration::from_secs(60), || pane_count(&hub) == plan.targets);
    // Wait until the work caused by the last target is done.
    std::thread::sleep(Duration::from_secs(3));
    let before = process::children(daemon);
    let faults = meter::children_faults(daemon);
    let ssh_before: Duration = before.iter().filter_map(|pid| process::cpu_time(*pid)).sum();
    let [cpu] = meter::percent([CpuScope::WithChildren(daemon)], rest);
    let ssh_after: Duration = before.iter().filter_map(|pid| process::cpu_time(*pid)).sum();
    let after = process::children(daemon);
    let new_children = after.iter().filter(|pid| !before.contains(pid)).count();
    // A process that started and ended between the two samples shows up in the page faults.
    let processes_started = new_children + usize::from(meter::children_faults(daemon) > faults);
    let ssh_cpu = (ssh_after.saturating_sub(ssh_before)).as_secs_f64() / plan.idle.as_secs_f64() * 100.0;
    drop(hosts);
    let label = if agentless { "idle agentless targets" } else { "idle targets" };
    IdleTargetsCost { label, targets: plan.targets, cpu, cpu_without_targets, ssh_cpu, processes_started }
}

fn run_json(hub: &TestWorld, args: &[&str]) -> Value {
    let output = hub.agtmux().args(args).output().expect("agtmux runs");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn start_daemon(hub: &TestWorld) -> u32 {
    let started = hub.agtmux().args(["daemon", "start"]).stdout(Stdio::null()).status();
    assert!(started.is_ok_and(|status| status.success()), "the daemon starts");
    let pid = run_json(hub, &["daemon", "status", "--json"])["pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("a pid fits into 32 bits")
}

fn pane_count(hub: &TestWorld) -> usize {
    run_json(hub, &["list", "panes", "--json"])["items"].as_array().map_or(0, Vec::len)
}
