//! `agtmux wait`: until agents are in a state. Nothing is asked again and again: the daemon tells.

mod waited_agents;

use std::io::IsTerminal;
use std::time::Duration;

use agtmux_api::config::ConfigDuration;
use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    ActionGuards, ActionSnapshot, ListQuery, ListResponse, ListScope, PaneItem, SnapshotAction, WatchEventKind,
};
use agtmux_core::sanitize;
use agtmux_core::state::State;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::pick;
use super::watch::stream::{self, WatchSignal};
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;
use waited_agents::{WaitOutcome, WaitedAgent, WaitedAgents};

/// The end of all waiting, for whoever sets no other.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// A daemon that is being restarted is back by then.
const RETRY_FOR: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

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
    timeout: Option<ConfigDuration>,
    /// Print what became of each as JSON
    #[arg(long)]
    json: bool,
}

fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.iter().map(|state| state.as_str())).try_map(|word| word.parse::<State>())
}

pub(crate) async fn run(args: WaitArgs) -> Result<CliExit, CliError> {
    let deadline = Instant::now() + args.timeout.map_or(NO_TIMEOUT, |span| span.0.min(NO_TIMEOUT));
    let mut quit = QuitSignals::new()?;
    let (verdict, crowd) = tokio::select! {
        done = wait_until(&args, deadline) => done?,
        exit = quit.received() => return Ok(exit),
    };
    report(&args, verdict, &crowd)
}

/// What is so already counts however short the time is.
async fn wait_until(args: &WaitArgs, deadline: Instant) -> Result<(WaitOutcome, WaitedAgents), CliError> {
    let daemon = DaemonClient::from_env()?;
    let mut crowd = WaitedAgents::resolve(&daemon, args).await?;
    if let Some(verdict) = crowd.outcome(args.any) {
        return Ok((verdict, crowd));
    }
    let verdict = match timeout_at(deadline, follow_changes(&daemon, args, &mut crowd)).await {
        Ok(verdict) => verdict?,
        Err(_) => WaitOutcome::TimedOut,
    };
    Ok((verdict, crowd))
}

async fn follow_changes(
    daemon: &DaemonClient,
    args: &WaitArgs,
    crowd: &mut WaitedAgents,
) -> Result<WaitOutcome, CliError> {
    let query = ListQuery { scope: Some(ListScope::Panes), ..ListQuery::default() };
    // Opened first: what changes while the list is read is told afterwards.
    let mut events = stream::follow(daemon.clone(), query);
    let mut progress = WaitProgress::new();
    crowd.update_from_list(&fetch_panes(daemon).await?);
    loop {
        progress.print_changes(crowd);
        if let Some(verdict) = crowd.outcome(args.any) {
            return Ok(verdict);
        }
        match events.recv().await {
            // It may have ended while nobody looked, or a place of it may be gone: the list tells.
            Some(WatchSignal::Event(event))
                if event.kind == WatchEventKind::Reset || crowd.needs_reread_after(&event) =>
            {
                crowd.update_from_list(&fetch_panes(daemon).await?);
            }
            Some(WatchSignal::Event(event)) => crowd.apply_event(&event),
            Some(WatchSignal::Disconnected(_)) => {}
            Some(WatchSignal::Failed(error)) => return Err(error),
            None => return Err(CliError::io("follow the agents", "the daemon's events have ended")),
        }
    }
}

async fn fetch_panes(daemon: &DaemonClient) -> Result<Vec<PaneItem>, CliError> {
    let listing: ListResponse<PaneItem> =
        retry_when_cut_off(async || daemon.get("/v1/panes", &ListQuery::default()).await).await?;
    Ok(listing.items)
}

/// A daemon that ends in the middle of an answer is mostly about to be there again: it is asked once more.
async fn retry_when_cut_off<T>(ask: impl AsyncFn() -> Result<T, CliError>) -> Result<T, CliError> {
    let patience = Instant::now() + RETRY_FOR;
    loop {
        match ask().await {
            Err(error) if is_cut_off(&error) && Instant::now() < patience => sleep(RETRY_PAUSE).await,
            answer => return answer,
        }
    }
}

fn is_cut_off(error: &CliError) -> bool {
    error.exit() == CliExit::DaemonFailed && error.code().is_none()
}

impl WaitedAgents {
    async fn resolve(daemon: &DaemonClient, args: &WaitArgs) -> Result<Self, CliError> {
        let mut given: Vec<Option<&str>> = args.references.iter().map(|reference| Some(reference.as_str())).collect();
        if given.is_empty() {
            given.push(None);
        }
        let mut agents = Vec::new();
        for given in given {
            let reference = pick::resolve_reference(daemon, given).await?;
            let guards = ActionGuards { r#ref: reference.clone(), ..ActionGuards::default() };
            let action = SnapshotAction { guards };
            let looked = retry_when_cut_off(async || daemon.act("/v1/actions/snapshot", &action).await).await;
            match looked {
                Ok(answer) => {
                    let seen = WaitedAgent::from_snapshot(&reference, &parse::<ActionSnapshot>(&answer)?);
                    agents.push(seen.unwrap_or_else(|| WaitedAgent::ended(&reference)));
                }
                // One that is named by its id has ended; others may live.
                Err(error) if reference.starts_with("runtime:") && error.code() == Some(ErrorCode::RefNotFound) => {
                    agents.push(WaitedAgent::ended(&reference));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self::new(agents, &args.states))
    }
}

fn report(args: &WaitArgs, verdict: WaitOutcome, crowd: &WaitedAgents) -> Result<CliExit, CliError> {
    if args.json {
        let agents: Vec<_> = crowd.agents.iter().map(WaitedAgent::json).collect();
        let word = match verdict {
            WaitOutcome::Reached => "reached",
            WaitOutcome::Gone => "gone",
            WaitOutcome::TimedOut => "timeout",
        };
        output::line(json!({"schema_version": 1, "outcome": word, "agents": agents}).to_string().as_bytes())?;
    } else {
        output::lines(&crowd.agents.iter().filter(|agent| agent.has_reached()).map(reached_line).collect::<Vec<_>>())?;
    }
    match verdict {
        WaitOutcome::Reached => Ok(CliExit::Ok),
        WaitOutcome::TimedOut => Err(timeout_error(args, crowd)),
        WaitOutcome::Gone => {
            let gone: Vec<String> = crowd.agents.iter().filter(|agent| agent.gone).map(current_line).collect();
            let message = CliMessage::new("an agent that was waited for is gone");
            let message = gone.into_iter().fold(message, CliMessage::because);
            Err(CliError::new(CliExit::Usage, message.hint("agtmux list panes")))
        }
    }
}

fn current_line(agent: &WaitedAgent) -> String {
    agent_line(agent, agent.state)
}

/// With the state for which it counts, whatever it does by now.
fn reached_line(agent: &WaitedAgent) -> String {
    agent_line(agent, agent.reached)
}

fn agent_line(agent: &WaitedAgent, state: Option<State>) -> String {
    let state = state.map_or("gone", State::as_str);
    sanitize::for_terminal(&format!("{} {} {} runtime:{}", state, agent.agent_type, agent.pane_id, agent.runtime_id))
}

/// Those that are not there yet are the reason, each with what it does instead.
fn timeout_error(args: &WaitArgs, crowd: &WaitedAgents) -> CliError {
    let states: Vec<&str> = args.states.iter().map(|state| state.as_str()).collect();
    let missing: Vec<&WaitedAgent> = crowd.agents.iter().filter(|agent| !agent.has_reached()).collect();
    let message = CliMessage::new(format!("the time is up: not {}", states.join(" or ")));
    let message = missing.iter().fold(message, |message, agent| message.because(current_line(agent)));
    let reference = missing.first().map_or("REF", |agent| agent.reference.as_str());
    CliError::failed(message.hint(format!("agtmux explain {reference}")))
}

/// For a person who looks on.
struct WaitProgress {
    is_seen: bool,
    told: Vec<String>,
}

impl WaitProgress {
    fn new() -> Self {
        Self { is_seen: std::io::stderr().is_terminal(), told: Vec::new() }
    }

    fn print_changes(&mut self, crowd: &WaitedAgents) {
        if !self.is_seen {
            return;
        }
        let lines: Vec<String> = crowd.agents.iter().map(current_line).collect();
        for line in lines.iter().filter(|line| !self.told.contains(line)) {
            eprintln!("{line}");
        }
        self.told = lines;
    }
}
