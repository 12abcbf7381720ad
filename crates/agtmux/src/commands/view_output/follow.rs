//! What is new, as it comes: looked for only when the terminal was written to.

use std::path::Path;
use std::time::Duration;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ActionOutcome, EventKind, Item, ListQuery, Output, OutputAction, Scope, WatchEvent};
use agtmux_tmux::platform::{self, Platform, Signal as Told, Token};
use tokio::time::{Instant, sleep_until};

use super::news::news;
use super::{finished, output};
use crate::commands::watch::reader::Reader;
use crate::commands::watch::stream::{self, Signal};
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::quit::Quit;
use crate::terminal::Terminal;

/// How far back a look goes, so that nothing is missed between two of them.
const WINDOW: u32 = 1000;
/// What is written in one go is shown in one go.
const SETTLE: Duration = Duration::from_millis(60);
/// Where the terminal does not tell.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const FAR_OFF: Duration = Duration::from_secs(3600);
const PANE: Token = Token(1);

pub(super) async fn run(
    daemon: Daemon,
    asked: OutputAction,
    first: ActionOutcome<Output>,
    json: bool,
) -> Result<Exit, CliError> {
    let mut quit = Quit::new()?;
    let mut reader = Reader::of_stdout();
    let mut writes = Writes::of(first.report.tty.as_deref())?;
    let mut follower = Follower::new(daemon.clone(), asked, first, json);
    let query = ListQuery { scope: Some(Scope::Panes), all: true, ..ListQuery::default() };
    let mut events = stream::follow(daemon, query);
    loop {
        tokio::select! {
            exit = quit.requested() => return Ok(exit),
            () = reader.left() => return Ok(Exit::Ok),
            () = writes.next() => follower.look_soon(),
            event = events.recv() => match event {
                Some(Signal::Event(event)) => follower.notice(&event),
                Some(Signal::Lost(_)) => {}
                Some(Signal::Failed(error)) => return Err(error),
                None => return Ok(Exit::Ok),
            },
            () = sleep_until(follower.due) => if follower.look().await? {
                return follower.end().await;
            },
        }
    }
}

/// When the pane's terminal is written to.
struct Writes(Option<Platform>);

impl Writes {
    fn of(tty: Option<&str>) -> Result<Self, CliError> {
        let Some(tty) = tty else { return Ok(Self(None)) };
        let platform = platform::open(platform::Options::default());
        let platform = platform.map_err(|error| CliError::io("watch the pane's terminal", error))?;
        let watched = platform.watcher.watch_terminal(PANE, Path::new(tty)).is_ok();
        Ok(Self(Some(platform).filter(|platform| watched && platform.watcher.reports_output())))
    }

    async fn next(&mut self) {
        let Some(platform) = &mut self.0 else { return tokio::time::sleep(LOOK_EVERY).await };
        match platform.signals.recv().await {
            Some(Told::TerminalGone(_)) | None => self.0 = None,
            Some(_) => {}
        }
    }
}

struct Follower {
    daemon: Daemon,
    asked: OutputAction,
    runtime_id: Option<String>,
    pane_id: String,
    target: String,
    server: String,
    before: Output,
    window: u32,
    /// Where it was seen last, for a last look when the agent is gone.
    place: Option<String>,
    json: bool,
    due: Instant,
}

impl Follower {
    fn new(daemon: Daemon, asked: OutputAction, first: ActionOutcome<Output>, json: bool) -> Self {
        let window = asked.lines.unwrap_or(0).max(WINDOW);
        let mut asked = OutputAction { again: true, lines: Some(window), ..asked };
        if let Some(id) = &first.runtime_id {
            // Whoever lives there next is not the one that is followed.
            asked.guards.r#ref = format!("runtime:{id}");
        }
        // What was true at the beginning need not stay so.
        (asked.guards.if_state, asked.guards.if_updated_within_ms, asked.guards.if_dialog) = (None, None, None);
        let ActionOutcome { runtime_id, pane_id, target, server, report: before, .. } = first;
        // What came since the first look is waiting.
        let due = Instant::now();
        Self { daemon, asked, runtime_id, pane_id, target, server, before, window, place: None, json, due }
    }

    fn look_soon(&mut self) {
        self.due = self.due.min(Instant::now() + SETTLE);
    }

    /// Only what is about this pane is a reason to look.
    fn notice(&mut self, event: &WatchEvent) {
        let Some(Item::Pane(item)) = &event.item else { return self.look_soon() };
        let id = &item.identity;
        if id.pane_id.to_string() != self.pane_id || (&id.target, &id.server) != (&self.target, &self.server) {
            return;
        }
        if event.kind != EventKind::Remove {
            let place = agtmux_core::refs::Ref::Place {
                target: id.target.clone(),
                server: Some(id.server.clone()),
                session: id.session_name.clone(),
                window: id.window_id,
                pane: id.pane_id,
            };
            self.place = Some(place.to_string());
        }
        if event.kind == EventKind::Remove || item.runtime_id != self.runtime_id {
            self.look_soon();
        }
    }

    /// Says whether that was the last one.
    async fn look(&mut self) -> Result<bool, CliError> {
        self.due = Instant::now() + FAR_OFF;
        match self.daemon.act("/v1/actions/view-output", &self.asked).await {
            Ok(answer) => {
                self.take_in(&answer)?;
                Ok(false)
            }
            Err(error) if is_gone(error.code()) => Ok(true),
            // A daemon that is being restarted is asked again.
            Err(error) if matches!(error.exit(), Exit::NoDaemon | Exit::DaemonFault) && error.code().is_none() => {
                self.due = Instant::now() + LOOK_EVERY;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A program that draws the whole screen has no history: what is above it is from before it.
    fn take_in(&mut self, answer: &[u8]) -> Result<(), CliError> {
        let now: ActionOutcome<Output> = parse(answer)?;
        let lines = (!now.report.full_screen).then_some(self.window);
        if lines != self.asked.lines {
            (self.asked.lines, self.due) = (lines, Instant::now());
            return Ok(());
        }
        self.show(answer, now.report)
    }

    /// Its last words may still be in the pane.
    async fn end(&mut self) -> Result<Exit, CliError> {
        if let Some(place) = self.place.take() {
            self.asked.guards.r#ref = place;
            self.asked.guards.if_runtime = None;
            if let Ok(answer) = self.daemon.act("/v1/actions/view-output", &self.asked).await {
                self.take_in(&answer)?;
            }
        }
        Message::new(format!("what ran in {} has ended", self.pane_id)).tell();
        Ok(Exit::Ok)
    }

    fn show(&mut self, answer: &[u8], now: Output) -> Result<(), CliError> {
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let fresh = news(&before.lines, &now.lines);
        if fresh.is_empty() && before.full_screen == now.full_screen {
            return Ok(());
        }
        if self.json {
            return output::line(answer);
        }
        if !now.full_screen {
            let fresh: Vec<String> = fresh.into_iter().cloned().collect();
            return output::lines(&finished(&fresh, self.asked.ansi));
        }
        let clear = if Terminal::of_stdout().is_tty { "\u{1b}[H\u{1b}[J" } else { "\n" };
        output::print(clear)?;
        output::lines(&finished(&now.lines, self.asked.ansi))
    }
}

fn is_gone(code: Option<ErrorCode>) -> bool {
    matches!(
        code,
        Some(ErrorCode::RefNotFound | ErrorCode::RuntimeNotFound | ErrorCode::RuntimeStale | ErrorCode::PaneNotFound)
    )
}
