//! What becomes of the others, and of lists, while one host is away, and how soon that is known.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::wait_until;
use serde_json::Value;

use crate::SshBenchPlan;
use crate::bench_host::BenchHost;
use crate::setup::SshBench;

/// Far longer than any of it may take: what takes longer counts with this.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) struct OutageMeasurement {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    /// From the moment in which it fell silent until it was not called `ok` any more, each time.
    pub(crate) detected_after: Vec<Duration>,
    /// What was told by a hook on the other hosts with agtmux meanwhile.
    pub(crate) hook_lags: Vec<Duration>,
    /// How long `list panes` took meanwhile.
    pub(crate) list_times: Vec<Duration>,
}

/// How a host is taken away, and given back.
type OutageStep = fn(&SshBench);

const OUTAGE_KINDS: [(&str, &str, OutageStep, OutageStep); 4] = [
    ("the link to a host with agtmux is cut", "vm2", |room| room.link().cut(), |room| room.link().restore()),
    (
        "the sshd of a host with agtmux is stopped",
        "vm2",
        |room| room.host("vm2").freeze(),
        |room| {
            room.host("vm2").thaw();
        },
    ),
    (
        "the sshd of a host with agtmux is killed",
        "vm2",
        |room| room.host("vm2").kill_sshd(),
        |room| room.host("vm2").start_sshd(),
    ),
    ("the sshd of a bare host is stopped", "vm3", |room| room.host("vm3").freeze(), |room| room.host("vm3").thaw()),
];

/// How long lists take while every host is well.
pub(crate) fn measure_lists(room: &SshBench, plan: &SshBenchPlan) -> Vec<Duration> {
    (0..plan.lists).map(|_| measure_list(room)).collect()
}

pub(crate) fn measure(room: &SshBench, plan: &SshBenchPlan) -> Vec<OutageMeasurement> {
    let possible = OUTAGE_KINDS.iter().filter(|(what, ..)| room.link.is_some() || !what.contains("link"));
    possible.map(|(what, target, away, back)| measure_outage(room, plan, (what, target), *away, *back)).collect()
}

fn measure_outage(
    room: &SshBench,
    plan: &SshBenchPlan,
    (what, target): (&'static str, &'static str),
    away: OutageStep,
    back: OutageStep,
) -> OutageMeasurement {
    eprintln!("{what}");
    let mut outage = OutageMeasurement {
        label: what,
        target,
        detected_after: Vec::new(),
        hook_lags: Vec::new(),
        list_times: Vec::new(),
    };
    for n in 1..=plan.outages {
        // It falls silent at any time between two of its words.
        thread::sleep(Duration::from_millis(700 * u64::from(n)));
        let began = Instant::now();
        away(room);
        while health(room, target) == "ok" && began.elapsed() < OUTAGE_TIMEOUT {
            outage.list_times.push(measure_list(room));
            thread::sleep(POLL_INTERVAL);
        }
        outage.detected_after.push(began.elapsed());
        if n == plan.outages {
            // While it is tried again and again.
            for place in room.bench_hosts.iter().filter(|place| place.has_agtmux && place.target != target) {
                let told = place.measure_lags(
                    &room.lines,
                    plan.outage_rounds,
                    &["running", "completed"],
                    BenchHost::send_hook,
                );
                outage.hook_lags.extend(told);
                outage.list_times.extend(measure_lists(room, plan));
            }
        }
        back(room);
        let connected = room.hub.agtmux().args(["target", "connect", target]).stdout(Stdio::null()).status();
        assert!(connected.is_ok(), "it is tried at once");
        wait_until("the host to be well again", OUTAGE_TIMEOUT, || health(room, target) == "ok");
    }
    outage
}

fn measure_list(room: &SshBench) -> Duration {
    let began = Instant::now();
    let listed = room.hub.agtmux().args(["list", "panes", "--all", "--json"]).stdout(Stdio::null()).status();
    assert!(listed.is_ok_and(|status| status.success()), "a list is given");
    began.elapsed()
}

fn health(room: &SshBench, target: &str) -> String {
    let output = room.hub.agtmux().args(["target", "list", "--json"]).output().expect("it runs");
    let targets: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let found = targets["items"].as_array().into_iter().flatten().find(|item| item["name"] == target);
    found.and_then(|item| item["health"].as_str()).unwrap_or_default().to_owned()
}
