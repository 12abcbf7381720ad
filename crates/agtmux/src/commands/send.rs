//! `agtmux send`: sends text or keys to an agent and reports whether the text was submitted.

use agtmux_api::config::ConfigDuration;
use agtmux_api::wire::{ActionOutcome, InputProfile, SendAction, SendReport, Verification, VerifiedBy};
use agtmux_client::{DaemonClient, parse};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::guards::GuardArgs;
use super::text_args::TextArgs;
use super::wait::{self, WaitGoal, WaitPlan};
use crate::choices::one_of;
use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["text", "stdin", "file"])),
    after_help = "\
With --wait, `agtmux send` submits the text and then waits like `agtmux wait`: until the turn that this text starts has \
ended. The end of an earlier turn does not count.

Exit codes:
  0  submitted; or typed with Enter, but agtmux found no proof that the agent took the text (the output
     says which; see `verified` in the JSON)
  5  refused, or the text was seen in the input box after every Enter; the message says whether agtmux
     typed anything
With --wait also:
  1  the time given with --timeout is up
  2  the agent is gone, or wrong usage
  6  the agent asks something, and its state (waiting_approval or waiting_input) is not one of the
     states in --for; answer the dialog with `agtmux respond`

Examples:
  agtmux send %12 --text 'run the tests'
  agtmux send %12 --text 'run the tests' --wait --timeout 20m
  git diff | agtmux send claude --stdin
  agtmux send codex --key Escape"
)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    guards: GuardArgs,
    #[command(flatten)]
    text: TextArgs,
    /// Press this key, such as Escape, C-u or Down. If you also send a text, the key is pressed between the text and
    /// Enter. You can give this option several times
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Leave the text in the input box; do not press Enter
    #[arg(long, requires = "what")]
    no_enter: bool,
    /// What receives the text: the input box of an agent (tui) or a shell (shell)
    #[arg(long, value_parser = one_of([("tui", InputProfile::Tui), ("shell", InputProfile::Shell)]))]
    profile: Option<InputProfile>,
    /// After submitting the text, wait until the agent has finished, or has reached a state given with --for
    #[arg(long, requires = "what", conflicts_with = "no_enter")]
    wait: bool,
    /// With --wait: wait for one of these states, as `agtmux wait` does; separate several states with commas
    #[arg(
        long = "for",
        value_name = "STATE",
        requires = "wait",
        value_delimiter = ',',
        default_value = wait::FINISHED,
        value_parser = wait::goals()
    )]
    goals: Vec<WaitGoal>,
    /// With --wait: give up after this time, such as 90s or 10m [default: wait forever]
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<ConfigDuration>,
    /// Print the result as JSON. With --wait, the field `wait` has the result of the wait
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<SendArgs>) -> CliResult {
    let text = args.text.read()?;
    if text.is_none() && args.keys.is_empty() {
        return Err(CliError::usage("nothing to send: no text and no key given")
            .hint("agtmux send REF --text TEXT")
            .hint("agtmux send REF --key Escape"));
    }
    if args.wait && args.profile == Some(InputProfile::Shell) {
        return Err(CliError::usage("cannot wait for a shell: a shell has no state").hint("leave out --wait"));
    }
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let action = SendAction { guards, text, keys: args.keys.clone(), no_enter: args.no_enter, profile: args.profile };
    let answer = daemon.act("/v1/actions/send", &action).await?;
    match args.wait {
        false => output::answer(&answer, args.json, |done| vec![outcome_line(done)]),
        true => wait_for_turn(&args, &answer).await,
    }
}

/// After the text was sent, waits until the agent has handled it or reached a state given with --for. Prints the
/// results of the send and of the wait.
async fn wait_for_turn(args: &SendArgs, answer: &[u8]) -> CliResult {
    let sent: ActionOutcome<SendReport> = parse(answer)?;
    if !args.json {
        output::line(&outcome_line(&sent))?;
    }
    let runtime = sent.runtime_id.ok_or_else(|| {
        CliError::failed("cannot wait: no agent is in the pane").hint("agtmux list panes   (shows the agents)")
    })?;
    let plan = WaitPlan {
        references: vec![format!("runtime:{runtime}")],
        goals: args.goals.clone(),
        any: false,
        timeout: args.timeout,
    };
    let result = plan.wait().await?;
    match args.json {
        true => {
            let mut both: serde_json::Map<String, Value> = parse(answer)?;
            both.insert("wait".into(), json!(&result));
            output::json(&both)?;
        }
        false => output::lines(result.lines())?,
    }
    result.into_exit(&plan)
}

pub(super) fn outcome_line(done: &ActionOutcome<SendReport>) -> String {
    let SendReport { verified, by, attempts, bytes, left_copy_mode, .. } = &done.report;
    let how = match (verified, by) {
        (Verification::Confirmed, VerifiedBy::Event) => "submitted, confirmed by the agent",
        (Verification::Confirmed, VerifiedBy::Box) if *attempts == 0 => "typed into the input box",
        (Verification::Confirmed, VerifiedBy::Box) => "submitted, the input box is empty",
        (Verification::Confirmed, _) => "submitted, the screen changed",
        (Verification::Inconclusive, _) => "typed; could not verify that it was submitted",
        (Verification::Failed, _) => "not submitted",
    };
    let again = if done.repeated { "; already done by an earlier request" } else { "" };
    let mode = if *left_copy_mode { "; the pane left copy mode" } else { "" };
    format!("{bytes} bytes to {} on {}: {how}{mode} ({} ms{again})", done.pane_id, done.server_label(), done.latency_ms)
}
