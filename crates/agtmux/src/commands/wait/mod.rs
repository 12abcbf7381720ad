//! `agtmux wait`: waits for states of agents on the event stream, without polling.

use std::io::IsTerminal;
use std::time::Duration;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::config::ConfigDuration;
use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ActionGuards, ActionSnapshot, ListQuery, ListScope, SnapshotAction};
use agtmux_client::{
    ClientError, DaemonClient, FleetReplica, StreamSignal, WaitGoals, WaitOutcome, WaitedAgent, WaitedAgents, parse,
};
use agtmux_core::sanitize;
use agtmux_core::state::State;
use clap::Args;
use clap::builder::TypedValueParser;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout_at};

use super::pick;
use crate::choices::one_of;
use crate::error::{CliError, CliExit, CliResult};
use crate::quit_signals::QuitSignals;
use crate::{message, output};

/// The time limit without --timeout: longer than any process runs.
const NO_TIMEOUT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How long to retry a request while the daemon restarts.
const RETRY_FOR: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
An agent that is already in the state counts at once. After `agtmux send`, wait ignores the end of an earlier turn: it \
waits for the turn that the sent text starts. If an agent ends before it reaches the state, wait exits with 2; with \
`--for finished`, an agent that ends has reached it. With \
--any, wait exits with 2 only if all agents end. A new agent in the same pane does not count.

With --all, the agents need not be in the state at the same time.

Exit codes:
  0  the state was reached
  1  the time given with --timeout is up
  2  an agent is gone, or wrong usage
  3  the daemon is not running and was not started
  6  an agent asks something, and its state (waiting_approval or waiting_input) is not one of the
     states in --for; answer the dialog with `agtmux respond`

Examples:
  agtmux wait %12 --for finished --timeout 10m
  agtmux wait claude codex --for waiting_approval --any")]
pub(crate) struct WaitArgs {
    /// The agents: %12, work:1.2, runtime:ID, or a name, type or session that matches one agent [default: ask]
    #[arg(value_name = "REF")]
    references: Vec<String>,
    /// Wait for one of these states, separated by commas. An agent is `finished` if it is completed or in error, if it
    /// became idle after it was running, or if it ended
    #[arg(long = "for", value_name = "STATE", required = true, value_delimiter = ',', value_parser = goals())]
    goals: Vec<WaitGoal>,
    /// Wait until one of the agents has reached one of the states
    #[arg(long, conflicts_with = "all")]
    any: bool,
    /// Wait until each agent has reached one of the states (default)
    #[arg(long)]
    all: bool,
    /// Give up after this time, such as 90s or 10m [default: wait forever]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<ConfigDuration>,
    /// Print the result for each agent as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitGoal {
    State(State),
    Finished,
}

pub(crate) const FINISHED: &str = "finished";

pub(crate) fn goals() -> impl TypedValueParser<Value = WaitGoal> {
    let states = State::ALL.iter().map(|state| (state.as_str(), WaitGoal::State(*state)));
    one_of(states.chain([(FINISHED, WaitGoal::Finished)]))
}

/// The agents to wait for, their states, and how long to wait.
#[derive(Debug)]
pub(crate) struct WaitPlan {
    pub(crate) references: Vec<String>,
    pub(crate) goals: Vec<WaitGoal>,
    pub(crate) any: bool,
    pub(crate) timeout: Option<ConfigDuration>,
}

/// How a wait ended.
#[derive(Debug, Serialize)]
pub(crate) struct WaitReport {
    outcome: WaitOutcome,
    agents: Vec<WaitedAgent>,
}

impl WaitPlan {
    fn wanted(&self) -> WaitGoals {
        let state = |goal: &WaitGoal| match goal {
            WaitGoal::State(state) => Some(*state),
            WaitGoal::Finished => None,
        };
        WaitGoals {
            states: self.goals.iter().filter_map(state).collect(),
            finished: self.goals.contains(&WaitGoal::Finished),
        }
    }

    /// Waits until the agents have reached a goal, the time is up, or the agents can no longer reach a goal.
    pub(crate) async fn wait(&self) -> CliResult<WaitReport> {
        let deadline = Instant::now() + self.timeout.map_or(NO_TIMEOUT, |span| span.0.min(NO_TIMEOUT));
        let mut quit = QuitSignals::new()?;
        tokio::select! {
            done = wait_until(self, deadline) => {
                let (outcome, waited) = done?;
                Ok(WaitReport { outcome, agents: waited.agents })
            }
            exit = quit.received() => Err(CliError::silent(exit)),
        }
    }
}

pub(crate) async fn run(args: WaitArgs) -> CliResult {
    let WaitArgs { references, goals, any, timeout, json, .. } = args;
    let plan = WaitPlan { references, goals, any, timeout };
    let result = plan.wait().await?;
    match json {
        true => {
            let WaitReport { outcome, agents } = &result;
            output::json(&json!({"schema_version": SCHEMA_VERSION, "outcome": outcome, "agents": agents}))?
        }
        false => output::lines(result.lines())?,
    }
    result.into_exit(&plan)
}

/// Waits as planned. Checks the current states first, so that a state that an agent already has counts even with
/// --timeout 0s.
async fn wait_until(plan: &WaitPlan, deadline: Instant) -> CliResult<(WaitOutcome, WaitedAgents)> {
    let daemon = DaemonClient::from_env()?;
    let mut waited = resolve_agents(&daemon, plan).await?;
    if let Some(outcome) = waited.outcome(plan.any) {
        return Ok((outcome, waited));
    }
    let outcome = match timeout_at(deadline, follow_changes(&daemon, plan, &mut waited)).await {
        Ok(outcome) => outcome?,
        Err(_) => WaitOutcome::TimedOut,
    };
    Ok((outcome, waited))
}

async fn follow_changes(daemon: &DaemonClient, plan: &WaitPlan, waited: &mut WaitedAgents) -> CliResult<WaitOutcome> {
    let query = ListQuery { scope: Some(ListScope::Panes), ..ListQuery::default() };
    let mut signals = daemon.watch(query);
    let mut replica = FleetReplica::default();
    let mut printed = Vec::new();
    loop {
        let signal = signals.next().await?;
        if let StreamSignal::Event(event) = &signal {
            waited.apply_event(event);
        }
        if replica.receive(signal) {
            waited.update_from_list(replica.items().panes.values());
        }
        print_changes(waited, &mut printed);
        if let Some(outcome) = waited.outcome(plan.any) {
            return Ok(outcome);
        }
    }
}

/// Retries when the daemon ends in the middle of a response, which happens during a restart.
async fn retry_when_cut_off<T>(ask: impl AsyncFn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let patience = Instant::now() + RETRY_FOR;
    loop {
        match ask().await {
            Err(error) if error.is_cut_off() && Instant::now() < patience => sleep(RETRY_PAUSE).await,
            answer => return answer,
        }
    }
}

/// The agents to wait for, with their current states.
async fn resolve_agents(daemon: &DaemonClient, plan: &WaitPlan) -> CliResult<WaitedAgents> {
    let mut given: Vec<Option<&str>> = plan.references.iter().map(|reference| Some(reference.as_str())).collect();
    if given.is_empty() {
        given.push(None);
    }
    let mut agents = Vec::new();
    for given in given {
        let reference = pick::resolve_reference(daemon, given).await?;
        let guards = ActionGuards { r#ref: reference.clone(), ..ActionGuards::default() };
        let action = SnapshotAction { guards };
        let response = retry_when_cut_off(async || daemon.act("/v1/actions/snapshot", &action).await).await;
        match response {
            Ok(answer) => {
                let seen = WaitedAgent::from_snapshot(&reference, &parse::<ActionSnapshot>(&answer)?);
                agents.push(seen.unwrap_or_else(|| WaitedAgent::ended(&reference)));
            }
            // A runtime id that is not found belongs to an ended agent.
            Err(error) if reference.starts_with("runtime:") && error.code() == Some(ErrorCode::RefNotFound) => {
                agents.push(WaitedAgent::ended(&reference));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(WaitedAgents::new(agents, plan.wanted()))
}

impl WaitReport {
    /// The state with which the only agent of the plan met the goal. `None` if it did not, or if it ended.
    pub(crate) fn reached_state(&self) -> Option<State> {
        self.agents.first().filter(|_| self.outcome == WaitOutcome::Reached)?.reached
    }

    pub(crate) fn timed_out(&self) -> bool {
        self.outcome == WaitOutcome::TimedOut
    }

    pub(crate) fn asks(&self) -> bool {
        self.outcome == WaitOutcome::Asks
    }

    /// One line per agent that has reached a goal. The line shows the state that met the goal, which may differ from
    /// the agent's current state.
    pub(crate) fn lines(&self) -> Vec<String> {
        let reached = self.agents.iter().filter(|agent| agent.has_reached());
        reached.map(|agent| agent_line(agent, agent.reached)).collect()
    }

    /// Converts the report to an exit code: 0 if the wait succeeded, otherwise an error with a message.
    pub(crate) fn into_exit(self, plan: &WaitPlan) -> CliResult {
        match self.outcome {
            WaitOutcome::Reached => Ok(()),
            WaitOutcome::TimedOut => Err(timeout_error(plan, &self.agents)),
            WaitOutcome::Gone => {
                let gone: Vec<String> = self.agents.iter().filter(|agent| agent.gone).map(current_line).collect();
                let error = CliError::usage("an agent ended before it reached the state");
                Err(gone.into_iter().fold(error, CliError::because).hint("agtmux list panes"))
            }
            WaitOutcome::Asks => Err(asks_error(&self.agents)),
        }
    }
}

fn current_line(agent: &WaitedAgent) -> String {
    let line = agent_line(agent, agent.state);
    if agent.turn_pending && !agent.gone { format!("{line} (from before the last text was sent)") } else { line }
}

fn agent_line(agent: &WaitedAgent, state: Option<State>) -> String {
    let state = state.map_or("gone", State::as_str);
    sanitize::for_terminal(&format!("{} {} {} runtime:{}", state, agent.agent_type, agent.pane_id, agent.runtime_id))
}

/// The timeout error. It lists the current state of each agent that has not reached a wanted state.
fn timeout_error(plan: &WaitPlan, agents: &[WaitedAgent]) -> CliError {
    let word = |goal: &WaitGoal| match goal {
        WaitGoal::State(state) => state.as_str(),
        WaitGoal::Finished => FINISHED,
    };
    let states: Vec<&str> = plan.goals.iter().map(word).collect();
    let missing: Vec<&WaitedAgent> = agents.iter().filter(|agent| !agent.has_reached()).collect();
    let error = CliError::failed(format!("timed out while waiting for {}", states.join(" or ")));
    let error = missing.iter().fold(error, |error, agent| error.because(current_line(agent)));
    let reference = missing.first().map_or("REF", |agent| agent.reference.as_str());
    error.hint(format!("agtmux explain {reference}"))
}

/// The error if an agent opened a dialog, which the user must answer first.
fn asks_error(agents: &[WaitedAgent]) -> CliError {
    let asking: Vec<&WaitedAgent> = agents.iter().filter(|agent| agent.asks()).collect();
    let error = CliError::new(CliExit::AgentAsks, "an agent opened a dialog and waits for an answer");
    let error = asking.iter().fold(error, |error, agent| error.because(current_line(agent)));
    let reference = asking.first().map_or("REF", |agent| agent.reference.as_str());
    error.hint(format!("agtmux respond {reference}")).hint("agtmux list panes --needs-action")
}

/// Prints state changes on stderr while waiting, if stderr is a terminal.
fn print_changes(waited: &WaitedAgents, printed: &mut Vec<String>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let lines: Vec<String> = waited.agents.iter().map(current_line).collect();
    for line in lines.iter().filter(|line| !printed.contains(line)) {
        message::line(line);
    }
    *printed = lines;
}
