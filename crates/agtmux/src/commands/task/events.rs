//! `agtmux task events`: prints past task events and follows new ones.

use agtmux_api::wire::{TaskEvent, TaskEvents, TaskEventsQuery, TaskStreamItem};
use agtmux_client::{DaemonClient, Follower, StreamSignal};
use agtmux_core::task::{ConversationMessage, HarnessLine};
use clap::Args;
use jiff::tz::TimeZone;
use serde_json::json;

use super::session_args::{NamedSessionArgs, socket};
use crate::commands::watch::stdout_watcher::StdoutWatcher;
use crate::error::{CliError, CliResult};
use crate::output;
use crate::quit_signals::QuitSignals;

#[derive(Debug, Args)]
#[command(
    after_help = "With --follow, each event is printed exactly once, even if the daemon restarts. To continue later, pass the \
    last sequence number with --after.\n\n\
    Example:\n  agtmux task events --follow --json"
)]
pub(crate) struct TaskEventsArgs {
    #[command(flatten)]
    session: NamedSessionArgs,
    /// Show the events of every session; this is the default if no session is given
    #[arg(long)]
    all: bool,
    /// Keep printing new events
    #[arg(long, short)]
    follow: bool,
    /// Show only events after this sequence number
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Show at most the newest N events
    #[arg(long, value_name = "N", default_value = "20")]
    limit: u32,
    /// Print each event except `started` as a message for the agent, in one line of JSON. The program that reads this
    /// output adds the message to the agent's conversation. With --json, print every event, also `started`, as an object
    /// with `seq`, `at`, `notice` and `message`
    #[arg(long)]
    conversation: bool,
    /// Print JSON; with --follow or --conversation, one line per event
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: TaskEventsArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let session = args.session.session_name().filter(|_| !args.all);
    let query = TaskEventsQuery {
        socket: session.as_ref().map(|_| socket().display().to_string()),
        session,
        after: args.after,
        limit: Some(args.limit).filter(|_| args.after.is_none()),
        ..TaskEventsQuery::default()
    };
    let mut printer = TaskEventPrinter {
        json: args.json,
        conversation: args.conversation,
        zone: TimeZone::system(),
        held: Vec::new(),
    };
    if args.follow {
        return forward(daemon, query, &mut printer).await;
    }
    let events = fetch_all(&daemon, query).await?;
    if args.json && !args.conversation {
        return output::json(&events);
    }
    for event in &events.items {
        printer.print(event)?;
    }
    printer.finish()
}

/// Fetches all events after `query.after`. One response holds a limited number of events, so this function requests
/// further pages until no event is left.
async fn fetch_all(daemon: &DaemonClient, mut query: TaskEventsQuery) -> CliResult<TaskEvents> {
    let mut events: TaskEvents = daemon.get("/v1/tasks/events", &query).await?;
    while query.after.is_some() && query.after != Some(events.seq) {
        query.after = Some(events.seq);
        let more: TaskEvents = daemon.get("/v1/tasks/events", &query).await?;
        events.seq = more.seq;
        events.generated_at = more.generated_at;
        events.items.extend(more.items);
    }
    Ok(events)
}

async fn forward(daemon: DaemonClient, query: TaskEventsQuery, printer: &mut TaskEventPrinter) -> CliResult {
    let (mut quit, mut reader) = (QuitSignals::new()?, StdoutWatcher::start());
    let mut events = follow(&daemon, query).await?;
    loop {
        tokio::select! {
            exit = quit.received() => return Err(CliError::silent(exit)),
            () = reader.closed() => return Ok(()),
            signal = events.next() => match signal? {
                StreamSignal::Event(TaskStreamItem::Event(event)) => printer.print(&event)?,
                StreamSignal::Event(TaskStreamItem::Over { .. }) => return Ok(()),
                StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
            },
        }
    }
}

struct TaskEventPrinter {
    json: bool,
    conversation: bool,
    zone: TimeZone,
    /// Events that the daemon marked as collapsed and that are not printed yet. With --conversation, the message of the
    /// next event that is not collapsed includes these events. Without --conversation, the next event of any kind
    /// discards them.
    held: Vec<TaskEvent>,
}

impl TaskEventPrinter {
    fn print(&mut self, event: &TaskEvent) -> CliResult {
        if self.conversation {
            return self.print_conversation(event);
        }
        if self.json {
            return output::json(&json!(event));
        }
        self.held.clear();
        if event.collapsed {
            self.held.push(event.clone());
            return Ok(());
        }
        self.show(event)
    }

    /// Must be called after the last event. Without --conversation, prints the collapsed event that is still held,
    /// because no later event has discarded it.
    fn finish(&mut self) -> CliResult {
        let held = std::mem::take(&mut self.held);
        // A collapsed event alone makes no conversation message.
        held.iter().filter(|_| !self.conversation).try_for_each(|event| self.show(event))
    }

    fn print_conversation(&mut self, event: &TaskEvent) -> CliResult {
        let message = self.take_message(event);
        if self.json {
            return output::json(&json!(HarnessLine::of(event, message)));
        }
        message.map_or(Ok(()), |message| output::json(&json!(message)))
    }

    /// The message of this event and the collapsed events before it. `None` for a collapsed event, which is held, and for
    /// an event without a message.
    fn take_message(&mut self, event: &TaskEvent) -> Option<ConversationMessage> {
        self.held.push(event.clone());
        if event.collapsed {
            return None;
        }
        let held = std::mem::take(&mut self.held);
        ConversationMessage::of(&held, session_id(&held).as_deref())
    }

    fn show(&self, event: &TaskEvent) -> CliResult {
        let at = event.at.to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string();
        let mut lines = vec![format!("{at}  {}", event.message)];
        lines.extend(event.recent_output.iter().map(|line| format!("            {}", line)));
        output::lines(lines)
    }
}

/// The harness's own id for the session of these events.
fn session_id(events: &[TaskEvent]) -> Option<String> {
    let known = std::env::var("PI_SESSION_ID").ok();
    events.first()?.session.session_id(known.as_deref()).map(str::to_owned)
}

/// Streams events, and continues after a restart of the daemon.
pub(super) async fn follow(daemon: &DaemonClient, mut query: TaskEventsQuery) -> CliResult<Follower<TaskStreamItem>> {
    query.limit = None;
    let after = match query.after.take() {
        Some(after) => after,
        // The start position must be known, or events during a restart of the daemon would be missed.
        None => {
            let newest = TaskEventsQuery { limit: Some(1), ..Default::default() };
            daemon.get::<TaskEvents>("/v1/tasks/events", &newest).await?.seq
        }
    };
    Ok(daemon.follow("/v1/tasks/events/stream", query, Some(after)))
}
