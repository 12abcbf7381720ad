use std::fmt::Write as _;
use std::time::Duration;

use crate::idle::Idle;
use crate::outage::Outage;
use crate::paper;
use crate::stats::{millis, percentile};

/// What was measured at one place.
pub(crate) struct Lags {
    pub(crate) what: &'static str,
    pub(crate) target: &'static str,
    pub(crate) native: Vec<Duration>,
    pub(crate) shown: Vec<Duration>,
}

/// What was measured while one host was away, and beside that before.
pub(crate) struct Away {
    pub(crate) lists_before: Vec<Duration>,
    pub(crate) outages: Vec<Outage>,
}

pub(crate) struct Report {
    pub(crate) lags: Vec<Lags>,
    pub(crate) away: Away,
    pub(crate) idle: [Idle; 2],
}

const FILE: &str = "benchmarks-ssh.md";

const INTRODUCTION: &str = "\
# Benchmarks: other hosts

Three hosts on this machine, each with its own sshd on loopback, home and tmux servers, two of them with agtmux and one with
tmux and a shell only, beside this host itself: 15 panes each, and 10 events a second about other agents. Each time is from
just before an agent does something to the line of `agtmux watch` on the hub that tells of it.

";

/// How much later than here an agent of another host may be told of, and how late a screen of a bare host may be.
const NATIVE_BEYOND: f64 = 100.0;
const BARE_SCREEN: f64 = 1500.0;
const IDLE_CPU: f64 = 2.0;
/// Seconds after which a host that is silent is not called `ok` any more.
const KNOWN_WITHIN: f64 = 10.0;

impl Report {
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| where | what | times | p50 | p95 | beside this host (p95) | goal | |\n");
        table.push_str("|---|---|---|---|---|---|---|---|\n");
        let local = self.lags.first();
        for lags in &self.lags {
            let is_local = local.is_some_and(|local| local.what == lags.what);
            let here = |of: fn(&Lags) -> &[Duration]| local.map(|local| p(of(local), 0.95)).unwrap_or_default();
            if !lags.native.is_empty() {
                let (p95, beside) = (p(&lags.native, 0.95), here(|lags| &lags.native));
                let goal = (!is_local).then_some((format!("+{NATIVE_BEYOND} ms"), p95 <= beside + NATIVE_BEYOND));
                row(&mut table, lags.what, "told by a hook", &lags.native, beside, goal);
            }
            let (p95, beside) = (p(&lags.shown, 0.95), here(|lags| &lags.shown));
            let bare = lags.native.is_empty();
            let goal = bare.then_some((format!("{BARE_SCREEN} ms"), p95 <= BARE_SCREEN));
            row(&mut table, lags.what, "seen on the screen", &lags.shown, beside, goal);
        }
        self.outages(&mut table);
        self.idle.iter().for_each(|idle| told(&mut table, idle));
        let build = if cfg!(debug_assertions) {
            "a debug build, on a machine that did other things as well"
        } else {
            "a release build"
        };
        let _ = writeln!(table, "\nMeasured with {build}.");
        table
    }

    fn outages(&self, table: &mut String) {
        table.push_str(
            "\nWhile one host is away, with the same panes and events: how long it is still called `ok`, and what the other \
             hosts with agtmux, this one among them, and `agtmux list panes --all --json` do meanwhile (p95, and p95 before).\n\n\
             | what happens | not `ok` after, at the most | goal | | told by a hook elsewhere | before | `list` | before |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        let lists_before = p(&self.away.lists_before, 0.95);
        for outage in &self.away.outages {
            let elsewhere = self.lags.iter().filter(|lags| lags.target != outage.target);
            let before: Vec<Duration> = elsewhere.flat_map(|lags| lags.native.iter().copied()).collect();
            let known = outage.known_after.iter().max().copied().unwrap_or_default().as_secs_f64();
            let _ = writeln!(
                table,
                "| {} ({} times) | {known:.1} s | {KNOWN_WITHIN} s | {} | {:.0} ms | {:.0} ms | {:.0} ms | {lists_before:.0} ms |",
                outage.what,
                outage.known_after.len(),
                paper::met(Some(known <= KNOWN_WITHIN)),
                p(&outage.native, 0.95),
                p(&before, 0.95),
                p(&outage.lists, 0.95),
            );
        }
    }

    pub(crate) fn write(&self) {
        paper::write(FILE, &format!("{INTRODUCTION}{}", self.table()));
    }
}

fn told(table: &mut String, idle: &Idle) {
    let Idle { what, targets, cpu, cpu_alone, ssh_cpu, spawned } = idle;
    let met = |met: bool| paper::met(Some(met));
    let _ = writeln!(
        table,
        "\n{targets} {what} cost the hub's daemon {cpu:.2} % of a core ({cpu_alone:.2} % without any; goal {IDLE_CPU} %: \
         {}), and their ssh processes {ssh_cpu:.2} %. It started {spawned} processes meanwhile (goal 0: {}).",
        met(*cpu <= IDLE_CPU),
        met(*spawned == 0)
    );
}

fn row(table: &mut String, place: &str, what: &str, lags: &[Duration], beside: f64, goal: Option<(String, bool)>) {
    let (p50, p95) = (p(lags, 0.5), p(lags, 0.95));
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

fn p(lags: &[Duration], share: f64) -> f64 {
    let samples: Vec<f64> = lags.iter().map(|lag| millis(*lag)).collect();
    percentile(&samples, share)
}
