//! One run: who reads, what comes, and when it reaches them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{process, wait_until};

use crate::crowd::{Crowd, Following};
use crate::plan::BridgeBenchPlan;
use crate::posts::Posts;
use crate::setup::BridgeBench;

/// What is still on its way when everything is posted comes within this time.
const STREAM_TIMEOUT: Duration = Duration::from_secs(60);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct BridgeMeasurement {
    pub(crate) hooks: usize,
    pub(crate) took: Duration,
    /// That each reader got, on average.
    pub(crate) events: u64,
    pub(crate) missed: u64,
    /// In milliseconds, in the order of the posts.
    pub(crate) lags: Vec<f64>,
    /// Of the daemon, in bytes, from time to time.
    pub(crate) memory: Vec<u64>,
    /// Open files of the daemon before, with everybody there, and at the end.
    pub(crate) open_files: [usize; 3],
    /// Percent of one core.
    pub(crate) cpu: f64,
}

pub(crate) fn run(
    room: &BridgeBench,
    plan: &BridgeBenchPlan,
    lasts: Duration,
    readers: usize,
    stalled: usize,
) -> BridgeMeasurement {
    let pid = room.daemon_pid();
    let files = || process::open_fds(pid).len();
    let posts = Arc::new(Posts::new(&room.sessions, plan.hooks_per_second, lasts));
    let following = Following {
        address: room.address,
        bearer: room.bearer.clone(),
        agent_ids: room.agent_ids.clone(),
        posts: posts.clone(),
    };
    let files_before = files();
    let crowd = Crowd::gather(&following, readers, stalled);
    let files_with_all = files();
    let (begun, used) = (Instant::now(), process::cpu_time(pid).unwrap_or_default());
    let (took, memory) = sample_memory(pid, || posts.run(&room.world.socket()));
    let prompts = posts.turns() as u64;
    wait_until("every reader to be told of every prompt", STREAM_TIMEOUT, || crowd.has_heard(prompts));
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
        cpu: cpu / begun.elapsed().as_secs_f64() * 100.0,
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
        let came_of_it = during();
        done.store(true, Ordering::SeqCst);
        (came_of_it, looks.join().expect("it only looks"))
    })
}
