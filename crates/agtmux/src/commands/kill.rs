//! `agtmux kill`: interrupts an agent, or ends it.

use std::io::{BufRead, IsTerminal, Write};

use agtmux_api::wire::{ActionOutcome, ActionSnapshot, KillAction, KillReport, KillSignal, SnapshotAction};
use clap::{Args, ValueEnum};

use super::guards::GuardArgs;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "Exits with 0 when it was typed or sent, whether or not the agent was seen to end within 2 s (`ended` in the \
    JSON); with 1 when you did not say yes; with 2 when nobody was there to ask; with 5 when it was refused."
)]
pub(crate) struct KillArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// INT is Ctrl-C, typed into the pane; TERM and KILL go to the agent's process and its group
    #[arg(long, default_value = "INT", ignore_case = true)]
    signal: KillSignalArg,
    /// Do not ask first
    #[arg(long)]
    yes: bool,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum KillSignalArg {
    Int,
    Term,
    Kill,
}

pub(crate) async fn run(args: Box<KillArgs>) -> Result<CliExit, CliError> {
    let signal = match args.signal {
        KillSignalArg::Int => KillSignal::Int,
        KillSignalArg::Term => KillSignal::Term,
        KillSignalArg::Kill => KillSignal::Kill,
    };
    let daemon = DaemonClient::from_env()?;
    let mut guards = args.guards.resolved(&daemon).await?;
    if !args.yes {
        let looked = daemon.act("/v1/actions/snapshot", &SnapshotAction { guards: guards.clone() }).await?;
        let snapshot: ActionSnapshot = parse(&looked)?;
        // Where nobody lives there is nothing to confirm, and the daemon says so.
        if snapshot.runtime_id.is_some() && !confirmed(&snapshot, signal, &guards.r#ref)? {
            let message = CliMessage::new(format!("nothing was sent to {}", snapshot.pane_id));
            return Err(CliError::failed(message.because("you did not say yes")));
        }
        // What was shown is what is meant.
        (guards.snapshot_id, guards.nonce) = (Some(snapshot.snapshot_id), Some(snapshot.nonce));
    }
    let answer = daemon.act("/v1/actions/kill", &KillAction { guards, signal }).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    output::line(outcome_line(&parse(&answer)?).as_bytes())?;
    Ok(CliExit::Ok)
}

fn confirmed(snapshot: &ActionSnapshot, signal: KillSignal, reference: &str) -> Result<bool, CliError> {
    let asked = question(snapshot, signal);
    // Who does not see the question has not said yes to it.
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        let hint = format!("agtmux kill {reference} --signal {} --yes", signal.as_str());
        let message = CliMessage::new(asked).because("nothing was sent: nobody is there to confirm it").hint(hint);
        return Err(CliError::new(CliExit::Usage, message));
    }
    eprint!("{} [y/N] ", agtmux_core::sanitize::for_terminal(&asked));
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| CliError::io("read your answer", error))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

fn question(snapshot: &ActionSnapshot, signal: KillSignal) -> String {
    let who = snapshot.agent_type.as_deref().unwrap_or("no agent");
    let state = snapshot.state.map(|state| format!(", {state}")).unwrap_or_default();
    format!("send {} to {who} in {} on {}{state}?", signal.as_str(), snapshot.pane_id, snapshot.server_label())
}

fn outcome_line(done: &ActionOutcome<KillReport>) -> String {
    let KillReport { signal, pids, ended } = &done.report;
    let what = match (signal, ended) {
        (KillSignal::Int, false) => "Ctrl-C was typed".to_owned(),
        (_, true) => "it has ended".to_owned(),
        (_, false) => format!("{} was sent to {} processes; it was not seen to end", signal.as_str(), pids.len()),
    };
    format!("{} on {}: {what} ({} ms)", done.pane_id, done.server_label(), done.latency_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_is_told_which_host_is_meant() {
        let shown = |target: &str| {
            let at = "2026-01-01T00:00:00Z";
            let snapshot = serde_json::json!({"schema_version": 1, "snapshot_id": "1", "nonce": "1", "target": target,
                "server": "default", "pane_id": "%5", "agent_type": "claude", "observed_at": at, "expires_at": at});
            question(&serde_json::from_value(snapshot).expect("a snapshot"), KillSignal::Kill)
        };
        assert_eq!(shown("vm1"), "send KILL to claude in %5 on vm1@default?");
        assert_eq!(shown("host"), "send KILL to claude in %5 on default?");
    }
}
