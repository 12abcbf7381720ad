use std::time::Duration;

use agtmux_api::wire::{WatchEvent, WatchEventKind};
use agtmux_client::StreamSignal;
use tokio::time::{Instant, sleep_until};

use super::WatchPlan;
use super::coalesce::PendingEvents;
use super::since::ChangedSince;
use super::stdout_watcher::StdoutWatcher;
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

pub(super) async fn once(plan: &WatchPlan) -> Result<CliExit, CliError> {
    let changed = ChangedSince::load(plan).await?;
    let mut signals = plan.daemon.watch(plan.query.clone());
    let mut events = Vec::new();
    loop {
        match signals.next().await? {
            StreamSignal::Event(event) => events.push(event),
            StreamSignal::CaughtUp => break,
            // The snapshot was cut off and is sent again.
            StreamSignal::Disconnected(_) => events.clear(),
        }
    }
    events.retain(|event| event.item.as_ref().is_none_or(|item| changed.item(item)));
    print(&events)?;
    Ok(CliExit::Ok)
}

pub(super) async fn follow(plan: WatchPlan) -> Result<CliExit, CliError> {
    let mut quit = QuitSignals::new()?;
    let mut reader = StdoutWatcher::start();
    let mut lines = JsonLines::new(&plan).await?;
    let mut signals = plan.daemon.watch(plan.query.clone());
    loop {
        tokio::select! {
            exit = quit.received() => return Ok(exit),
            () = reader.closed() => return Ok(CliExit::Ok),
            signal = signals.next() => match signal? {
                StreamSignal::Event(event) => lines.handle_event(event).await?,
                StreamSignal::CaughtUp => {}
                StreamSignal::Disconnected(reason) => disconnected(&reason).print_stderr(),
            },
            () = sleep_until(lines.due()), if lines.is_waiting() => lines.flush()?,
        }
    }
}

fn disconnected(reason: &str) -> CliMessage {
    CliMessage::new("the daemon disconnected; `agtmux watch` continues when the daemon is back").because(reason)
}

struct JsonLines<'a> {
    plan: &'a WatchPlan,
    changed: ChangedSince,
    pending: PendingEvents,
    last_flush: Option<Instant>,
}

impl<'a> JsonLines<'a> {
    async fn new(plan: &'a WatchPlan) -> Result<Self, CliError> {
        let changed = ChangedSince::load(plan).await?;
        Ok(Self { plan, changed, pending: PendingEvents::default(), last_flush: None })
    }

    async fn handle_event(&mut self, event: WatchEvent) -> Result<(), CliError> {
        match event.kind {
            WatchEventKind::Snapshot if event.item.as_ref().is_some_and(|item| !self.changed.item(item)) => Ok(()),
            WatchEventKind::Snapshot => print(&[event]),
            WatchEventKind::Reset => {
                // The snapshot that follows includes the pending changes.
                self.pending.clear();
                self.changed = ChangedSince::load(self.plan).await?;
                print(&[event])
            }
            _ => self.print_change(event),
        }
    }

    fn print_change(&mut self, event: WatchEvent) -> Result<(), CliError> {
        if self.plan.interval.is_none() {
            return print(&[event]);
        }
        if let Some(event) = self.pending.put(event) {
            print(&[event])?;
        }
        if self.due() <= Instant::now() { self.flush() } else { Ok(()) }
    }

    fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    fn due(&self) -> Instant {
        let interval = self.plan.interval.unwrap_or(Duration::ZERO);
        self.last_flush.map_or_else(Instant::now, |last| last + interval)
    }

    fn flush(&mut self) -> Result<(), CliError> {
        self.last_flush = Some(Instant::now());
        print(&self.pending.take())
    }
}

/// Prints one line per event. All lines go out in a single write.
fn print(events: &[WatchEvent]) -> Result<(), CliError> {
    let mut text = String::new();
    for event in events {
        let line = serde_json::to_string(event).map_err(|error| CliError::io("encode an event", error))?;
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() { Ok(()) } else { output::json_document(&text) }
}
