//! Measures the CPU time of the daemon and of the tmux server, idle and under load.

use std::thread;
use std::time::Duration;

use agtmux_testkit::{TestPane, process};
use rustix::process::Signal;

use super::naive_poller;
use super::plan::SpineBenchPlan;
use super::report::SpineMeasurement;
use super::setup::SpineBench;
use super::writers::BusyWriters;
use crate::harness::meter::{self, CpuScope};
use crate::harness::stats::median;

/// How long to wait before a measurement, so that a process that was just started or resumed can catch up.
const WARM_UP: Duration = Duration::from_secs(1);
const NAIVE_IDLE: Duration = Duration::from_secs(5);

/// Percent of one core.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuShare {
    pub(crate) observer: f64,
    pub(crate) server: f64,
}

#[derive(Debug)]
pub(crate) struct IdleCost {
    pub(crate) ours: CpuShare,
    pub(crate) naive: CpuShare,
    pub(crate) spawned: bool,
    pub(crate) memory: u64,
}

#[derive(Debug)]
pub(crate) struct BusyCost {
    pub(crate) none: CpuShare,
    pub(crate) ours: CpuShare,
    pub(crate) naive: CpuShare,
}

/// Measures the idle servers of all sizes at the same time, after one wait until all of them are idle. There is no
/// measurement without an observer, because an idle server uses no CPU by itself.
pub(crate) fn idle(benches: &[SpineBench], plan: &SpineBenchPlan, measured: &mut [SpineMeasurement]) {
    eprintln!("all panes: waiting until idle");
    thread::sleep(plan.settle);
    let faults: Vec<u64> = benches.iter().map(|bench| meter::children_faults(bench.daemon_pid())).collect();
    let ours: Vec<CpuShare> = thread::scope(|scope| {
        let measure = |bench: &SpineBench| share(bench, CpuScope::WithChildren(bench.daemon_pid()), plan.idle_window);
        let threads: Vec<_> = benches.iter().map(|bench| scope.spawn(move || measure(bench))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the measurement does not panic")).collect()
    });
    for (((bench, measured), ours), before) in benches.iter().zip(measured).zip(ours).zip(faults) {
        let daemon = bench.daemon_pid();
        let spawned = meter::children_faults(daemon) != before;
        let memory = process::resident_memory(daemon).expect("the daemon is running");
        let naive = without_daemon(bench, || naive_share(bench, &[], NAIVE_IDLE));
        measured.idle = Some(IdleCost { ours, naive, spawned, memory });
    }
}

/// Measures the cost under load in three cases: no observer, agtmux, a naive poller. Each round runs all three.
pub(crate) fn busy(bench: &SpineBench, plan: &SpineBenchPlan) -> BusyCost {
    eprintln!("{} panes: under load", bench.size);
    let busy = bench.busy_panes();
    let writers = BusyWriters::start(busy);
    let (mut none, mut ours, mut naive) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.busy_rounds {
        none.push(without_daemon(bench, || unobserved_share(bench, plan.busy_window)));
        thread::sleep(WARM_UP);
        ours.push(share(bench, CpuScope::WithChildren(bench.daemon_pid()), plan.busy_window));
        naive.push(without_daemon(bench, || naive_share(bench, busy, plan.busy_window)));
    }
    drop(writers);
    BusyCost { none: median_share(&none), ours: median_share(&ours), naive: median_share(&naive) }
}

fn unobserved_share(bench: &SpineBench, window: Duration) -> CpuShare {
    thread::sleep(WARM_UP);
    let [server] = meter::percent([CpuScope::Alone(server_pid(bench))], || thread::sleep(window));
    CpuShare { observer: 0.0, server }
}

fn naive_share(bench: &SpineBench, busy: &[TestPane], window: Duration) -> CpuShare {
    let poller = naive_poller::start(bench, busy);
    thread::sleep(WARM_UP);
    share(bench, CpuScope::WithChildren(poller.id()), window)
}

fn share(bench: &SpineBench, observer: CpuScope, window: Duration) -> CpuShare {
    let server = CpuScope::Alone(server_pid(bench));
    let [observer, server] = meter::percent([observer, server], || thread::sleep(window));
    CpuShare { observer, server }
}

/// Reads the pid from /proc, because a tmux command would wake the server.
fn server_pid(bench: &SpineBench) -> u32 {
    process::parent(bench.panes[0].pid).expect("the pane is running")
}

/// Suspends the daemon with SIGSTOP during the measurement. If the daemon ended instead, the next measurement would
/// include the start of a new daemon. The daemon's hooks stay in the server, but nothing happens that would make tmux
/// run them.
fn without_daemon<T>(bench: &SpineBench, measure: impl FnOnce() -> T) -> T {
    process::signal(bench.daemon_pid(), Signal::STOP);
    let result = measure();
    process::signal(bench.daemon_pid(), Signal::CONT);
    result
}

fn median_share(shares: &[CpuShare]) -> CpuShare {
    let of = |part: fn(&CpuShare) -> f64| median(&shares.iter().map(part).collect::<Vec<_>>());
    CpuShare { observer: of(|share| share.observer), server: of(|share| share.server) }
}
