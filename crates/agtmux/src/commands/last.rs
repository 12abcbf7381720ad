//! `agtmux last`: prints the last answer of an agent.

use agtmux_api::wire::{ActionOutcome, AnswerSource, AnsweredTurn, LastAction, LastReport};
use agtmux_client::{DaemonClient, parse};
use clap::Args;

use super::guards::GuardArgs;
use crate::error::{CliError, CliResult};
use crate::{message, output};

#[derive(Debug, Args)]
#[command(
    after_help = "agtmux reads the answer from the conversation that the agent itself stores, so the text is exact. If \
    agtmux does not know that conversation, it prints what the screen shows and says so on stderr; in JSON, `source` is \
    then `screen`.\n\n\
    Exit codes:\n  0  printed\n  1  the agent has written no answer in its last turn\n\n\
    Examples:\n  agtmux last claude\n  agtmux last %12 --turns 5\n  agtmux last codex | pbcopy"
)]
#[command(mut_arg("reference", |arg| arg.help("The agent: its name, type or session, a place (work:1.2), a pane (%12) or runtime:ID. The agent may have ended if its pane still exists")))]
#[command(mut_arg("request_ref", |arg| arg.hide(true)))]
pub(crate) struct LastArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// Print the last N turns, each with its prompt [default: only the last answer]
    #[arg(long, value_name = "N")]
    turns: Option<u32>,
    /// Print the turns as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: LastArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved_or_ended(&daemon).await?;
    let answer = daemon.act("/v1/actions/last", &LastAction { guards, turns: args.turns }).await?;
    let last: ActionOutcome<LastReport> = parse(&answer)?;
    if args.json {
        return output::json_answer(&answer);
    }
    note_source(&last.report);
    match args.turns {
        None => print_answer(&last),
        Some(_) => {
            output::verbatim(last.report.turns.iter().map(with_prompt).collect::<Vec<_>>().join("\n").as_bytes())
        }
    }
}

/// Prints the last answer as the agent wrote it.
pub(super) fn print_answer(last: &ActionOutcome<LastReport>) -> CliResult {
    match last.report.turns.last().and_then(|turn| turn.answer.as_ref()) {
        Some(text) => output::verbatim(text.as_bytes()),
        None => Err(CliError::failed(format!("the agent in {} has written no answer in its last turn", last.pane_id))
            .hint(format!("agtmux last {} --turns 5", reference(last)))
            .hint(format!("agtmux view-output {}", reference(last)))),
    }
}

fn reference(last: &ActionOutcome<LastReport>) -> String {
    last.runtime_id.as_ref().map_or_else(|| last.pane_id.clone(), |id| format!("runtime:{id}"))
}

/// Says on stderr that the text is not exact.
pub(super) fn note_source(report: &LastReport) {
    if report.source == AnswerSource::Screen {
        message::line("read from the screen, because agtmux does not know the conversation of this agent");
    }
    if report.outdated {
        message::line("the conversation of the agent does not contain the last prompt; this is the turn before it");
    }
}

/// The prompt, as quoted lines, and the answer.
fn with_prompt(turn: &AnsweredTurn) -> String {
    let quoted: String = turn.prompt.iter().flat_map(|text| text.lines()).map(|line| format!("> {line}\n")).collect();
    let answer = turn.answer.as_deref().unwrap_or("(no answer)");
    let blank = if quoted.is_empty() { "" } else { "\n" };
    format!("{quoted}{blank}{}\n", answer.trim_end_matches('\n'))
}
