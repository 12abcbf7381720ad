use std::time::Duration;

use agtmux_api::fleet_items::{FleetItems, ItemFilter};
use agtmux_api::wire::{ListQuery, ListResponse, ListScope, ListSummary, TargetError, WatchEvent};
use agtmux_client::{ClientError, FleetReplica, Follower, StreamSignal};
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::keys::QuitKey;
use super::screen::AlternateScreen;
use super::since::ChangedSince;
use super::{DEFAULT_INTERVAL, WatchPlan};
use crate::commands::sort::PaneSort;
use crate::error::{CliError, CliExit};
use crate::quit_signals::QuitSignals;
use crate::render::TextTable;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

/// How often to redraw the table if no event comes, because the ages in the table change all the time.
const REDRAW_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn once(plan: &WatchPlan) -> Result<CliExit, CliError> {
    let mut live = LiveTable::open(plan)?;
    while !live.next().await? {}
    live.refresh();
    let list = live.list(plan.sort, Timestamp::now());
    render::target_errors(&list.target_errors).for_each(|message| message.print_stderr());
    output::styled_lines(&list.table.lines(&StdoutTerminal::detect()))?;
    Ok(CliExit::Ok)
}

pub(super) async fn follow(plan: WatchPlan) -> Result<CliExit, CliError> {
    let mut quit = QuitSignals::new()?;
    let mut resized = signal(SignalKind::window_change()).map_err(|error| CliError::io("listen for signals", error))?;
    let mut ticks = interval(REDRAW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut live = LiveTable::open(&plan)?;
    while !tokio::select! {
        exit = quit.received() => return Ok(exit),
        changed = live.next() => changed?,
    } {}
    let mut view = TableView::new(&plan, &mut live)?;
    let mut keys = view.keys();
    loop {
        tokio::select! {
            exit = quit.received() => return Ok(exit),
            () = keys.pressed() => return Ok(CliExit::Ok),
            _ = resized.recv() => view.draw(&live)?,
            changed = live.next() => view.is_stale |= changed?,
            () = sleep_until(view.due()), if view.is_stale => view.refresh(&mut live)?,
            _ = ticks.tick() => if view.screen.is_some() { view.draw(&live)? },
        }
    }
}

/// The rows of one scope, kept up to date by the event stream.
struct LiveTable<'a> {
    plan: &'a WatchPlan,
    filter: ItemFilter,
    signals: Follower<WatchEvent>,
    replica: FleetReplica,
    /// The items that the table shows. Newer items appear at the next refresh.
    shown: FleetItems,
    notice: Option<String>,
}

/// The table, the summary and the errors at one moment.
struct WatchedList {
    table: TextTable,
    summary: ListSummary,
    target_errors: Vec<TargetError>,
}

impl<'a> LiveTable<'a> {
    fn open(plan: &'a WatchPlan) -> Result<Self, CliError> {
        let filter = ItemFilter::new(&plan.query, plan.scope).map_err(ClientError::Refused)?;
        let query = ListQuery {
            target: filter.target().map(str::to_owned),
            all: plan.query.all || needs_all_panes(plan),
            // The summary of windows and sessions counts the agents in their panes.
            scope: Some(ListScope::All),
            ..ListQuery::default()
        };
        let signals = plan.daemon.watch(query);
        Ok(Self { plan, filter, signals, replica: FleetReplica::default(), shown: FleetItems::default(), notice: None })
    }

    /// Waits for the next signal of the event stream. Returns true if the table must be drawn again.
    async fn next(&mut self) -> Result<bool, CliError> {
        let signal = self.signals.next().await?;
        let notice = match &signal {
            StreamSignal::Event(_) => return Ok(self.replica.receive(signal)),
            StreamSignal::CaughtUp => None,
            StreamSignal::Disconnected(reason) => {
                Some(format!("the daemon disconnected ({reason}); this table is out of date"))
            }
        };
        let noticed = self.replica.is_complete() && self.notice != notice;
        self.notice = notice;
        Ok(self.replica.receive(signal) || noticed)
    }

    fn refresh(&mut self) {
        self.shown = self.replica.items().clone();
    }

    fn list(&self, sort: PaneSort, now: Timestamp) -> WatchedList {
        let (fleet, filter) = (&self.shown, &self.filter);
        let changed = ChangedSince::new(self.plan.since, fleet.panes.values());
        match self.plan.scope {
            ListScope::Windows => {
                let mut list = fleet.list_windows(filter, now);
                list.items.retain(|window| changed.window(&window.identity));
                WatchedList::new(render::windows(&list.items), list)
            }
            ListScope::Sessions => {
                let mut list = fleet.list_sessions(filter, now);
                list.items.retain(|session| changed.session(&session.identity));
                WatchedList::new(render::sessions(&list.items, true), list)
            }
            ListScope::Targets => {
                let mut targets = fleet.list_targets(filter);
                targets.items.retain(|target| changed.target(&target.status));
                WatchedList::new(render::targets(&targets), fleet.list_panes(filter, now))
            }
            ListScope::Panes | ListScope::All => {
                let mut list = fleet.list_panes(filter, now);
                list.items.retain(|pane| changed.pane(pane));
                sort.sort(&mut list.items);
                WatchedList::new(render::panes(&list.items, now), list)
            }
        }
    }

    /// The lines to draw: the rows of the table that fit, then the summary and the notices. If not all rows fit, the
    /// agents that wait come first, regardless of --sort.
    fn compose(&self, terminal: &StdoutTerminal, now: Timestamp) -> Vec<String> {
        let WatchedList { table, summary, target_errors } = self.list(self.plan.sort, now);
        let mut below = vec![String::new(), render::summary_line(&summary, terminal.colour)];
        below.extend(render::target_errors(&target_errors).map(|message| message.headline()));
        below.extend(self.notice.clone());
        let lines = table.lines(terminal);
        if !terminal.can_redraw() {
            return [lines, below].concat();
        }
        let is_cut = lines.len() + below.len() > terminal.height;
        let lines = if is_cut { self.list(PaneSort::Attention, now).table.lines(terminal) } else { lines };
        fit(lines, below, terminal.height)
    }
}

impl WatchedList {
    fn new<T>(table: TextTable, list: ListResponse<T>) -> Self {
        Self { table, summary: list.summary, target_errors: list.target_errors }
    }
}

struct TableView {
    interval: Duration,
    /// `None` in a pipe and on a dumb terminal, where each table is printed below the previous one.
    screen: Option<AlternateScreen>,
    is_stale: bool,
    refreshed_at: Instant,
    /// The lines last printed to a pipe, without ages. A new table is printed only if its lines differ.
    drawn: Vec<String>,
}

impl TableView {
    fn new(plan: &WatchPlan, live: &mut LiveTable) -> Result<Self, CliError> {
        let screen = if StdoutTerminal::detect().can_redraw() { Some(AlternateScreen::enter()?) } else { None };
        let interval = plan.interval.unwrap_or(DEFAULT_INTERVAL);
        let mut view = Self { interval, screen, is_stale: false, refreshed_at: Instant::now(), drawn: Vec::new() };
        view.refresh(live)?;
        Ok(view)
    }

    fn keys(&self) -> QuitKey {
        if self.screen.is_some() { QuitKey::read_stdin() } else { QuitKey::none() }
    }

    fn due(&self) -> Instant {
        self.refreshed_at + self.interval
    }

    fn refresh(&mut self, live: &mut LiveTable) -> Result<(), CliError> {
        (self.is_stale, self.refreshed_at) = (false, Instant::now());
        live.refresh();
        self.draw(live)
    }

    fn draw(&mut self, live: &LiveTable) -> Result<(), CliError> {
        let terminal = StdoutTerminal::detect();
        if let Some(screen) = &self.screen {
            return screen.draw(&live.compose(&terminal, Timestamp::now()));
        }
        // In a pipe, print a new table only when more than the ages has changed.
        let ageless = live.compose(&terminal, Timestamp::UNIX_EPOCH);
        if ageless == self.drawn {
            return Ok(());
        }
        let separator: &[String] = if self.drawn.is_empty() { &[] } else { &[String::new()] };
        output::styled_lines(&[separator, &live.compose(&terminal, Timestamp::now())].concat())?;
        self.drawn = ageless;
        Ok(())
    }
}

/// Whether the table needs the list of all panes. The tables of windows and sessions need it with --since, because the
/// panes show which windows and sessions have changed. The table of targets needs it to count the panes of each target.
fn needs_all_panes(plan: &WatchPlan) -> bool {
    match plan.scope {
        ListScope::Windows | ListScope::Sessions => plan.since.is_some(),
        ListScope::Targets => true,
        ListScope::Panes | ListScope::All => false,
    }
}

/// On a terminal with few lines, the lines below the table are left out until this many rows of agents fit.
const MIN_ROWS: usize = 3;

/// Fits the table and the lines below it into the height of the terminal. The first line of the table is its header. If
/// space is short, rows of agents take priority over the lines below the table and over the header.
fn fit(mut table: Vec<String>, mut below: Vec<String>, height: usize) -> Vec<String> {
    let rows = table.len().saturating_sub(1);
    while !below.is_empty() && 1 + rows.min(MIN_ROWS) + below.len() > height {
        // The empty line goes first, then the last notice.
        let goes = if below[0].is_empty() { 0 } else { below.len() - 1 };
        below.remove(goes);
    }
    shorten(&mut table, rows, height.saturating_sub(below.len()));
    table.extend(below);
    table.truncate(height);
    table
}

fn shorten(table: &mut Vec<String>, rows: usize, room: usize) {
    if table.len() <= room {
        return;
    }
    let head = usize::from(room > 2);
    table.drain(..1 - head);
    let shown = if room > 1 { room - 1 - head } else { 1 };
    table.truncate(head + shown);
    if room > 1 {
        table.push(format!("… {} more", rows - shown));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let all: Vec<String> = ["HEAD", "a", "b", "c", "d"].map(String::from).to_vec();
        let shortened = |room| {
            let mut lines = all.clone();
            shorten(&mut lines, 4, room);
            lines
        };
        assert_eq!(shortened(5), all);
        assert_eq!(shortened(4), ["HEAD", "a", "b", "… 2 more"]);
        assert_eq!(shortened(3), ["HEAD", "a", "… 3 more"]);
        assert_eq!(shortened(2), ["a", "… 3 more"]);
        assert_eq!(shortened(1), ["a"]);
    }

    #[test]
    fn a_low_terminal_shows_agents_before_anything_else() {
        let lines = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let (table, below) = (lines(&["HEAD", "a", "b", "c", "d"]), lines(&["", "4 agents", "vm1 is down"]));
        let fitted = |height| fit(table.clone(), below.clone(), height);
        assert_eq!(fitted(8), lines(&["HEAD", "a", "b", "c", "d", "", "4 agents", "vm1 is down"]));
        assert_eq!(fitted(7), lines(&["HEAD", "a", "b", "… 2 more", "", "4 agents", "vm1 is down"]));
        assert_eq!(fitted(5), lines(&["HEAD", "a", "b", "… 2 more", "4 agents"]));
        assert_eq!(fitted(4), lines(&["HEAD", "a", "b", "… 2 more"]));
        assert_eq!(fitted(2), lines(&["a", "… 3 more"]));
        assert_eq!(fitted(1), lines(&["a"]));
    }
}
