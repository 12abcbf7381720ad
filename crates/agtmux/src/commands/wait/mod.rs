//! `agtmux wait`: until agents are in a state. Nothing is asked again and again: the daemon tells.

mod crowd;

use std::io::IsTerminal;
use std::time::Duration;

use agtmux_api::config::Span;
use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{EventKind, Guards, ListQuery, Listing, PaneItem, Scope, Snapshot, SnapshotAction};
use agtmux_core::sanitize;
use agtmux_core::state::State;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::pick;
use super::watch::stream::{self, Signal};
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;
use crate::quit::Quit;
use crowd::{Agent, Crowd, Verdict};

/// The end of all waiting, for whoever sets no other.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// A daemon that is being restarted is back by then.
const BACK_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 when it is so, 1 when the time is up, 2 when an agent that is waited for is gone, 3 without a \
    daemon. A state in which an agent is already counts. An agent that ends is gone, also if another one is started in \
    its pane. With --all each has to have been in one of the states since the beginning, not all at once."
)]
pub(crate) struct WaitArgs {
    /// The agents: runtime:ID, %12, a name, kind or session where there is one, or pane:TARGET/SESSION/@W/%P
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// The states to wait for
    #[arg(long = "for", value_name = "STATE", required = true, value_delimiter = ',', value_parser = states())]
    states: Vec<State>,
    /// Until one of several agents is there
    #[arg(long, conflicts_with = "all")]
    any: bool,
    /// Until each of them was there, which is the default
    #[arg(long)]
    all: bool,
    /// How long at the most, as 90s or 10m; for ever by default
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// Print what became of each as JSON
    #[arg(long)]
    json: bool,
}

fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.iter().map(|state| state.as_str())).try_map(|word| word.parse::<State>())
}

pub(crate) async fn run(args: WaitArgs) -> Result<Exit, CliError> {
    let deadline = Instant::now() + args.timeout.map_or(FOR_EVER, |span| span.0.min(FOR_EVER));
    let mut quit = Quit::new()?;
    let (verdict, crowd) = tokio::select! {
        done = until(&args, deadline) => done?,
        exit = quit.requested() => return Ok(exit),
    };
    tell(&args, verdict, &crowd)
}

/// What is so already counts however short the time is.
async fn until(args: &WaitArgs, deadline: Instant) -> Result<(Verdict, Crowd), CliError> {
    let daemon = Daemon::from_env()?;
    let mut crowd = Crowd::named(&daemon, args).await?;
    if let Some(verdict) = crowd.verdict(args.any) {
        return Ok((verdict, crowd));
    }
    let verdict = match timeout_at(deadline, changed(&daemon, args, &mut crowd)).await {
        Ok(verdict) => verdict?,
        Err(_) => Verdict::Late,
    };
    Ok((verdict, crowd))
}

async fn changed(daemon: &Daemon, args: &WaitArgs, crowd: &mut Crowd) -> Result<Verdict, CliError> {
    let query = ListQuery { scope: Some(Scope::Panes), ..ListQuery::default() };
    // Opened first: what changes while the list is read is told afterwards.
    let mut events = stream::follow(daemon.clone(), query);
    let mut progress = Progress::new();
    crowd.read(&listed(daemon).await?);
    loop {
        progress.tell(crowd);
        if let Some(verdict) = crowd.verdict(args.any) {
            return Ok(verdict);
        }
        match events.recv().await {
            // It may have ended while nobody looked, or a place of it may be gone: the list tells.
            Some(Signal::Event(event)) if event.kind == EventKind::Reset || crowd.is_unsure_after(&event) => {
                crowd.read(&listed(daemon).await?);
            }
            Some(Signal::Event(event)) => crowd.notice(&event),
            Some(Signal::Lost(_)) => {}
            Some(Signal::Failed(error)) => return Err(error),
            None => return Err(CliError::io("follow the agents", "the daemon's events have ended")),
        }
    }
}

async fn listed(daemon: &Daemon) -> Result<Vec<PaneItem>, CliError> {
    let listing: Listing<PaneItem> = steadily(async || daemon.get("/v1/panes", &ListQuery::default()).await).await?;
    Ok(listing.items)
}

/// A daemon that ends in the middle of an answer is mostly about to be there again: it is asked once more.
async fn steadily<T>(ask: impl AsyncFn() -> Result<T, CliError>) -> Result<T, CliError> {
    let patience = Instant::now() + BACK_WITHIN;
    loop {
        match ask().await {
            Err(error) if is_cut_off(&error) && Instant::now() < patience => sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

fn is_cut_off(error: &CliError) -> bool {
    error.exit() == Exit::DaemonFault && error.code().is_none()
}

impl Crowd {
    async fn named(daemon: &Daemon, args: &WaitArgs) -> Result<Self, CliError> {
        let mut given: Vec<Option<&str>> = args.references.iter().map(|reference| Some(reference.as_str())).collect();
        if given.is_empty() {
            given.push(None);
        }
        let mut agents = Vec::new();
        for given in given {
            let reference = pick::reference(daemon, given).await?;
            let guards = Guards { r#ref: reference.clone(), ..Guards::default() };
            let action = SnapshotAction { guards };
            let looked = steadily(async || daemon.act("/v1/actions/snapshot", &action).await).await;
            match looked {
                Ok(answer) => {
                    let seen = Agent::of(&reference, &parse::<Snapshot>(&answer)?);
                    agents.push(seen.unwrap_or_else(|| Agent::ended(&reference)));
                }
                // One that is named by its id has ended; others may live.
                Err(error) if reference.starts_with("runtime:") && error.code() == Some(ErrorCode::RefNotFound) => {
                    agents.push(Agent::ended(&reference));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self::new(agents, &args.states))
    }
}

fn tell(args: &WaitArgs, verdict: Verdict, crowd: &Crowd) -> Result<Exit, CliError> {
    if args.json {
        let agents: Vec<_> = crowd.agents.iter().map(Agent::json).collect();
        let word = match verdict {
            Verdict::Reached => "reached",
            Verdict::Gone => "gone",
            Verdict::Late => "timeout",
        };
        output::line(json!({"schema_version": 1, "outcome": word, "agents": agents}).to_string().as_bytes())?;
    } else {
        output::lines(&crowd.agents.iter().filter(|agent| agent.is_there()).map(reached).collect::<Vec<_>>())?;
    }
    match verdict {
        Verdict::Reached => Ok(Exit::Ok),
        Verdict::Late => Err(late(args, crowd)),
        Verdict::Gone => {
            let gone: Vec<String> = crowd.agents.iter().filter(|agent| agent.gone).map(line).collect();
            let message = Message::new("an agent that was waited for is gone");
            let message = gone.into_iter().fold(message, Message::because);
            Err(CliError::new(Exit::Usage, message.hint("agtmux list panes")))
        }
    }
}

fn line(agent: &Agent) -> String {
    described(agent, agent.state)
}

/// With the state for which it counts, whatever it does by now.
fn reached(agent: &Agent) -> String {
    described(agent, agent.reached)
}

fn described(agent: &Agent, state: Option<State>) -> String {
    let state = state.map_or("gone", State::as_str);
    sanitize::for_terminal(&format!("{} {} {} runtime:{}", state, agent.agent_type, agent.pane_id, agent.runtime_id))
}

/// Those that are not there yet are the reason, each with what it does instead.
fn late(args: &WaitArgs, crowd: &Crowd) -> CliError {
    let states: Vec<&str> = args.states.iter().map(|state| state.as_str()).collect();
    let missing: Vec<&Agent> = crowd.agents.iter().filter(|agent| !agent.is_there()).collect();
    let message = Message::new(format!("the time is up: not {}", states.join(" or ")));
    let message = missing.iter().fold(message, |message, agent| message.because(line(agent)));
    let reference = missing.first().map_or("REF", |agent| agent.reference.as_str());
    CliError::failed(message.hint(format!("agtmux explain {reference}")))
}

/// For a person who looks on.
struct Progress {
    is_seen: bool,
    told: Vec<String>,
}

impl Progress {
    fn new() -> Self {
        Self { is_seen: std::io::stderr().is_terminal(), told: Vec::new() }
    }

    fn tell(&mut self, crowd: &Crowd) {
        if !self.is_seen {
            return;
        }
        let lines: Vec<String> = crowd.agents.iter().map(line).collect();
        for line in lines.iter().filter(|line| !self.told.contains(line)) {
            eprintln!("{line}");
        }
        self.told = lines;
    }
}
