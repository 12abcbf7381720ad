//! One run with a given number of readers and stalled readers: posts hooks, and measures how late each reader receives
//! the events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::hook_load::HookLoad;
use agtmux_testkit::stream_readers::{StreamReaders, StreamSubscription};
use agtmux_testkit::{process, wait_until};

use super::plan::BridgeBenchPlan;
use super::setup::BridgeBench;

/// How long to wait for the last events after all hooks are posted.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct BridgeMeasurement {
    pub(crate) hooks: usize,
    pub(crate) took: Duration,
    /// The average number of events per reader.
    pub(crate) events: u64,
    pub(crate) missed: u64,
    /// The lags in milliseconds, in the order of the posts.
    pub(crate) lags: Vec<f64>,
    /// Samples of the daemon's resident memory in bytes.
    pub(crate) memory: Vec<u64>,
    /// The number of the daemon's open files at three times: before the readers connect, when all readers are
    /// connected, and at the end.
    pub(crate) open_files: [usize; 3],
    /// Percent of one core.
    pub(crate) cpu: f64,
}

pub(crate) fn run(
    bench: &BridgeBench,
    plan: &BridgeBenchPlan,
    duration: Duration,
    readers: usize,
    stalled: usize,
) -> BridgeMeasurement {
    let pid = bench.daemon_pid();
    let files = || process::open_fds(pid).len();
    let posts = Arc::new(HookLoad::new(&bench.sessions, plan.hooks_per_second, duration));
    let following = StreamSubscription {
        address: bench.address,
        bearer: bench.bearer.clone(),
        agent_ids: bench.agent_ids.clone(),
        load: posts.clone(),
    };
    let files_before = files();
    let crowd = StreamReaders::connect(&following, readers, stalled);
    let files_with_all = files();
    let (start, used) = (Instant::now(), process::cpu_time(pid).unwrap_or_default());
    let (took, memory) = sample_memory(pid, || posts.run(&bench.world.socket()));
    let prompts = posts.turns() as u64;
    wait_until("every reader to receive every prompt", STREAM_TIMEOUT, || crowd.have_received(prompts));
    let cpu = process::cpu_time(pid).unwrap_or_default().saturating_sub(used).as_secs_f64();
    let total: u64 = crowd.readers().iter().map(|reader| reader.events.load(Ordering::SeqCst)).sum();
    BridgeMeasurement {
        hooks: posts.turns() * 2,
        took,
        events: total / readers as u64,
        missed: crowd.missed(),
        lags: crowd.lags(),
        memory,
        open_files: [files_before, files_with_all, files()],
        cpu: cpu / start.elapsed().as_secs_f64() * 100.0,
    }
}

fn sample_memory<T>(pid: u32, during: impl FnOnce() -> T) -> (T, Vec<u64>) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut memory = Vec::new();
            while !done.load(Ordering::SeqCst) {
                memory.extend(process::resident_memory(pid));
                thread::sleep(SAMPLE_INTERVAL);
            }
            memory
        });
        let result = during();
        done.store(true, Ordering::SeqCst);
        (result, looks.join().expect("the sampler does not panic"))
    })
}
