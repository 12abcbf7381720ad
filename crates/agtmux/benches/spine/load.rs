//! CPU time of the daemon and of the tmux server, at rest and under load.

use std::thread;
use std::time::Duration;

use agtmux_testkit::{TestPane, process};
use rustix::process::Signal;

use crate::meter::{self, Who};
use crate::naive_poller;
use crate::plan::SpineBenchPlan;
use crate::report::SpineMeasurement;
use crate::setup::SpineBench;
use crate::stats::median;
use crate::writers::BusyWriters;

/// Whoever was just started or woken has something to catch up on.
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

/// All rooms come to rest together. A server at rest uses nothing by itself, so there is no phase without an observer.
pub(crate) fn idle(rooms: &[SpineBench], plan: &SpineBenchPlan, measured: &mut [SpineMeasurement]) {
    eprintln!("all panes: coming to rest");
    thread::sleep(plan.settle);
    let faults: Vec<u64> = rooms.iter().map(|room| meter::children_faults(room.daemon_pid())).collect();
    let ours: Vec<CpuShare> = thread::scope(|scope| {
        let measure = |room: &SpineBench| share(room, Who::WithChildren(room.daemon_pid()), plan.idle_window);
        let threads: Vec<_> = rooms.iter().map(|room| scope.spawn(move || measure(room))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it only measures")).collect()
    });
    for (((room, measured), ours), before) in rooms.iter().zip(measured).zip(ours).zip(faults) {
        let daemon = room.daemon_pid();
        let spawned = meter::children_faults(daemon) != before;
        let memory = process::resident_memory(daemon).expect("the daemon lives");
        let naive = without_daemon(room, || naive_share(room, &[], NAIVE_IDLE));
        measured.idle = Some(IdleCost { ours, naive, spawned, memory });
    }
}

/// No observer, ours, a naive one, and again.
pub(crate) fn busy(room: &SpineBench, plan: &SpineBenchPlan) -> BusyCost {
    eprintln!("{} panes: under load", room.size);
    let busy = room.busy_panes();
    let writers = BusyWriters::start(busy);
    let (mut none, mut ours, mut naive) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.busy_rounds {
        none.push(without_daemon(room, || unobserved_share(room, plan.busy_window)));
        thread::sleep(WARM_UP);
        ours.push(share(room, Who::WithChildren(room.daemon_pid()), plan.busy_window));
        naive.push(without_daemon(room, || naive_share(room, busy, plan.busy_window)));
    }
    drop(writers);
    BusyCost { none: median_share(&none), ours: median_share(&ours), naive: median_share(&naive) }
}

fn unobserved_share(room: &SpineBench, window: Duration) -> CpuShare {
    thread::sleep(WARM_UP);
    let [server] = meter::percent([Who::Alone(server_pid(room))], || thread::sleep(window));
    CpuShare { observer: 0.0, server }
}

fn naive_share(room: &SpineBench, busy: &[TestPane], window: Duration) -> CpuShare {
    let poller = naive_poller::start(room, busy);
    thread::sleep(WARM_UP);
    share(room, Who::WithChildren(poller.id()), window)
}

fn share(room: &SpineBench, observer: Who, window: Duration) -> CpuShare {
    let server = Who::Alone(server_pid(room));
    let [observer, server] = meter::percent([observer, server], || thread::sleep(window));
    CpuShare { observer, server }
}

/// Without a question to the server: it shall sleep.
fn server_pid(room: &SpineBench) -> u32 {
    process::parent(room.panes[0].pid).expect("the pane lives")
}

/// The daemon stands still meanwhile. Starting it anew each time would measure its start. Its hooks stay in the server,
/// but nothing happens here that would make tmux run them.
fn without_daemon<T>(room: &SpineBench, measure: impl FnOnce() -> T) -> T {
    process::signal(room.daemon_pid(), Signal::STOP);
    let result = measure();
    process::signal(room.daemon_pid(), Signal::CONT);
    result
}

fn median_share(shares: &[CpuShare]) -> CpuShare {
    let of = |part: fn(&CpuShare) -> f64| median(&shares.iter().map(part).collect::<Vec<_>>());
    CpuShare { observer: of(|share| share.observer), server: of(|share| share.server) }
}
