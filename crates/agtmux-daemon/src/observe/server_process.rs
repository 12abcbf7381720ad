//! The process of a local tmux server: whether it is alive, and whether it was active since the last query.

use std::time::{Duration, Instant};

use agtmux_core::ids::Generation;
use agtmux_tmux::platform::ProcessTable;

use super::signal_router::WatchGuard;

/// How long the tmux client of a query takes to exit. The server is active during this time, but that activity is not a
/// sign of a change.
pub(super) const CLIENT_EXIT_TIME: Duration = Duration::from_millis(30);

#[derive(Default)]
pub(super) struct ServerProcess {
    /// The generation whose process is watched, and the watch.
    watch: Option<(Generation, WatchGuard)>,
    /// How often the server's process had woken up, counted after the client of our last query exited. While that
    /// client exits, `count_wakeups_at` is the time of the next count.
    wakeups: Option<u64>,
    count_wakeups_at: Option<Instant>,
    /// The process has ended. It may still be a zombie with a pid.
    ended: bool,
}

impl ServerProcess {
    pub(super) fn new(generation: Generation, watch: Option<WatchGuard>) -> Self {
        Self { watch: watch.map(|guard| (generation, guard)), ..Self::default() }
    }

    pub(super) fn is_watched(&self, generation: Generation) -> bool {
        self.watch.as_ref().is_some_and(|(watched, _)| *watched == generation)
    }

    pub(super) fn note_end(&mut self) {
        self.ended = true;
    }

    pub(super) fn is_alive(&self, generation: Generation, processes: &dyn ProcessTable) -> bool {
        // A process table that cannot be read does not mean that the server has ended.
        !self.ended && !processes.try_process(generation.pid).is_ok_and(|process| process.is_none())
    }

    /// Notes that our client has queried the server and exits now.
    pub(super) fn note_query(&mut self, now: Instant) {
        self.count_wakeups_at = Some(now + CLIENT_EXIT_TIME);
    }

    pub(super) fn is_client_exiting(&self) -> bool {
        self.count_wakeups_at.is_some()
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.count_wakeups_at
    }

    /// Reads the wake-up count if our client has exited by now.
    pub(super) fn count_wakeups(&mut self, generation: Generation, processes: &dyn ProcessTable, now: Instant) {
        if self.count_wakeups_at.take_if(|at| *at <= now).is_some() {
            self.wakeups = processes.wakeups(generation.pid);
        }
    }

    /// Whether the server was active since our client exited. Returns false while the client exits, because its exit
    /// makes the server active. A later listing finds changes from that time.
    pub(super) fn has_run(&self, generation: Generation, processes: &dyn ProcessTable) -> bool {
        !self.is_client_exiting() && processes.wakeups(generation.pid) != self.wakeups
    }
}
