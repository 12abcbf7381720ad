use std::time::Duration;

use agtmux_client::StreamSignal;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::keys::QuitKey;
use super::screen::AlternateScreen;
use super::snapshot::ListSnapshot;
use super::{DEFAULT_INTERVAL, WatchPlan};
use crate::error::{CliError, CliExit};
use crate::quit_signals::QuitSignals;
use crate::terminal::StdoutTerminal;
use crate::{output, render};

/// The ages in the table change without an event.
const REDRAW_EVERY: Duration = Duration::from_secs(1);
/// A tmux server that stops answering sends no event, so the list is read again after this time.
const REFRESH_AFTER: Duration = Duration::from_secs(5);

pub(super) async fn once(plan: &WatchPlan) -> Result<CliExit, CliError> {
    let snapshot = ListSnapshot::fetch(plan).await?;
    snapshot.target_errors.iter().for_each(|error| render::target_error(error).print_stderr());
    let terminal = StdoutTerminal::detect();
    output::lines(&snapshot.table(Timestamp::now()).lines(&terminal))?;
    Ok(CliExit::Ok)
}

/// Reads the full list after each change, so that the table is always consistent.
pub(super) async fn follow(plan: WatchPlan) -> Result<CliExit, CliError> {
    let mut quit = QuitSignals::new()?;
    let mut resized = signal(SignalKind::window_change()).map_err(|error| CliError::io("listen for signals", error))?;
    let mut ticks = interval(REDRAW_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut view = TableView::new(&plan, ListSnapshot::fetch(&plan).await?)?;
    let mut keys = view.keys();
    let mut signals = plan.daemon.watch(plan.query.clone());
    loop {
        tokio::select! {
            exit = quit.received() => return Ok(exit),
            () = keys.pressed() => return Ok(CliExit::Ok),
            _ = resized.recv() => view.draw()?,
            signal = signals.next() => match signal? {
                StreamSignal::Event(_) => view.is_stale = true,
                StreamSignal::CaughtUp => {}
                StreamSignal::Disconnected(reason) => view.show_disconnected(&reason)?,
            },
            () = sleep_until(view.due()), if view.is_stale => view.refresh().await?,
            _ = ticks.tick() => view.tick()?,
        }
    }
}

struct TableView<'a> {
    plan: &'a WatchPlan,
    snapshot: ListSnapshot,
    /// `None` in a pipe, where each table is printed below the previous one.
    screen: Option<AlternateScreen>,
    is_stale: bool,
    refreshed_at: Instant,
    notice: Option<String>,
    /// The last table printed to a pipe, without ages.
    drawn: Vec<String>,
}

impl<'a> TableView<'a> {
    fn new(plan: &'a WatchPlan, snapshot: ListSnapshot) -> Result<Self, CliError> {
        let screen = if StdoutTerminal::detect().is_tty { Some(AlternateScreen::enter()?) } else { None };
        let looked_at = Instant::now();
        let mut view =
            Self { plan, snapshot, screen, is_stale: false, refreshed_at: looked_at, notice: None, drawn: Vec::new() };
        view.draw()?;
        Ok(view)
    }

    fn keys(&self) -> QuitKey {
        if self.screen.is_some() { QuitKey::read_stdin() } else { QuitKey::none() }
    }

    fn due(&self) -> Instant {
        self.refreshed_at + self.plan.interval.unwrap_or(DEFAULT_INTERVAL)
    }

    async fn refresh(&mut self) -> Result<(), CliError> {
        self.refreshed_at = Instant::now();
        self.is_stale = false;
        match ListSnapshot::refetch(self.plan).await {
            Ok(snapshot) => {
                self.snapshot = snapshot;
                self.notice = None;
            }
            Err(error) if matches!(error.exit(), CliExit::NoDaemon | CliExit::DaemonFailed) => {
                self.notice = Some(error.headline());
            }
            Err(error) => return Err(error),
        }
        self.draw()
    }

    fn show_disconnected(&mut self, reason: &str) -> Result<(), CliError> {
        self.notice = Some(format!("the daemon disconnected ({reason}); this table is out of date"));
        self.draw()
    }

    fn tick(&mut self) -> Result<(), CliError> {
        self.is_stale |= self.refreshed_at.elapsed() >= REFRESH_AFTER;
        if self.screen.is_some() { self.draw() } else { Ok(()) }
    }

    fn draw(&mut self) -> Result<(), CliError> {
        let terminal = StdoutTerminal::detect();
        let lines = |now| compose(&self.snapshot, self.notice.as_deref(), &terminal, now);
        if let Some(screen) = &self.screen {
            return screen.draw(&lines(Timestamp::now()));
        }
        // In a pipe, print a new table only when more than the ages has changed.
        let ageless = lines(Timestamp::UNIX_EPOCH);
        if ageless == self.drawn {
            return Ok(());
        }
        let separator: &[String] = if self.drawn.is_empty() { &[] } else { &[String::new()] };
        output::lines(&[separator, &lines(Timestamp::now())].concat())?;
        self.drawn = ageless;
        Ok(())
    }
}

/// The rows of the table that fit, and the summary and notices below it.
fn compose(snapshot: &ListSnapshot, notice: Option<&str>, terminal: &StdoutTerminal, now: Timestamp) -> Vec<String> {
    let table = snapshot.table(now);
    let mut lines = table.lines(terminal);
    let mut below = vec![String::new(), render::summary_line(&snapshot.summary, terminal.colour)];
    below.extend(snapshot.target_errors.iter().map(|error| render::target_error(error).headline()));
    below.extend(notice.map(str::to_owned));
    if terminal.is_tty {
        shorten(&mut lines, table.len(), terminal.height.saturating_sub(below.len()));
    }
    lines.extend(below);
    lines.truncate(if terminal.is_tty { terminal.height } else { usize::MAX });
    lines
}

fn shorten(lines: &mut Vec<String>, rows: usize, room: usize) {
    if lines.len() > room && room > 0 {
        lines.truncate(room - 1);
        let shown = lines.len().saturating_sub(1);
        lines.push(format!("… {} more", rows - shown));
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
        assert_eq!(shortened(1), ["… 4 more"]);
    }
}
