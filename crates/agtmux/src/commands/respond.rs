//! `agtmux respond`: answers an agent's open dialog.

use std::io::IsTerminal;

use agtmux_api::wire::{ActionGuards, ActionOutcome, DialogAnswer, RespondAction, RespondReport, Verification};
use agtmux_client::DaemonClient;
use agtmux_core::dialog::Dialog;
use agtmux_core::sanitize;
use agtmux_core::state::State;
use clap::{ArgGroup, Args};

use super::guards::{GuardArgs, snapshot};
use crate::error::{CliError, CliResult};
use crate::{input, message, output};

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["answer", "text"])),
    after_help = "\
Exit codes:
  0  the dialog was answered
  1  you entered no answer when asked, or the dialog is still open after agtmux pressed the keys
  2  ANSWER is missing, and there is no terminal to ask on
  5  the daemon rejected the answer

Examples:
  agtmux respond %12 approve
  agtmux respond claude 2
  agtmux respond %12 --text 'use the other file'"
)]
pub(crate) struct RespondArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// approve, deny, or the number of an option (1,3 selects options 1 and 3). If you omit ANSWER on a terminal,
    /// agtmux asks
    #[arg(value_parser = parse_answer)]
    answer: Option<DialogAnswer>,
    /// Answer with free text, if the dialog accepts it
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
    /// Approve even if agtmux shows only a part of the command. First read the whole command in the pane: agtmux attach
    /// REF
    #[arg(long)]
    accept_truncated: bool,
    /// Print the dialog and the answer as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn parse_answer(word: &str) -> Result<DialogAnswer, String> {
    let number = |word: &str| word.trim().parse().ok().filter(|n: &u32| *n > 0);
    let numbers: Option<Vec<u32>> = word.split(',').map(number).collect();
    match (word, numbers) {
        ("approve", _) => Ok(DialogAnswer::Approve),
        ("deny", _) => Ok(DialogAnswer::Deny),
        (_, Some(numbers)) => Ok(match numbers.as_slice() {
            [n] => DialogAnswer::Option(*n),
            _ => DialogAnswer::Options(numbers),
        }),
        _ => Err("expected approve, deny or the number of an option; separate several numbers with commas".into()),
    }
}

pub(crate) async fn run(args: Box<RespondArgs>) -> CliResult {
    let RespondArgs { guards: wanted, answer, text, accept_truncated, json } = *args;
    let daemon = DaemonClient::from_env()?;
    let mut guards = wanted.resolved(&daemon).await?;
    let answer = match answer.or(text.map(DialogAnswer::Text)) {
        Some(answer) => answer,
        None => ask_user(&daemon, &mut guards, json).await?,
    };
    let reference = guards.r#ref.clone();
    let action = RespondAction { guards, answer, accept_truncated };
    let reply = daemon.act("/v1/actions/respond", &action).await?;
    let done = output::parsed_answer(&reply, json, outcome_lines)?;
    match done.report.verified {
        Verification::Failed => Err(CliError::failed("the dialog is still open")
            .because("the keys were sent, but the dialog did not change")
            .hint(format!("agtmux attach {reference}"))),
        _ => Ok(()),
    }
}

/// Shows the dialog and asks for the answer. Adds the dialog's fingerprint to the guards. Does not use the snapshot as
/// a guard, because the snapshot may expire while the user reads a long plan.
async fn ask_user(daemon: &DaemonClient, guards: &mut ActionGuards, json: bool) -> CliResult<DialogAnswer> {
    let snapshot = snapshot(daemon, guards).await?;
    let pane = &snapshot.pane_id;
    let Some(dialog) = &snapshot.dialog else {
        let state = snapshot.state.map_or("no agent is in the pane", State::as_str);
        return Err(
            CliError::usage(format!("no dialog is open in {pane}: {state}")).hint("agtmux list panes --needs-action")
        );
    };
    let lines: Vec<String> =
        dialog_lines("asks     ", dialog).iter().map(|line| sanitize::for_terminal(line)).collect();
    match json {
        // With --json, stdout carries only JSON.
        true => lines.iter().for_each(|line| message::line(line)),
        false => output::lines(&lines)?,
    }
    let sees = std::io::stderr().is_terminal() && (json || std::io::stdout().is_terminal());
    if !std::io::stdin().is_terminal() || !sees {
        let (reference, fingerprint) = (&guards.r#ref, &dialog.fingerprint);
        let hint = format!("agtmux respond {reference} approve|deny|N|--text T --if-dialog {fingerprint}");
        let because = "cannot ask for an answer without a terminal";
        return Err(CliError::usage("no answer given").because(because).hint(hint));
    }
    guards.if_runtime = guards.if_runtime.take().or(snapshot.runtime_id);
    guards.if_dialog = guards.if_dialog.take().or(Some(dialog.fingerprint.clone()));
    read_answer()
}

fn read_answer() -> CliResult<DialogAnswer> {
    let none = || CliError::failed("no answer given; the dialog is still open");
    loop {
        let question = "approve, deny, a number, or 'text …' (Enter leaves the dialog open):";
        let line = input::ask(question)?.filter(|line| !line.is_empty()).ok_or_else(none)?;
        match (line.strip_prefix("text "), parse_answer(&line)) {
            (Some(text), _) => return Ok(DialogAnswer::Text(text.trim().to_owned())),
            (_, Ok(answer)) => return Ok(answer),
            (_, Err(why)) => message::line(&why),
        }
    }
}

fn outcome_lines(done: &ActionOutcome<RespondReport>) -> Vec<String> {
    let RespondReport { dialog, answered, verified, asks_now, .. } = &done.report;
    let mut lines = dialog_lines("asked    ", dialog);
    lines.push(format!("answered  {answered} ({}, {} ms)", verified.as_str(), done.latency_ms));
    lines.extend(asks_now.iter().flat_map(|next| dialog_lines("asks now ", next)));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

pub(super) fn dialog_lines(word: &str, dialog: &Dialog) -> Vec<String> {
    let subject = dialog.subject.iter().flat_map(|subject| subject.lines()).map(|line| format!("  {line}"));
    let cut = dialog.subject_truncated.then(|| "  (a part of this is not visible)".to_owned());
    let options = dialog.options.iter().map(|option| format!("  {}. {}", option.n, option.label));
    [format!("{word} {}", dialog.question)].into_iter().chain(subject).chain(cut).chain(options).collect()
}
