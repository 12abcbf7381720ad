use std::time::Duration;

use agtmux_api::wire::{EventKind, Health, ListQuery, WatchEvent};
use tokio::time::{Instant, sleep_until};

use super::Plan;
use super::coalesce::Pending;
use super::reader::Reader;
use super::since::Changed;
use super::snapshot::Snapshot;
use super::stream::{self, Signal};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use crate::quit::Quit;

pub(super) async fn once(plan: &Plan) -> Result<Exit, CliError> {
    // Asked for first: whoever goes on from this number may see a change twice, but misses none.
    let health: Health = plan.daemon.get("/v1/health", &ListQuery::default()).await?;
    let events = Snapshot::take(plan).await?.into_events(health.seq);
    print(&events)?;
    Ok(Exit::Ok)
}

pub(super) async fn follow(plan: Plan) -> Result<Exit, CliError> {
    let mut quit = Quit::new()?;
    let mut reader = Reader::of_stdout();
    let mut lines = Lines::new(&plan).await?;
    let mut signals = stream::follow(plan.daemon.clone(), plan.query.clone());
    loop {
        tokio::select! {
            exit = quit.requested() => return Ok(exit),
            () = reader.left() => return Ok(Exit::Ok),
            signal = signals.recv() => match signal {
                Some(Signal::Event(event)) => lines.take_in(*event).await?,
                Some(Signal::Lost(reason)) => lost(&reason).tell(),
                Some(Signal::Failed(error)) => return Err(error),
                None => return Ok(Exit::Ok),
            },
            () = sleep_until(lines.due()), if lines.is_waiting() => lines.flush()?,
        }
    }
}

fn lost(reason: &str) -> Message {
    Message::new("the daemon went away; watch goes on when it is back").because(reason)
}

struct Lines<'a> {
    plan: &'a Plan,
    changed: Changed,
    pending: Pending,
    last_flush: Option<Instant>,
}

impl<'a> Lines<'a> {
    async fn new(plan: &'a Plan) -> Result<Self, CliError> {
        let changed = Changed::look(plan).await?;
        Ok(Self { plan, changed, pending: Pending::default(), last_flush: None })
    }

    async fn take_in(&mut self, event: WatchEvent) -> Result<(), CliError> {
        match event.kind {
            EventKind::Snapshot if event.item.as_ref().is_some_and(|item| !self.changed.item(item)) => Ok(()),
            EventKind::Snapshot => print(&[event]),
            EventKind::Reset => {
                // What was about to be told is part of the snapshot that follows.
                self.pending.clear();
                self.changed = Changed::look(self.plan).await?;
                print(&[event])
            }
            EventKind::Upsert | EventKind::Remove | EventKind::Task => self.tell_change(event),
        }
    }

    fn tell_change(&mut self, event: WatchEvent) -> Result<(), CliError> {
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

/// One line each, all in one write.
fn print(events: &[WatchEvent]) -> Result<(), CliError> {
    let mut text = String::new();
    for event in events {
        let line = serde_json::to_string(event).map_err(|error| CliError::io("write an event", error))?;
        text.push_str(&line);
        text.push('\n');
    }
    output::print(&text)
}
