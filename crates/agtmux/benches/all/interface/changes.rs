//! Changes the states of agents by events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use agtmux_testkit::TestWorld;
use serde_json::{Value, json};

use crate::harness::connection::LoadConnection;
use crate::harness::world::list_panes;

/// Fifty changes a second.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct StateChanges {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicUsize>,
    started: Instant,
    thread: Option<JoinHandle<()>>,
}

impl StateChanges {
    /// Begins and ends turns of this many agents in turn until it is dropped.
    pub(crate) fn start(world: &TestWorld, agents: usize) -> Self {
        let items = list_panes(world, &[]);
        let runtimes: Vec<Value> =
            items.iter().step_by(items.len() / agents).map(|item| item["runtime_id"].clone()).collect();
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, count, daemon) = (Arc::clone(&stop), Arc::clone(&sent), world.socket());
        let thread = thread::spawn(move || {
            let mut connection = LoadConnection::open(&daemon).expect("the daemon runs");
            let mut due = Instant::now();
            for n in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let event_type = if (n / runtimes.len()).is_multiple_of(2) { "running" } else { "idle" };
                let runtime = &runtimes[n % runtimes.len()];
                let body = json!({"runtime_id": runtime, "source": "wrapper", "event_type": event_type,
                    "dedupe_key": format!("change-{n}")});
                let status = connection.post(&body.to_string()).expect("the daemon answers");
                assert!(status < 300, "the event is taken: {status}");
                count.fetch_add(1, Ordering::Relaxed);
                due += PAUSE;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        });
        Self { stop, sent, started: Instant::now(), thread: Some(thread) }
    }

    /// The changes per second so far.
    pub(crate) fn rate(&self) -> f64 {
        self.sent.load(Ordering::Relaxed) as f64 / self.started.elapsed().as_secs_f64()
    }
}

impl Drop for StateChanges {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
