//! `agtmux handoff`: gives the last answer of one agent to another one as its next prompt.

use agtmux_api::wire::{
    ActionGuards, ActionOutcome, AnswerEnding, AnswerSource, LastAction, LastReport, SendAction, SendReport,
    Verification,
};
use agtmux_client::{DaemonClient, parse};
use clap::{ArgGroup, Args};

use super::guards::CLIENT_NAME;
use super::new::{self, NewArgs};
use super::pick;
use crate::error::{CliError, CliExit, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    override_usage = "agtmux handoff [OPTIONS] <FROM> <TO|--new <AGENT>>",
    group(ArgGroup::new("receiver").args(["to", "new"]).required(true)),
    after_help = "\
The answer is the text that `agtmux last FROM` prints. The note, if there is one, stands before it. The text goes only \
to the agent you name, and delivery is verified as with `agtmux send`. A screen is not handed over: agtmux must know the \
conversation of FROM.

Exit codes:
  0  delivered, with proof
  1  FROM has no complete answer, or delivery could not be verified
  5  the daemon rejected the request
  6  with --new: the new agent asks something; the text is kept until you have answered

Examples:
  agtmux handoff claude codex --note 'Review this plan:'
  agtmux handoff %3 --new gemini"
)]
pub(crate) struct HandoffArgs {
    /// The agent whose answer is handed over
    #[arg(value_name = "FROM")]
    from: String,
    /// The agent that gets the answer
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// Start this agent for it, in the current directory
    #[arg(long, value_name = "AGENT")]
    new: Option<String>,
    /// A text before the answer
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: HandoffArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = |reference: &str| ActionGuards {
        r#ref: reference.to_owned(),
        client: Some(CLIENT_NAME.into()),
        ..ActionGuards::default()
    };
    let last = daemon.act("/v1/actions/last", &LastAction { guards: guards(&args.from), turns: None }).await?;
    let text = with_note(args.note.as_deref(), &answer(&parse(&last)?, &args.from)?);
    if let Some(agent) = args.new {
        return new::run(Box::new(NewArgs::with_prompt(agent, text, args.json))).await;
    }
    let to = pick::resolve_reference(&daemon, args.to.as_deref()).await?;
    let send = SendAction { guards: guards(&to), text: Some(text), ..SendAction::default() };
    let sent = daemon.act("/v1/actions/send", &send).await?;
    let done: ActionOutcome<SendReport> =
        output::parsed_answer(&sent, args.json, |done| vec![super::send::outcome_line(done)])?;
    match done.report.verified {
        Verification::Confirmed => Ok(()),
        _ => CliExit::Failed.into_result(),
    }
}

/// The complete last answer.
fn answer(last: &ActionOutcome<LastReport>, from: &str) -> CliResult<String> {
    let none =
        |why: &str| CliError::failed(format!("nothing was handed over: {why}")).hint(format!("agtmux last {from}"));
    if last.report.source == AnswerSource::Screen {
        return Err(none("agtmux does not know the conversation of this agent, only its screen"));
    }
    let turn = last.report.turns.last().ok_or_else(|| none("the agent has not answered yet"))?;
    match (&turn.answer, turn.ending) {
        (Some(answer), AnswerEnding::Answered) if !last.report.outdated => Ok(answer.clone()),
        (_, AnswerEnding::Interrupted) => Err(none("the last turn of the agent was interrupted")),
        _ => Err(none("the last turn of the agent has no complete answer")),
    }
}

fn with_note(note: Option<&str>, answer: &str) -> String {
    note.map_or_else(|| answer.to_owned(), |note| format!("{note}\n\n{answer}"))
}
