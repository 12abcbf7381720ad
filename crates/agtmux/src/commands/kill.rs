//! `agtmux kill`: interrupts or ends an agent.

use std::io::IsTerminal;

use agtmux_api::wire::{ActionOutcome, ActionSnapshot, KillAction, KillReport, KillSignal};
use agtmux_client::DaemonClient;
use clap::Args;

use super::guards::{GuardArgs, snapshot};
use crate::choices::one_of;
use crate::error::{CliError, CliResult};
use crate::{input, output};

const SIGNALS: [(&str, KillSignal); 3] =
    [("INT", KillSignal::Int), ("TERM", KillSignal::Term), ("KILL", KillSignal::Kill)];

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0  the signal was sent; `ended` in the JSON says whether the agent ended within 2 s
  1  you did not confirm
  2  confirmation is needed, but stdin or stderr is not a terminal
  5  the daemon rejected the request

Examples:
  agtmux kill %12                       interrupt with Ctrl-C
  agtmux kill claude --signal TERM --yes")]
pub(crate) struct KillArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// INT types Ctrl-C into the pane; TERM and KILL signal the agent's process and its process group
    #[arg(long, default_value = "INT", ignore_case = true, value_parser = one_of(SIGNALS))]
    signal: KillSignal,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Box<KillArgs>) -> CliResult {
    let signal = args.signal;
    let daemon = DaemonClient::from_env()?;
    let mut guards = args.guards.resolved(&daemon).await?;
    if !args.yes {
        let snapshot = snapshot(&daemon, &guards).await?;
        // Without an agent there is nothing to confirm, and the daemon rejects the action.
        if snapshot.runtime_id.is_some() && !confirmed(&snapshot, signal, &guards.r#ref)? {
            return Err(
                CliError::failed(format!("nothing was sent to {}", snapshot.pane_id)).because("you did not confirm")
            );
        }
        // The action applies only to the agent that was shown.
        (guards.snapshot_id, guards.nonce) = (Some(snapshot.snapshot_id), Some(snapshot.nonce));
    }
    let answer = daemon.act("/v1/actions/kill", &KillAction { guards, signal }).await?;
    output::answer(&answer, args.json, |done| vec![outcome_line(done)])
}

fn confirmed(snapshot: &ActionSnapshot, signal: KillSignal, reference: &str) -> CliResult<bool> {
    let question = question(snapshot, signal);
    // Without a terminal the user cannot see the question.
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let hint = format!("agtmux kill {reference} --signal {} --yes", signal.as_str());
        return Err(CliError::usage(question)
            .because("nothing was sent: cannot ask for confirmation without a terminal")
            .hint(hint));
    }
    input::confirm(&question)
}

fn question(snapshot: &ActionSnapshot, signal: KillSignal) -> String {
    let who = snapshot.agent_type.as_deref().unwrap_or("no agent");
    let state = snapshot.state.map(|state| format!(" ({state})")).unwrap_or_default();
    format!(
        "send {} to {who}{state} in pane {} on server {}?",
        signal.as_str(),
        snapshot.pane_id,
        snapshot.server_label()
    )
}

fn outcome_line(done: &ActionOutcome<KillReport>) -> String {
    let KillReport { signal, pids, ended } = &done.report;
    let what = match (signal, ended) {
        (KillSignal::Int, false) => "typed Ctrl-C".to_owned(),
        (_, true) => "the agent has ended".to_owned(),
        (_, false) => format!("sent {} to {} processes; the agent has not ended yet", signal.as_str(), pids.len()),
    };
    format!("{} on {}: {what} ({} ms)", done.pane_id, done.server_label(), done.latency_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_names_the_host() {
        let shown = |target: &str| {
            let at = "2026-01-01T00:00:00Z";
            let snapshot = serde_json::json!({"schema_version": 1, "snapshot_id": "1", "nonce": "1", "target": target,
                "server": "default", "pane_id": "%5", "agent_type": "claude", "observed_at": at, "expires_at": at});
            question(&serde_json::from_value(snapshot).expect("a snapshot"), KillSignal::Kill)
        };
        assert_eq!(shown("vm1"), "send KILL to claude in pane %5 on server vm1@default?");
        assert_eq!(shown("host"), "send KILL to claude in pane %5 on server default?");
    }
}
