use std::fmt::Write as _;
use std::time::Duration;

use super::idle::IdleTargetsCost;
use super::outage::OutageMeasurement;
use crate::harness;
use crate::harness::stats::percentile_ms;

/// The lags measured on one host.
pub(crate) struct HostLags {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    pub(crate) hook_lags: Vec<Duration>,
    pub(crate) screen_lags: Vec<Duration>,
}

/// The measurements during outages, and the duration of lists before the first outage.
pub(crate) struct OutageResults {
    pub(crate) lists_before: Vec<Duration>,
    pub(crate) outages: Vec<OutageMeasurement>,
}

pub(crate) struct SshReport {
    pub(crate) lags: Vec<HostLags>,
    pub(crate) outage_results: OutageResults,
    pub(crate) idle: [IdleTargetsCost; 2],
}

const INTRODUCTION: &str = "\
# Benchmarks: other hosts

Three hosts are simulated on this machine, each with its own sshd on loopback, home directory and tmux servers. Two of
them have agtmux; one is agentless (tmux and a shell only). Each host, including this one, has 15 panes. Other agents
send 10 events per second. Each time is from just before an agent's action to the line of `agtmux watch` on the hub.

| where | reported by | samples | p50 | p95 | ratio to this host (p95) | goal | |
|---|---|---|---|---|---|---|---|
";

/// The goal for a hook on another host: how much longer its lag may be than on this host.
const MAX_EXTRA_HOOK_LAG_MS: f64 = 100.0;
/// The goal for a screen on an agentless host: how long its lag may be.
const MAX_AGENTLESS_SCREEN_LAG_MS: f64 = 1500.0;
const MAX_IDLE_CPU_PERCENT: f64 = 2.0;
/// The goal: the maximum time in seconds until an unreachable host is no longer `ok`.
const MAX_DETECTION_SECONDS: f64 = 10.0;

impl SshReport {
    pub(crate) fn render(&self) -> String {
        let mut table = String::from(INTRODUCTION);
        let local = self.lags.first();
        for lags in &self.lags {
            let is_local = local.is_some_and(|local| local.label == lags.label);
            let on_this_host = |of: fn(&HostLags) -> &[Duration]| {
                local.map(|local| percentile_ms(of(local), 0.95)).unwrap_or_default()
            };
            if !lags.hook_lags.is_empty() {
                let (p95, local_p95) = (percentile_ms(&lags.hook_lags, 0.95), on_this_host(|lags| &lags.hook_lags));
                let goal = (!is_local)
                    .then_some((format!("+{MAX_EXTRA_HOOK_LAG_MS} ms"), p95 <= local_p95 + MAX_EXTRA_HOOK_LAG_MS));
                write_row(&mut table, lags.label, "hook", &lags.hook_lags, local_p95, goal);
            }
            let (p95, local_p95) = (percentile_ms(&lags.screen_lags, 0.95), on_this_host(|lags| &lags.screen_lags));
            let agentless = lags.hook_lags.is_empty();
            let goal =
                agentless.then_some((format!("{MAX_AGENTLESS_SCREEN_LAG_MS} ms"), p95 <= MAX_AGENTLESS_SCREEN_LAG_MS));
            write_row(&mut table, lags.label, "screen", &lags.screen_lags, local_p95, goal);
        }
        self.write_outages(&mut table);
        self.idle.iter().for_each(|idle| write_idle_cost(&mut table, idle));
        let build =
            if cfg!(debug_assertions) { "a debug build on a machine with other load" } else { "a release build" };
        let _ = writeln!(table, "\nMeasured with {build}.");
        table
    }

    fn write_outages(&self, table: &mut String) {
        table.push_str(
            "\nDuring an outage of one host, with the same panes and events: the time until its health is no longer `ok`, the lag \
             of hooks on the other hosts with agtmux, and the time of `agtmux list panes --all --json` (p95, and p95 before).\n\n\
             | outage | detected after (maximum) | goal | | hooks on other hosts | before | `list` | before |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        let lists_before = percentile_ms(&self.outage_results.lists_before, 0.95);
        for outage in &self.outage_results.outages {
            let other_hosts = self.lags.iter().filter(|lags| lags.target != outage.target);
            let before: Vec<Duration> = other_hosts.flat_map(|lags| lags.hook_lags.iter().copied()).collect();
            let detected = outage.detected_after.iter().max().copied().unwrap_or_default().as_secs_f64();
            let _ = writeln!(
                table,
                "| {} ({} times) | {detected:.1} s | {MAX_DETECTION_SECONDS} s | {} | {:.0} ms | {:.0} ms | {:.0} ms | {lists_before:.0} ms |",
                outage.label,
                outage.detected_after.len(),
                harness::met(Some(detected <= MAX_DETECTION_SECONDS)),
                percentile_ms(&outage.hook_lags, 0.95),
                percentile_ms(&before, 0.95),
                percentile_ms(&outage.list_times, 0.95),
            );
        }
    }
}

fn write_idle_cost(table: &mut String, idle: &IdleTargetsCost) {
    let IdleTargetsCost { label, targets, cpu, cpu_without_targets, ssh_cpu, processes_started } = idle;
    let met = |met: bool| harness::met(Some(met));
    let _ = writeln!(
        table,
        "\n{targets} {label} cost the hub's daemon {cpu:.2} % of a core ({cpu_without_targets:.2} % without targets; goal {MAX_IDLE_CPU_PERCENT} %: \
         {}), and their ssh processes {ssh_cpu:.2} %. The daemon started {processes_started} processes meanwhile (goal 0: {}).",
        met(*cpu <= MAX_IDLE_CPU_PERCENT),
        met(*processes_started == 0)
    );
}

fn write_row(
    table: &mut String,
    host: &str,
    source: &str,
    lags: &[Duration],
    local_p95: f64,
    goal: Option<(String, bool)>,
) {
    let (p50, p95) = (percentile_ms(lags, 0.5), percentile_ms(lags, 0.95));
    let met = harness::met(goal.as_ref().map(|(_, met)| *met));
    let goal = goal.map(|(goal, _)| goal).unwrap_or_default();
    let ratio = p95 / local_p95;
    let _ = writeln!(
        table,
        "| {host} | {source} | {} | {p50:.0} ms | {p95:.0} ms | {ratio:.2} times | {goal} | {met} |",
        lags.len()
    );
}
