use std::fmt::Write as _;
use std::time::Duration;

use crate::idle::IdleTargetsCost;
use crate::outage::OutageMeasurement;
use crate::paper;
use crate::stats::{millis, percentile};

/// What was measured at one place.
pub(crate) struct HostLags {
    pub(crate) label: &'static str,
    pub(crate) target: &'static str,
    pub(crate) hook_lags: Vec<Duration>,
    pub(crate) screen_lags: Vec<Duration>,
}

/// What was measured while one host was away, and beside that before.
pub(crate) struct OutageResults {
    pub(crate) lists_before: Vec<Duration>,
    pub(crate) outages: Vec<OutageMeasurement>,
}

pub(crate) struct SshReport {
    pub(crate) lags: Vec<HostLags>,
    pub(crate) outage_results: OutageResults,
    pub(crate) idle: [IdleTargetsCost; 2],
}

const FILE: &str = "benchmarks-ssh.md";

const INTRODUCTION: &str = "\
# Benchmarks: other hosts

Three hosts on this machine, each with its own sshd on loopback, home and tmux servers, two of them with agtmux and one with
tmux and a shell only, beside this host itself: 15 panes each, and 10 events a second about other agents. Each time is from
just before an agent does something to the line of `agtmux watch` on the hub that tells of it.

";

/// How much later than here an agent of another host may be told of, and how late a screen of a bare host may be.
const MAX_EXTRA_HOOK_LAG_MS: f64 = 100.0;
const MAX_AGENTLESS_SCREEN_LAG_MS: f64 = 1500.0;
const MAX_IDLE_CPU_PERCENT: f64 = 2.0;
/// Seconds after which a host that is silent is not called `ok` any more.
const MAX_DETECTION_SECONDS: f64 = 10.0;

impl SshReport {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| where | what | times | p50 | p95 | beside this host (p95) | goal | |\n");
        table.push_str("|---|---|---|---|---|---|---|---|\n");
        let local = self.lags.first();
        for lags in &self.lags {
            let is_local = local.is_some_and(|local| local.label == lags.label);
            let here = |of: fn(&HostLags) -> &[Duration]| {
                local.map(|local| percentile_ms(of(local), 0.95)).unwrap_or_default()
            };
            if !lags.hook_lags.is_empty() {
                let (p95, beside) = (percentile_ms(&lags.hook_lags, 0.95), here(|lags| &lags.hook_lags));
                let goal = (!is_local)
                    .then_some((format!("+{MAX_EXTRA_HOOK_LAG_MS} ms"), p95 <= beside + MAX_EXTRA_HOOK_LAG_MS));
                write_row(&mut table, lags.label, "told by a hook", &lags.hook_lags, beside, goal);
            }
            let (p95, beside) = (percentile_ms(&lags.screen_lags, 0.95), here(|lags| &lags.screen_lags));
            let bare = lags.hook_lags.is_empty();
            let goal =
                bare.then_some((format!("{MAX_AGENTLESS_SCREEN_LAG_MS} ms"), p95 <= MAX_AGENTLESS_SCREEN_LAG_MS));
            write_row(&mut table, lags.label, "seen on the screen", &lags.screen_lags, beside, goal);
        }
        self.write_outages(&mut table);
        self.idle.iter().for_each(|idle| write_idle_cost(&mut table, idle));
        let build = if cfg!(debug_assertions) {
            "a debug build, on a machine that did other things as well"
        } else {
            "a release build"
        };
        let _ = writeln!(table, "\nMeasured with {build}.");
        table
    }

    fn write_outages(&self, table: &mut String) {
        table.push_str(
            "\nWhile one host is away, with the same panes and events: how long it is still called `ok`, and what the other \
             hosts with agtmux, this one among them, and `agtmux list panes --all --json` do meanwhile (p95, and p95 before).\n\n\
             | what happens | not `ok` after, at the most | goal | | told by a hook elsewhere | before | `list` | before |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        let lists_before = percentile_ms(&self.outage_results.lists_before, 0.95);
        for outage in &self.outage_results.outages {
            let elsewhere = self.lags.iter().filter(|lags| lags.target != outage.target);
            let before: Vec<Duration> = elsewhere.flat_map(|lags| lags.hook_lags.iter().copied()).collect();
            let known = outage.detected_after.iter().max().copied().unwrap_or_default().as_secs_f64();
            let _ = writeln!(
                table,
                "| {} ({} times) | {known:.1} s | {MAX_DETECTION_SECONDS} s | {} | {:.0} ms | {:.0} ms | {:.0} ms | {lists_before:.0} ms |",
                outage.label,
                outage.detected_after.len(),
                paper::met(Some(known <= MAX_DETECTION_SECONDS)),
                percentile_ms(&outage.hook_lags, 0.95),
                percentile_ms(&before, 0.95),
                percentile_ms(&outage.list_times, 0.95),
            );
        }
    }

    pub(crate) fn write(&self) {
        paper::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn write_idle_cost(table: &mut String, idle: &IdleTargetsCost) {
    let IdleTargetsCost {
        label: what,
        targets,
        cpu,
        cpu_without_targets: cpu_alone,
        ssh_cpu,
        processes_started: spawned,
    } = idle;
    let met = |met: bool| paper::met(Some(met));
    let _ = writeln!(
        table,
        "\n{targets} {what} cost the hub's daemon {cpu:.2} % of a core ({cpu_alone:.2} % without any; goal {MAX_IDLE_CPU_PERCENT} %: \
         {}), and their ssh processes {ssh_cpu:.2} %. It started {spawned} processes meanwhile (goal 0: {}).",
        met(*cpu <= MAX_IDLE_CPU_PERCENT),
        met(*spawned == 0)
    );
}

fn write_row(
    table: &mut String,
    place: &str,
    what: &str,
    lags: &[Duration],
    beside: f64,
    goal: Option<(String, bool)>,
) {
    let (p50, p95) = (percentile_ms(lags, 0.5), percentile_ms(lags, 0.95));
    let (goal, met) = match goal {
        Some((goal, true)) => (goal, "met"),
        Some((goal, false)) => (goal, "**missed**"),
        None => (String::new(), ""),
    };
    let ratio = p95 / beside;
    let _ = writeln!(
        table,
        "| {place} | {what} | {} | {p50:.0} ms | {p95:.0} ms | {ratio:.2} times | {goal} | {met} |",
        lags.len()
    );
}

fn percentile_ms(lags: &[Duration], share: f64) -> f64 {
    let samples: Vec<f64> = lags.iter().map(|lag| millis(*lag)).collect();
    percentile(&samples, share)
}
