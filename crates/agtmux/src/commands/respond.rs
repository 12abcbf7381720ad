//! `agtmux respond`: an answer to what an agent asks.

use agtmux_api::wire::{ActionOutcome, Answer, Answered, RespondAction, Verified};
use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;
use clap::{ArgGroup, Args};

use super::guards::GuardArgs;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::message::Message;
use crate::output;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["answer", "text"]).required(true)))]
pub(crate) struct RespondArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// approve, deny, or the number of an option
    #[arg(value_parser = answer)]
    answer: Option<Answer>,
    /// Words of your own, where the dialog takes them
    #[arg(long)]
    text: Option<String>,
    /// Print what was asked and answered as JSON
    #[arg(long)]
    json: bool,
}

fn answer(word: &str) -> Result<Answer, String> {
    match (word, word.parse()) {
        ("approve", _) => Ok(Answer::Approve),
        ("deny", _) => Ok(Answer::Deny),
        (_, Ok(n)) if n > 0 => Ok(Answer::Option(n)),
        _ => Err("write approve, deny or the number of an option".into()),
    }
}

pub(crate) async fn run(args: Box<RespondArgs>) -> Result<Exit, CliError> {
    let RespondArgs { guards, answer, text, json } = *args;
    let Some(answer) = answer.or(text.map(Answer::Text)) else {
        return Err(CliError::new(Exit::Usage, Message::new("there is no answer").hint("agtmux respond REF approve")));
    };
    let daemon = Daemon::from_env()?;
    let action = RespondAction { guards: guards.resolved(&daemon).await?, answer };
    let reply = daemon.act("/v1/actions/respond", &action).await?;
    let done: ActionOutcome<Answered> = parse(&reply)?;
    if json {
        output::line(&reply)?;
    } else {
        output::lines(&told(&done))?;
    }
    match done.report.verified {
        Verified::Failed => {
            let message = Message::new("the dialog is still open").because("the keys were pressed and changed nothing");
            Err(CliError::new(Exit::Failed, message.hint(format!("agtmux attach {}", done.pane_id))))
        }
        _ => Ok(Exit::Ok),
    }
}

fn told(done: &ActionOutcome<Answered>) -> Vec<String> {
    let Answered { dialog, answered, verified, asks_now, .. } = &done.report;
    let mut lines = shown("asked    ", dialog);
    lines.push(format!("answered  {answered} ({}, {} ms)", verified.as_str(), done.latency_ms));
    lines.extend(asks_now.iter().flat_map(|next| shown("asks now ", next)));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn shown(word: &str, dialog: &Dialog) -> Vec<String> {
    let subject = dialog.subject.iter().flat_map(|subject| subject.lines()).map(|line| format!("  {line}"));
    let options = dialog.options.iter().map(|option| format!("  {}. {}", option.n, option.label));
    [format!("{word} {}", dialog.question)].into_iter().chain(subject).chain(options).collect()
}
