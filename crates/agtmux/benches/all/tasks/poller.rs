//! Polls tmux every two seconds for the session, its windows and panes, and their contents.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestTmuxServer, wait_for};

pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct TaskPoller(Arc<PollerShared>);

struct PollerShared {
    state: Mutex<PollerState>,
    /// Signals that the time of the next poll has changed, or that the poller stops.
    changed: Condvar,
}

/// When each window was first seen dead, and when its bell was first seen.
struct PollerState {
    dead: HashMap<String, Instant>,
    rang: HashMap<String, Instant>,
    next: Instant,
    stop: bool,
}

impl PollerShared {
    fn state(&self) -> MutexGuard<'_, PollerState> {
        self.state.lock().expect("the lock is not poisoned")
    }

    /// Waits until the next poll is due. Returns false when the poller stops.
    fn wait(&self) -> bool {
        let mut state = self.state();
        while !state.stop && Instant::now() < state.next {
            let left = state.next.saturating_duration_since(Instant::now());
            state = self.changed.wait_timeout(state, left).expect("the lock is not poisoned").0;
        }
        state.next = Instant::now() + POLL_INTERVAL;
        !state.stop
    }
}

impl TaskPoller {
    pub(crate) fn start(tmux: TestTmuxServer, session: &str) -> Self {
        let state = PollerState { dead: HashMap::new(), rang: HashMap::new(), next: Instant::now(), stop: false };
        let shared = Arc::new(PollerShared { state: Mutex::new(state), changed: Condvar::new() });
        let (looking, target) = (Arc::clone(&shared), format!("={session}"));
        thread::spawn(move || {
            while looking.wait() {
                poll(&tmux, &target, &looking);
            }
        });
        Self(shared)
    }

    /// Makes the next poll happen after this time. The interval to the poll after that one starts at the next poll.
    pub(crate) fn poll_after(&self, time: Duration) {
        self.0.state().next = Instant::now() + time;
        self.0.changed.notify_all();
    }

    pub(crate) fn wait_for_exit(&self, window: &str) -> Instant {
        wait_for("the poller to see the end", Duration::from_secs(30), || self.0.state().dead.get(window).copied())
    }

    pub(crate) fn wait_for_bell(&self, window: &str) -> Instant {
        wait_for("the poller to see the bell", Duration::from_secs(30), || self.0.state().rang.get(window).copied())
    }
}

impl Drop for TaskPoller {
    fn drop(&mut self) {
        self.0.state().stop = true;
        self.0.changed.notify_all();
    }
}

fn poll(tmux: &TestTmuxServer, target: &str, shared: &PollerShared) {
    if tmux.try_run(&["has-session", "-t", target]).is_err() {
        return;
    }
    let windows = tmux.try_run(&["list-windows", "-t", target, "-F", "#{window_id} #{@pi_bell_count}"]);
    let panes = tmux.try_run(&["list-panes", "-s", "-t", target, "-F", "#{window_id} #{pane_dead} #{pane_id}"]);
    for pane in panes.iter().flat_map(|panes| panes.lines()) {
        let _ = tmux.try_run(&["capture-pane", "-p", "-t", pane.rsplit(' ').next().unwrap_or_default(), "-S", "-80"]);
    }
    let now = Instant::now();
    let mut state = shared.state();
    for line in windows.iter().flat_map(|windows| windows.lines()) {
        if let Some((window, _)) = line.split_once(' ').filter(|(_, count)| !count.is_empty()) {
            state.rang.entry(window.to_owned()).or_insert(now);
        }
    }
    for line in panes.iter().flat_map(|panes| panes.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        if words.get(1) == Some(&"1") {
            state.dead.entry(words[0].to_owned()).or_insert(now);
        }
    }
}
