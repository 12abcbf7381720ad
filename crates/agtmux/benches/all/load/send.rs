//! Sends the events at the planned times.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::process;
use serde_json::json;

use super::plan::LoadBenchPlan;
use super::setup::LoadRuntime;
use crate::harness::connection::LoadConnection;
use crate::harness::stats::millis;

/// The delay before the first event. By then every connection is open.
const START_DELAY: Duration = Duration::from_millis(200);
/// The points at which memory is sampled, as fractions of the run.
const MEMORY_SAMPLE_POINTS: [f64; 4] = [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0];

pub(crate) struct EventLoad {
    pub(crate) runtimes: Vec<LoadRuntime>,
    pub(crate) start: Instant,
    pub(crate) count: usize,
    duration: Duration,
    rate: usize,
    connections: usize,
    /// The time at which each post started, in nanoseconds since the start of the run.
    post_times: Vec<AtomicU64>,
}

#[derive(Debug, Default)]
pub(crate) struct SendStats {
    pub(crate) sent: usize,
    /// The numbers of the acknowledged events.
    pub(crate) acknowledged: Vec<usize>,
    /// The time from each post to its response, in milliseconds.
    pub(crate) to_ack: Vec<f64>,
    /// How much later than planned each post began, in milliseconds.
    pub(crate) start_delays: Vec<f64>,
}

impl EventLoad {
    pub(crate) fn new(plan: &LoadBenchPlan, duration: Duration, runtimes: &[LoadRuntime]) -> Self {
        let count = plan.rate * usize::try_from(duration.as_secs()).unwrap_or(usize::MAX);
        Self {
            runtimes: runtimes.to_vec(),
            start: Instant::now() + START_DELAY,
            count,
            duration,
            rate: plan.rate,
            connections: plan.connections,
            post_times: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The time at which event `n` is to be posted, as a duration since the start of the run.
    pub(crate) fn due(&self, n: usize) -> Duration {
        Duration::from_secs_f64(n as f64 / self.rate as f64)
    }

    pub(crate) fn post_time(&self, n: usize) -> Option<Duration> {
        self.post_times.get(n).map(|at| Duration::from_nanos(at.load(Ordering::Acquire))).filter(|at| !at.is_zero())
    }

    /// The number of the event that caused this state version of a runtime. Each event raises the state version by one.
    pub(crate) fn event_of(&self, runtime: usize, version: u64) -> Option<usize> {
        let nth = usize::try_from(version.checked_sub(self.runtimes[runtime].version + 1)?).ok()?;
        Some(nth * self.runtimes.len() + runtime)
    }

    /// An event with a payload of typical hook size.
    fn body(&self, n: usize) -> String {
        let event_type = ["running", "waiting_input"][n / self.runtimes.len() % 2];
        json!({
            "runtime_id": self.runtimes[n % self.runtimes.len()].id, "source": "hook", "event_type": event_type,
            "dedupe_key": format!("load-{n}"), "source_seq": n,
            "payload": {
                "session_id": "0198c2f4-7d3a-7c11-9a55-3d1f0b6f2a10", "cwd": "/home/user1/work/project",
                "transcript_path": "/home/user1/.claude/projects/work/0198c2f4-7d3a-7c11-9a55-3d1f0b6f2a10.jsonl",
                "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                "tool_input": {"command": "cargo test -p project -- --nocapture", "description": "Run the tests"},
            },
        })
        .to_string()
    }
}

/// Sends all events. Also returns the memory samples and the CPU use, in percent of one core, of process `pid`.
pub(crate) fn run(load: &EventLoad, socket: &Path, pid: Option<u32>) -> (SendStats, Vec<u64>, f64) {
    thread::scope(|scope| {
        let senders: Vec<_> =
            (0..load.connections).map(|connection| scope.spawn(move || send(load, socket, connection))).collect();
        let cpu = || pid.and_then(process::cpu_time).unwrap_or_default();
        let before = cpu();
        let memory = MEMORY_SAMPLE_POINTS.map(|share| {
            sleep_until(load.start + load.duration.mul_f64(share));
            pid.and_then(process::resident_memory).unwrap_or_default()
        });
        let mut all = SendStats::default();
        for sender in senders {
            all.add(sender.join().expect("the sender does not panic"));
        }
        let used = cpu().saturating_sub(before).as_secs_f64() / load.start.elapsed().as_secs_f64();
        (all, memory.to_vec(), used * 100.0)
    })
}

fn send(load: &EventLoad, socket: &Path, connection: usize) -> SendStats {
    let mut stream = LoadConnection::open(socket).expect("the daemon accepts connections");
    let mut sent = SendStats::default();
    for n in (connection..load.count).step_by(load.connections) {
        let body = load.body(n);
        let due = load.start + load.due(n);
        sleep_until(due);
        let start = Instant::now();
        let since_start = u64::try_from((start - load.start).as_nanos()).unwrap_or(u64::MAX);
        load.post_times[n].store(since_start.max(1), Ordering::Release);
        let status = stream.post(&body);
        sent.sent += 1;
        sent.start_delays.push(millis(start - due));
        match status {
            Ok(202) => {
                sent.to_ack.push(millis(start.elapsed()));
                sent.acknowledged.push(n);
            }
            Ok(status) => eprintln!("event {n} was answered with {status}"),
            Err(error) => {
                eprintln!("event {n}: {error}");
                stream = LoadConnection::open(socket).expect("the daemon accepts connections");
            }
        }
    }
    sent
}

impl SendStats {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.acknowledged.extend(other.acknowledged);
        self.to_ack.extend(other.to_ack);
        self.start_delays.extend(other.start_delays);
    }
}

fn sleep_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}
