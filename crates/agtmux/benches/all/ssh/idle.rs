//! Measures the cost of connections to idle hosts.

use std::process::Stdio;
use std::time::Duration;

use agtmux_testkit::{TestHost, TestHosts, agtmux, process, wait_until};

use super::SshBenchPlan;
use crate::harness::meter::{self, CpuScope};
use crate::harness::world::{self, STARTUP_TIMEOUT, list_panes, program};

pub(crate) struct IdleTargetsCost {
    pub(crate) label: &'static str,
    pub(crate) targets: usize,
    /// CPU use of the hub's daemon while it watches these targets, in percent of one core.
    pub(crate) cpu: f64,
    /// CPU use of the hub's daemon before the first target is added, in percent of one core.
    pub(crate) cpu_without_targets: f64,
    /// CPU use of all ssh processes together.
    pub(crate) ssh_cpu: f64,
    pub(crate) processes_started: usize,
}

/// The number of hosts. Several targets share a host under different aliases, because the hub treats each alias as its
/// own target.
const HOSTS: usize = 4;

/// Measures idle hosts with agtmux, or idle agentless hosts (tmux and a shell only).
pub(crate) fn measure(plan: &SshBenchPlan, agentless: bool) -> IdleTargetsCost {
    let hub = world::world();
    let hosts_of_hub = TestHosts::for_hub(&hub);
    let start = |alias: String| {
        if agentless { hosts_of_hub.agentless(&alias) } else { hosts_of_hub.with_agtmux(&alias, program()) }
    };
    let hosts: Vec<TestHost> = (0..HOSTS).map(|n| start(format!("box{n}"))).collect();
    for host in &hosts {
        host.tmux("default").new_session("work", &host.world().fake_agent_command("claude"));
    }
    let daemon = agtmux::start(&hub);
    let rest = || std::thread::sleep(plan.idle);
    let [cpu_without_targets] = meter::percent([CpuScope::WithChildren(daemon)], rest);
    for n in 0..plan.targets {
        hosts_of_hub.alias(&hosts[n % HOSTS], &format!("idle{n}"));
        let added = hub.agtmux().args(["target", "add", &format!("idle{n}")]).stdout(Stdio::null()).status();
        assert!(added.is_ok_and(|status| status.success()), "the target can be reached");
    }
    wait_until("all panes to be listed", STARTUP_TIMEOUT, || list_panes(&hub, &[]).len() == plan.targets);
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
