//! Asks tmux every two seconds: is there a session, which windows, which panes, what do they show.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{TmuxServer, wait_for};

const EVERY: Duration = Duration::from_secs(2);

pub(crate) struct Poller(Arc<Mutex<Seen>>);

/// When a window was first seen dead, and when it was first seen to have rung.
#[derive(Default)]
struct Seen {
    dead: HashMap<String, Instant>,
    rang: HashMap<String, Instant>,
    stop: bool,
}

impl Poller {
    pub(crate) fn start(tmux: TmuxServer, session: &str) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (shared, target) = (Arc::clone(&seen), format!("={session}"));
        thread::spawn(move || {
            while !shared.lock().expect("no panic").stop {
                look(&tmux, &target, &shared);
                thread::sleep(EVERY);
            }
        });
        Self(seen)
    }

    pub(crate) fn dead(&self, window: &str) -> Instant {
        wait_for("the poller to see the end", Duration::from_secs(30), || {
            self.0.lock().expect("no panic").dead.get(window).copied()
        })
    }

    pub(crate) fn rang(&self, window: &str) -> Instant {
        wait_for("the poller to see the bell", Duration::from_secs(30), || {
            self.0.lock().expect("no panic").rang.get(window).copied()
        })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.0.lock().expect("no panic").stop = true;
    }
}

fn look(tmux: &TmuxServer, target: &str, seen: &Mutex<Seen>) {
    if tmux.try_run(&["has-session", "-t", target]).is_err() {
        return;
    }
    let windows = tmux.try_run(&["list-windows", "-t", target, "-F", "#{window_id} #{@pi_bell_count}"]);
    let panes = tmux.try_run(&["list-panes", "-s", "-t", target, "-F", "#{window_id} #{pane_dead} #{pane_id}"]);
    for pane in panes.iter().flat_map(|panes| panes.lines()) {
        let _ = tmux.try_run(&["capture-pane", "-p", "-t", pane.rsplit(' ').next().unwrap_or_default(), "-S", "-80"]);
    }
    let now = Instant::now();
    let mut seen = seen.lock().expect("no panic");
    for line in windows.iter().flat_map(|windows| windows.lines()) {
        if let Some((window, _)) = line.split_once(' ').filter(|(_, count)| !count.is_empty()) {
            seen.rang.entry(window.to_owned()).or_insert(now);
        }
    }
    for line in panes.iter().flat_map(|panes| panes.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        if words.get(1) == Some(&"1") {
            seen.dead.entry(words[0].to_owned()).or_insert(now);
        }
    }
}
