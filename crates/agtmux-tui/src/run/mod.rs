//! Runs the interface on a real terminal: reads keys and the event stream, draws, and carries out the effects.

mod audit;
mod clipboard;
mod memory_file;
mod program;
mod reports;
mod requests;
mod screen;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use agtmux_api::config::InterfaceConfig;
use agtmux_api::wire::{ListQuery, ListScope, WatchEvent};
use agtmux_client::{ClientError, DaemonClient, Follower, StreamSignal};
use crossterm::event::{Event, EventStream, MouseEventKind};
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

pub use screen::look_from_environment;

use crate::model::{TerminalLook, TuiModel, TuiNotice};
use crate::settings::{self, InterfaceSettingsError};
use crate::update::{self, TuiEffect, TuiMessage, TuiOutcome};
use memory_file::MemoryFile;
use screen::TuiScreen;

/// The file in the state directory that the interface remembers with.
const MEMORY_FILE: &str = "interface.json";

/// News of the fleet is drawn at most this often. Keys are drawn at once.
const FLEET_REDRAW: Duration = Duration::from_millis(100);

/// Reports writes to the terminal of a pane. The program that opens the interface implements it, because only some
/// platforms can watch terminals.
pub trait TerminalWatcher {
    /// Watches this terminal from now on, or none.
    fn watch(&mut self, tty: Option<&str>);
    /// Resolves when the watched terminal was written to.
    fn wrote(&mut self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

pub struct TuiOptions {
    pub daemon: DaemonClient,
    /// The agtmux program, to attach with.
    pub program: PathBuf,
    pub look: TerminalLook,
    pub settings: InterfaceConfig,
    /// Start with the waiting agents only.
    pub waiting_only: bool,
    /// Quit after the person went to a pane.
    pub quits_after_attach: bool,
    pub watcher: Box<dyn TerminalWatcher>,
}

/// How the interface ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuiExit {
    Quit,
    /// SIGTERM or SIGHUP.
    Terminated,
}

/// The interface cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] std::io::Error),
    #[error(transparent)]
    Settings(#[from] InterfaceSettingsError),
}

/// Shows the interface until the person quits it.
pub async fn run(options: TuiOptions) -> Result<TuiExit, TuiError> {
    let keys_of = settings::key_map(&options.settings)?;
    let background = std::env::var("COLORFGBG").ok();
    let roles = settings::colour_roles(&options.settings, background.as_deref())?;
    let signals = EndSignals::new()?;
    let memory = MemoryFile::open(options.daemon.paths.state_dir.join(MEMORY_FILE));
    let screen = TuiScreen::enter()?;
    let mut model = TuiModel::new(TerminalLook { roles, ..options.look.clone() }, options.waiting_only);
    model.keys = keys_of;
    model.restore(memory.saved().clone());
    let (outcomes_in, outcomes) = mpsc::unbounded_channel();
    let stream = Some(follow(&options.daemon));
    let keys = EventStream::new();
    let mut interface =
        Interface { options, screen, model, memory, outcomes_in, stream, has_quit: false, redraw_at: None };
    let exit = interface.run(signals, keys, outcomes).await;
    interface.save_memory();
    exit
}

struct EndSignals {
    terminate: Signal,
    hang_up: Signal,
    /// While another program uses the terminal, Ctrl-C is for that program.
    _interrupt: Signal,
}

impl EndSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            _interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

struct Interface {
    options: TuiOptions,
    screen: TuiScreen,
    model: TuiModel,
    memory: MemoryFile,
    outcomes_in: mpsc::UnboundedSender<TuiOutcome>,
    /// None after the stream has failed, until the person asks for another try.
    stream: Option<Follower<WatchEvent>>,
    has_quit: bool,
    redraw_at: Option<Instant>,
}

impl Interface {
    async fn run(
        &mut self,
        mut signals: EndSignals,
        mut keys: EventStream,
        mut outcomes: mpsc::UnboundedReceiver<TuiOutcome>,
    ) -> Result<TuiExit, TuiError> {
        self.draw()?;
        while !self.has_quit {
            let due = self.next_wake();
            let message = tokio::select! {
                () = signals.received() => return Ok(TuiExit::Terminated),
                key = keys.next() => match key {
                    Some(event) => from_terminal(event?),
                    // The terminal is gone.
                    None => return Ok(TuiExit::Terminated),
                },
                outcome = outcomes.recv() => outcome.map(TuiMessage::Done),
                signal = next_signal(&mut self.stream) => Some(TuiMessage::Stream(signal)),
                () = self.options.watcher.wrote() => Some(TuiMessage::PaneWrote),
                () = sleep_until(due) => Some(TuiMessage::Due),
            };
            let Some(message) = message else { continue };
            self.note_redraw(&message);
            let marks = self.model.marks.clone();
            let effects = update::update(&mut self.model, message, Timestamp::now());
            self.carry_out(effects, &mut keys).await?;
            if self.model.marks != marks {
                self.save_memory();
            }
            if self.redraw_at.is_some_and(|at| at <= Instant::now()) {
                self.draw()?;
            }
        }
        Ok(TuiExit::Quit)
    }

    /// Decides when the effect of a message is drawn. A write to a pane changes nothing yet.
    fn note_redraw(&mut self, message: &TuiMessage) {
        let now = Instant::now();
        let at = match message {
            TuiMessage::PaneWrote | TuiMessage::Stream(Ok(StreamSignal::Event(_))) => return,
            TuiMessage::Stream(Ok(StreamSignal::CaughtUp)) if self.model.fleet.is_complete() => now + FLEET_REDRAW,
            _ => now,
        };
        self.redraw_at = Some(self.redraw_at.map_or(at, |before| before.min(at)));
    }

    fn next_wake(&self) -> Instant {
        let now = Timestamp::now();
        let due = update::next_due(&self.model, now).map(|due| {
            let wait = Duration::try_from(due.duration_since(now)).unwrap_or(Duration::ZERO);
            // A little later, so that the clock has surely reached the moment.
            Instant::now() + wait + Duration::from_millis(1)
        });
        let never = Instant::now() + Duration::from_secs(24 * 3600);
        [due, self.redraw_at].into_iter().flatten().min().unwrap_or(never)
    }

    fn draw(&mut self) -> Result<(), TuiError> {
        self.redraw_at = None;
        let now = Timestamp::now();
        for effect in update::sync(&mut self.model, now) {
            self.start(effect);
        }
        let drawn = self.screen.draw(&self.model, now)?;
        for effect in update::drawn(&mut self.model, drawn, now) {
            self.start(effect);
        }
        Ok(())
    }

    async fn carry_out(&mut self, effects: Vec<TuiEffect>, keys: &mut EventStream) -> Result<(), TuiError> {
        for effect in effects {
            match effect {
                TuiEffect::Attach(agent) => {
                    // A reader of keys would take keys from the other program.
                    drop(std::mem::replace(keys, EventStream::new()));
                    let result = program::attach(self, &agent).await?;
                    self.has_quit |= result.is_ok() && self.options.quits_after_attach;
                    self.program_ended(keys, TuiOutcome::Attached { agent, result });
                }
                TuiEffect::RunProgram(call) => {
                    drop(std::mem::replace(keys, EventStream::new()));
                    let result = program::custom(self, &call).await?;
                    self.program_ended(keys, TuiOutcome::Ran { name: call.name, result });
                }
                TuiEffect::Copy(text) => self.screen.copy(&text)?,
                effect => self.start(effect),
            }
        }
        Ok(())
    }

    /// Reads keys again after another program has used the terminal.
    fn program_ended(&mut self, keys: &mut EventStream, outcome: TuiOutcome) {
        *keys = EventStream::new();
        update::update(&mut self.model, TuiMessage::Done(outcome), Timestamp::now());
        self.redraw_at = Some(Instant::now());
    }

    fn save_memory(&mut self) {
        let memory = self.model.remember(self.memory.saved());
        self.memory.save(memory);
    }

    /// Starts an effect that does not need the terminal.
    fn start(&mut self, effect: TuiEffect) {
        match effect {
            TuiEffect::Quit => self.has_quit = true,
            TuiEffect::WatchTerminal(tty) => self.options.watcher.watch(tty.as_deref()),
            TuiEffect::Connect => self.stream = Some(follow(&self.options.daemon)),
            effect => requests::spawn(&self.options.daemon, effect, &self.outcomes_in),
        }
    }
}

/// Follows all panes: a pane whose agent has ended stays in the list.
fn follow(daemon: &DaemonClient) -> Follower<WatchEvent> {
    daemon.watch(ListQuery { scope: Some(ListScope::Panes), all: true, ..ListQuery::default() })
}

/// The next signal of the event stream. Never resolves after the stream has failed.
async fn next_signal(stream: &mut Option<Follower<WatchEvent>>) -> Result<StreamSignal<WatchEvent>, TuiNotice> {
    let Some(follower) = stream else { return std::future::pending().await };
    match follower.next().await {
        Ok(signal) => Ok(signal),
        Err(error) => {
            *stream = None;
            Err(connection_notice(&error))
        }
    }
}

/// Why there is no connection to the daemon, and the next step.
fn connection_notice(error: &ClientError) -> TuiNotice {
    let hint = match error {
        ClientError::Version { .. } => "agtmux daemon restart",
        ClientError::NotRunning(_) | ClientError::AutostartForbidden(_) => "agtmux daemon start",
        ClientError::StartFailed { .. } | ClientError::StartTimeout(_) => "agtmux daemon logs",
        ClientError::Refused(refusal) => refusal.hint.as_deref().unwrap_or("agtmux daemon status"),
        _ => "agtmux daemon status",
    };
    let details = match error {
        ClientError::StartFailed { stderr, .. } => format!("{error}: {}", stderr.trim()),
        _ => error.to_string(),
    };
    TuiNotice::error(details, Some(hint.to_owned()))
}

fn from_terminal(event: Event) -> Option<TuiMessage> {
    match event {
        Event::Key(key) => Some(TuiMessage::Key(key)),
        Event::Mouse(event) if is_used(event.kind) => Some(TuiMessage::Mouse(event)),
        Event::Paste(text) => Some(TuiMessage::Paste(text)),
        Event::Resize(..) => Some(TuiMessage::Resized),
        Event::Mouse(_) | Event::FocusGained | Event::FocusLost => None,
    }
}

fn is_used(kind: MouseEventKind) -> bool {
    matches!(kind, MouseEventKind::Down(_) | MouseEventKind::ScrollUp | MouseEventKind::ScrollDown)
}
