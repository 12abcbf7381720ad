//! `agtmux ask`: sends a prompt, waits for the end of its turn, and prints the answer.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{ActionGuards, ActionOutcome, AnswerEnding, LastAction, LastReport, SendAction, SendReport};
use agtmux_client::{DaemonClient, parse};
use agtmux_core::state::State;
use clap::{ArgGroup, Args};
use serde::Serialize;
use serde_json::{Value, json};

use super::guards::{CLIENT_NAME, GuardArgs};
use super::last::{note_source, print_answer};
use super::text_args::TextArgs;
use super::wait::{WaitGoal, WaitPlan, WaitReport};
use crate::error::{CliError, CliExit, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["text", "stdin", "file"]).required(true)),
    after_help = "\
Only the answer goes to stdout, exactly as the agent wrote it (see `agtmux last --help`).

Exit codes:
  0    answered
  1    the agent has finished, but has written no answer
  2    the agent is gone, or wrong usage
  5    the prompt was rejected, or not submitted; the message says whether text was typed
  6    the agent asks something; answer the dialog with `agtmux respond`
  7    the turn ended with an error
  8    the turn was interrupted
  124  the time given with --timeout is up; the agent is still working

Examples:
  agtmux ask claude --text 'what does this repository do?' --timeout 5m
  git diff | agtmux ask codex --stdin
  agtmux ask %12 --text 'list the open questions' --json --jq '.last.turns[0].answer'"
)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    guards: GuardArgs,
    #[command(flatten)]
    text: TextArgs,
    /// Give up after this time, such as 90s or 10m [default: wait forever]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<ConfigDuration>,
    /// Print the result of the send, the outcome and the turn as JSON, also if there is no answer
    #[arg(long)]
    json: bool,
}

/// How an asked turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum AskOutcome {
    Answered,
    Asks,
    Error,
    Interrupted,
    Timeout,
    Gone,
}

pub(crate) async fn run(args: Box<AskArgs>) -> CliResult {
    let text = args.text.read()?;
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let send = SendAction { guards, text, ..SendAction::default() };
    let sent = daemon.act("/v1/actions/send", &send).await?;
    let outcome: ActionOutcome<SendReport> = parse(&sent)?;
    let Some(runtime) = &outcome.runtime_id else {
        let error = CliError::failed("cannot ask: no agent is in the pane, but the text was sent to it");
        return Err(error.hint("agtmux list panes   (shows the agents)"));
    };
    let reference = format!("runtime:{runtime}");
    let plan = WaitPlan {
        references: vec![reference.clone()],
        goals: vec![WaitGoal::Finished],
        any: false,
        timeout: args.timeout,
    };
    let waited = plan.wait().await?;
    let last = match waited.reached_state() {
        Some(_) => Some(daemon.act("/v1/actions/last", &LastAction { guards: named(&reference), turns: None }).await?),
        None => None,
    };
    let report = last.as_deref().map(parse::<ActionOutcome<LastReport>>).transpose()?;
    let ended = ask_outcome(&waited, report.as_ref());
    if args.json {
        let part = |answer: &[u8]| parse::<Value>(answer);
        let (sent, last) = (part(&sent)?, last.as_deref().map(part).transpose()?);
        output::json(&json!({"schema_version": SCHEMA_VERSION, "outcome": ended, "sent": sent, "last": last}))?;
    }
    match (ended, &report) {
        (AskOutcome::Answered, Some(last)) if args.json => has_answer(last),
        (AskOutcome::Answered, Some(last)) => {
            note_source(&last.report);
            print_answer(last)
        }
        _ => Err(ask_error(ended, &reference, waited, &plan)),
    }
}

fn named(reference: &str) -> ActionGuards {
    ActionGuards { r#ref: reference.to_owned(), client: Some(CLIENT_NAME.into()), ..ActionGuards::default() }
}

fn has_answer(last: &ActionOutcome<LastReport>) -> CliResult {
    let answered = last.report.turns.last().is_some_and(|turn| turn.answer.is_some());
    if answered { Ok(()) } else { CliExit::Failed.into_result() }
}

fn ask_outcome(waited: &WaitReport, last: Option<&ActionOutcome<LastReport>>) -> AskOutcome {
    let ending = last.and_then(|last| last.report.turns.last()).map(|turn| turn.ending);
    match waited.reached_state() {
        None if waited.timed_out() => AskOutcome::Timeout,
        None if waited.asks() => AskOutcome::Asks,
        None => AskOutcome::Gone,
        Some(State::Error) => AskOutcome::Error,
        // Some agents remove an interrupted turn from their conversation.
        Some(_) if last.is_some_and(|last| last.report.outdated) => AskOutcome::Interrupted,
        Some(_) if ending == Some(AnswerEnding::Interrupted) => AskOutcome::Interrupted,
        // Without hooks, a finished turn may be seen only as the change from running to idle.
        Some(State::Idle) if ending == Some(AnswerEnding::Open) => AskOutcome::Interrupted,
        Some(_) => AskOutcome::Answered,
    }
}

fn ask_error(ended: AskOutcome, reference: &str, waited: WaitReport, plan: &WaitPlan) -> CliError {
    let view = format!("agtmux view-output {reference}");
    match ended {
        AskOutcome::Error => CliError::new(CliExit::TurnFailed, "the turn ended with an error").hint(view),
        AskOutcome::Interrupted => CliError::new(CliExit::TurnInterrupted, "the turn was interrupted")
            .hint(format!("agtmux last {reference}   (what the agent wrote before that)"))
            .hint(view),
        AskOutcome::Timeout => CliError::new(CliExit::TimedOut, "timed out while waiting for the answer")
            .because("the agent is still working on the prompt")
            .hint(format!("agtmux wait {reference} --for finished && agtmux last {reference}")),
        AskOutcome::Gone => CliError::usage("the agent ended before it answered").hint("agtmux list panes"),
        AskOutcome::Asks | AskOutcome::Answered => match waited.into_exit(plan) {
            Err(error) => error,
            Ok(()) => CliError::failed("the agent has written no answer").hint(view),
        },
    }
}
