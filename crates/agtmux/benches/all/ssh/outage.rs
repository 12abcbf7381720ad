//! Measures how soon an outage of one host is detected, and how it affects lists and the other hosts.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::wait_until;
use serde_json::Value;

use super::SshBenchPlan;
use super::setup::SshBench;

/// How long to wait until an outage is detected, and later until the host is ok again. If an outage is not detected
/// within this time, this time is recorded.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct OutageMeasurement {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    /// The time from each outage until the health of the target is no longer `ok`.
    pub(crate) detected_after: Vec<Duration>,
    /// The lags of hook events on the other hosts with agtmux during the outage.
    pub(crate) hook_lags: Vec<Duration>,
    /// How long each `list panes` took during the outage.
    pub(crate) list_times: Vec<Duration>,
}

/// Starts or ends an outage.
type OutageStep = fn(&SshBench);

const OUTAGE_KINDS: [(&str, &str, OutageStep, OutageStep); 4] = [
    ("the link to a host with agtmux is cut", "vm2", |bench| bench.link().cut(), |bench| bench.link().restore()),
    (
        "the sshd of a host with agtmux is stopped",
        "vm2",
        |bench| bench.host("vm2").freeze(),
        |bench| {
            bench.host("vm2").thaw();
        },
    ),
    (
        "the sshd of a host with agtmux is killed",
        "vm2",
        |bench| bench.host("vm2").kill_sshd(),
        |bench| bench.host("vm2").start_sshd(),
    ),
    (
        "the sshd of an agentless host is stopped",
        "vm3",
        |bench| bench.host("vm3").freeze(),
        |bench| bench.host("vm3").thaw(),
    ),
];

/// Measures lists while every host is reachable.
pub(crate) fn measure_lists(bench: &SshBench, plan: &SshBenchPlan) -> Vec<Duration> {
    (0..plan.lists).map(|_| measure_list(bench)).collect()
}

pub(crate) fn measure(bench: &SshBench, plan: &SshBenchPlan) -> Vec<OutageMeasurement> {
    let possible = OUTAGE_KINDS.iter().filter(|(label, ..)| bench.link.is_some() || !label.contains("link"));
    possible.map(|(label, target, begin, end)| measure_outage(bench, plan, (label, target), *begin, *end)).collect()
}

fn measure_outage(
    bench: &SshBench,
    plan: &SshBenchPlan,
    (label, target): (&'static str, &'static str),
    begin: OutageStep,
    end: OutageStep,
) -> OutageMeasurement {
    eprintln!("{label}");
    let mut outage =
        OutageMeasurement { label, target, detected_after: Vec::new(), hook_lags: Vec::new(), list_times: Vec::new() };
    for n in 1..=plan.outages {
        // Start the outage at different times between two keep-alive messages.
        thread::sleep(Duration::from_millis(700 * u64::from(n)));
        let began = Instant::now();
        begin(bench);
        while health(bench, target) == "ok" && began.elapsed() < OUTAGE_TIMEOUT {
            outage.list_times.push(measure_list(bench));
            thread::sleep(POLL_INTERVAL);
        }
        outage.detected_after.push(began.elapsed());
        if n == plan.outages {
            // The hub keeps trying to reconnect meanwhile.
            for host in bench.bench_hosts.iter().filter(|host| host.has_agtmux && host.target != target) {
                outage.hook_lags.extend(host.agent.measure_hook_lags(&bench.lines, plan.outage_rounds));
                outage.list_times.extend(measure_lists(bench, plan));
            }
        }
        end(bench);
        let connected = bench.hub.agtmux().args(["target", "connect", target]).stdout(Stdio::null()).status();
        assert!(connected.is_ok(), "agtmux target connect runs");
        wait_until("the host to be ok again", OUTAGE_TIMEOUT, || health(bench, target) == "ok");
    }
    outage
}

fn measure_list(bench: &SshBench) -> Duration {
    let began = Instant::now();
    let listed = bench.hub.agtmux().args(["list", "panes", "--all", "--json"]).stdout(Stdio::null()).status();
    assert!(listed.is_ok_and(|status| status.success()), "agtmux list succeeds");
    began.elapsed()
}

fn health(bench: &SshBench, target: &str) -> String {
    let output = bench.hub.agtmux().args(["target", "list", "--json"]).output().expect("agtmux runs");
    let targets: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let found = targets["items"].as_array().into_iter().flatten().find(|item| item["name"] == target);
    found.and_then(|item| item["health"].as_str()).unwrap_or_default().to_owned()
}
