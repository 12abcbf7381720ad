//! Calls a function whenever the fleet changes, for status lines and menu bars. Never starts the daemon.

use std::sync::Arc;
use std::time::Duration;

use agtmux_api::fleet_items::ItemFilter;
use agtmux_api::wire::{ListQuery, ListResponse, ListScope, PaneItem, WatchEvent};
use agtmux_client::{ClientError, DaemonClient, FleetReplica, StreamSignal};
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::watch::stdout_watcher::StdoutWatcher;
use crate::error::CliResult;
use crate::quit_signals::QuitSignals;

/// Changes are shown at most this often. tmux shows one line a second.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// A daemon that restarts is back within this time, so nothing changes to `off` in between.
const RESTART_TIME: Duration = Duration::from_secs(2);

/// The agents, or none while no daemon runs.
pub(crate) type FollowedFleet = Option<ListResponse<Arc<PaneItem>>>;

/// Calls `show` with the agents now and after each change, until the reader closes stdout. With `age_step`, also calls it
/// after this time without a change, because ages grow.
pub(crate) async fn follow(
    daemon: &DaemonClient,
    age_step: Option<Duration>,
    mut show: impl FnMut(FollowedFleet, Timestamp) -> CliResult,
) -> CliResult {
    let mut quit = QuitSignals::new()?;
    let mut reader = StdoutWatcher::start();
    let mut signals = daemon.watch_running(ListQuery { scope: Some(ListScope::All), ..ListQuery::default() });
    let filter = ItemFilter::new(&ListQuery::default(), ListScope::Panes).map_err(ClientError::Refused)?;
    let mut shown = ShownFleet::default();
    loop {
        let due = shown.due;
        tokio::select! {
            exit = quit.received() => return exit.into_result(),
            () = reader.closed() => return Ok(()),
            signal = signals.next() => shown.receive(signal?),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                let (now, at) = (Timestamp::now(), Instant::now());
                let list = shown.is_connected.then(|| shown.replica.items().list_panes(&filter, now));
                shown.due = age_step.filter(|_| list.is_some()).map(|step| at + step);
                shown.at = Some(at);
                show(list, now)?;
            }
        }
    }
}

#[derive(Default)]
struct ShownFleet {
    replica: FleetReplica,
    is_connected: bool,
    /// When the fleet was last shown.
    at: Option<Instant>,
    /// When to show it again.
    due: Option<Instant>,
}

impl ShownFleet {
    fn receive(&mut self, signal: StreamSignal<WatchEvent>) {
        let now = Instant::now();
        match &signal {
            StreamSignal::Event(_) => {}
            StreamSignal::CaughtUp => {
                self.is_connected = true;
                self.due = Some(self.at.map_or(now, |at| now.max(at + MIN_PAUSE)));
            }
            // Nothing was shown yet, so nothing is out of date.
            StreamSignal::Disconnected(_) if self.at.is_none() => self.due = Some(now),
            StreamSignal::Disconnected(_) if self.is_connected => {
                (self.is_connected, self.due) = (false, Some(now + RESTART_TIME));
            }
            StreamSignal::Disconnected(_) => {}
        }
        self.replica.receive(signal);
    }
}
