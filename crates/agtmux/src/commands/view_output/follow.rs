//! `--follow`: prints new lines of the pane. Reads the pane only after a program has written to the pane's terminal.

use std::path::Path;
use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    ActionOutcome, ListQuery, ListScope, OutputAction, OutputReport, WatchEvent, WatchEventKind, WatchItem,
};
use agtmux_client::{DaemonClient, StreamSignal, parse};
use agtmux_tmux::platform::{self, Platform, PlatformSignal as Told, WatchToken};
use tokio::time::{Instant, sleep_until};

use super::new_lines::new_lines;
use super::{output, with_colour_reset};
use crate::commands::watch::stdout_watcher::StdoutWatcher;
use crate::error::{CliError, CliResult};
use crate::message::CliMessage;
use crate::quit_signals::QuitSignals;
use crate::terminal::StdoutTerminal;

/// How many of the last lines each read covers, so that lines that scroll off the screen between two reads are not
/// missed.
const LINES_PER_READ: u32 = 1000;
/// How long to wait after a write to the terminal, so that one read covers several writes in quick succession.
const SETTLE: Duration = Duration::from_millis(60);
/// How often to read the pane if writes to its terminal cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const NO_DEADLINE: Duration = Duration::from_secs(3600);
const PANE: WatchToken = WatchToken(1);

pub(super) async fn run(
    daemon: DaemonClient,
    request: OutputAction,
    first: ActionOutcome<OutputReport>,
    json: bool,
) -> CliResult {
    let mut quit = QuitSignals::new()?;
    let mut reader = StdoutWatcher::start();
    let mut writes = TerminalWrites::watch(first.report.tty.as_deref())?;
    let mut follower = OutputFollower::new(daemon.clone(), request, first, json);
    let query = ListQuery { scope: Some(ListScope::Panes), all: true, ..ListQuery::default() };
    let mut events = daemon.watch(query);
    loop {
        tokio::select! {
            exit = quit.received() => return Err(CliError::silent(exit)),
            () = reader.closed() => return Ok(()),
            () = writes.next() => follower.schedule_read(),
            signal = events.next() => if let StreamSignal::Event(event) = signal? {
                follower.handle_event(&event);
            },
            () = sleep_until(follower.due) => if follower.read_output().await? {
                return follower.finish().await;
            },
        }
    }
}

/// Reports writes to the pane's terminal.
struct TerminalWrites(Option<Platform>);

impl TerminalWrites {
    fn watch(tty: Option<&str>) -> CliResult<Self> {
        let Some(tty) = tty else { return Ok(Self(None)) };
        let platform = platform::open(platform::PlatformOptions::default());
        let platform = platform.map_err(|error| CliError::io("watch the pane's terminal", error))?;
        let watched = platform.watcher.watch_terminal(PANE, Path::new(tty)).is_ok();
        Ok(Self(Some(platform).filter(|platform| watched && platform.watcher.reports_output())))
    }

    async fn next(&mut self) {
        let Some(platform) = &mut self.0 else { return tokio::time::sleep(POLL_INTERVAL).await };
        match platform.signals.recv().await {
            Some(Told::TerminalGone(_)) | None => self.0 = None,
            Some(_) => {}
        }
    }
}

struct OutputFollower {
    daemon: DaemonClient,
    request: OutputAction,
    /// The first response. Each later read replaces the report in this response; the other fields stay.
    seen: ActionOutcome<OutputReport>,
    window: u32,
    /// The last known location of the pane, for a last read after the agent has ended.
    last_location: Option<String>,
    json: bool,
    due: Instant,
}

impl OutputFollower {
    fn new(daemon: DaemonClient, request: OutputAction, first: ActionOutcome<OutputReport>, json: bool) -> Self {
        let window = request.lines.unwrap_or(0).max(LINES_PER_READ);
        let mut request = OutputAction { again: true, lines: Some(window), ..request };
        if let Some(id) = &first.runtime_id {
            // Follow this agent, not the next one in the same pane.
            request.guards.r#ref = format!("runtime:{id}");
        }
        // The guards apply only to the first read.
        (request.guards.if_state, request.guards.if_updated_within_ms, request.guards.if_dialog) = (None, None, None);
        // Read again at once: the pane may have new output since the first read.
        Self { daemon, request, seen: first, window, last_location: None, json, due: Instant::now() }
    }

    fn schedule_read(&mut self) {
        self.due = self.due.min(Instant::now() + SETTLE);
    }

    /// Schedules a read of the pane, unless the event is about another pane.
    fn handle_event(&mut self, event: &WatchEvent) {
        let Some(WatchItem::Pane(item)) = &event.item else { return self.schedule_read() };
        let id = &item.identity;
        if id.pane_id.to_string() != self.seen.pane_id
            || (&id.target, &id.server) != (&self.seen.target, &self.seen.server)
        {
            return;
        }
        if event.kind != WatchEventKind::Remove {
            let location = agtmux_core::refs::PaneRef::Path {
                target: id.target.clone(),
                server: Some(id.server.clone()),
                session: id.session_name.clone(),
                window: id.window_id,
                pane: id.pane_id,
            };
            self.last_location = Some(location.to_string());
        }
        if event.kind == WatchEventKind::Remove || item.runtime_id != self.seen.runtime_id {
            self.schedule_read();
        }
    }

    /// Reads the pane and prints new lines. Returns true if the agent is gone.
    async fn read_output(&mut self) -> CliResult<bool> {
        self.due = Instant::now() + NO_DEADLINE;
        match self.daemon.act("/v1/actions/view-output", &self.request).await {
            Ok(answer) => {
                self.handle_answer(&answer)?;
                Ok(false)
            }
            Err(error) if is_gone(error.code()) => Ok(true),
            // The daemon is restarting: try again later.
            Err(error) if error.is_cut_off() || error.is_unreachable() => {
                self.due = Instant::now() + POLL_INTERVAL;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Prints the new lines. The history of a full-screen program must not be read, because the lines above its screen
    /// are older than the program. The history of other programs must be read. If this read did the opposite, prints
    /// nothing and schedules a new read at once.
    fn handle_answer(&mut self, answer: &[u8]) -> CliResult {
        let now: ActionOutcome<OutputReport> = parse(answer)?;
        let lines = (!now.report.full_screen).then_some(self.window);
        if lines != self.request.lines {
            (self.request.lines, self.due) = (lines, Instant::now());
            return Ok(());
        }
        self.show(answer, now.report)
    }

    /// Reads the pane a last time, because it may still show the agent's last output.
    async fn finish(&mut self) -> CliResult {
        if let Some(location) = self.last_location.take() {
            self.request.guards.r#ref = location;
            self.request.guards.if_runtime = None;
            if let Ok(answer) = self.daemon.act("/v1/actions/view-output", &self.request).await {
                self.handle_answer(&answer)?;
            }
        }
        CliMessage::new(format!("the program in {} has ended", self.seen.pane_id)).print_stderr();
        Ok(())
    }

    fn show(&mut self, answer: &[u8], now: OutputReport) -> CliResult {
        let before = std::mem::replace(&mut self.seen.report, now);
        let now = &self.seen.report;
        let fresh = new_lines(&before.lines, &now.lines);
        if fresh.is_empty() && before.full_screen == now.full_screen {
            return Ok(());
        }
        if self.json {
            return output::json_answer(answer);
        }
        if !now.full_screen {
            let fresh: Vec<String> = fresh.into_iter().cloned().collect();
            return output::styled_lines(&with_colour_reset(&fresh, self.request.ansi));
        }
        let clear = if StdoutTerminal::detect().is_tty { "\u{1b}[H\u{1b}[J" } else { "\n" };
        output::styled(clear)?;
        output::styled_lines(&with_colour_reset(&now.lines, self.request.ansi))
    }
}

fn is_gone(code: Option<ErrorCode>) -> bool {
    matches!(
        code,
        Some(ErrorCode::RefNotFound | ErrorCode::RuntimeNotFound | ErrorCode::RuntimeStale | ErrorCode::PaneNotFound)
    )
}
