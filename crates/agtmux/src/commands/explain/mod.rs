//! `agtmux explain`: shows the observations behind the state of an agent.

mod screen;

use std::path::PathBuf;

use agtmux_api::wire::{EventSender, ExplainCandidate, ExplainEvent, Explanation};
use agtmux_client::DaemonClient;
use agtmux_core::evidence::{Assertion, DialogKind};
use agtmux_core::sanitize;
use clap::{ArgGroup, Args};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::commands::{block_on, pick};
use crate::error::CliResult;
use crate::output;
use crate::render::age;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("rules").args(["agent", "manifest"]).multiple(true)),
    after_help = "Examples:\n  agtmux explain %12\n  agtmux explain --screen screen.txt --agent claude"
)]
pub(crate) struct ExplainArgs {
    /// The agent: %12, runtime:ID, pane:TARGET/SESSION/@W/%P, or its name, type or session if only one agent matches
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Explain this saved screen instead of a live agent. The file is plain text, or text with escape sequences. No
    /// daemon is needed
    #[arg(long, value_name = "FILE", requires = "rules", conflicts_with = "reference")]
    screen: Option<PathBuf>,
    /// The type of the agent on that screen
    #[arg(long, value_name = "TYPE", requires = "screen", conflicts_with = "reference")]
    agent: Option<String>,
    /// Use the rules in this manifest (the TOML file of an agent, see `agtmux adapters`)
    #[arg(long, value_name = "FILE", requires = "screen", conflicts_with = "reference")]
    manifest: Option<PathBuf>,
    /// The title of the pane that the screen was saved from
    #[arg(long, requires = "screen", conflicts_with = "reference")]
    title: Option<String>,
    /// The program in the foreground of that pane
    #[arg(long, requires = "screen", conflicts_with = "reference")]
    command: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The query of `/v1/explain` and `/v1/history`.
#[derive(Debug, Serialize)]
pub(crate) struct AgentRefQuery<'a> {
    pub(crate) r#ref: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<jiff::Timestamp>,
}

pub(crate) fn run(args: ExplainArgs) -> CliResult {
    match &args.screen {
        Some(file) => screen::run(file, &args),
        None => block_on(explain_agent(args)),
    }
}

async fn explain_agent(args: ExplainArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let reference = pick::resolve_reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.get_bytes("/v1/explain", &AgentRefQuery { r#ref: &reference, since: None }).await?;
    let zone = TimeZone::system();
    output::answer(&answer, args.json, |why| explanation_lines(why, &zone))
}

fn explanation_lines(why: &Explanation, zone: &TimeZone) -> Vec<String> {
    let reason = why.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let mut lines = vec![
        format!("{} in {} on {}@{}", why.agent_type, why.pane_id, why.target, why.server),
        format!("state    {}{reason}, confidence {}, version {}", why.state, why.confidence, why.state_version),
        format!("since    {}", age::local_time(why.since, zone)),
        format!("runtime  runtime:{}", why.runtime_id),
    ];
    lines.push(if why.candidates.is_empty() { "no observations".into() } else { "observations:".into() });
    lines.extend(why.candidates.iter().map(candidate_line));
    lines.extend(why.last_events.iter().map(|event| event_line(event, zone)));
    lines.extend(why.would_change.iter().map(|change| format!("would change the state: {change}")));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn event_line(event: &ExplainEvent, zone: &TimeZone) -> String {
    let sender = event.sender.as_ref().map_or("saved while the daemon was not running".to_owned(), sender_text);
    let at = age::local_time(event.ingested_at, zone);
    format!("last event from {}: {} at {at} · {sender}", event.source, event.event_type)
}

fn sender_text(sender: &EventSender) -> String {
    let process = match (&sender.program, sender.pid) {
        (Some(program), Some(pid)) => format!("{program} {pid}"),
        (None, Some(pid)) => format!("process {pid}"),
        _ => "an unknown process".to_owned(),
    };
    let uid = sender.uid.map(|uid| format!(", uid {uid}")).unwrap_or_default();
    let agent = sender.agent.as_ref().map(|agent| format!(", a process of {agent}")).unwrap_or_default();
    format!("sent by {process}{uid}{agent}, via {}", sender.via)
}

fn candidate_line(candidate: &ExplainCandidate) -> String {
    let says = match candidate.says {
        Assertion::Running => "running",
        Assertion::Completed => "completed",
        Assertion::Idle => "idle",
        Assertion::Failed => "failed",
        Assertion::DialogOpen(DialogKind::Approval) => "asks for an approval",
        Assertion::DialogOpen(DialogKind::Input) => "asks for input",
        Assertion::NoDialog => "asks nothing",
    };
    let status = candidate.why_not.clone().unwrap_or_else(|| "counts".into());
    format!(
        "  {:<8} {:<7} {} · {} ago · rule {} v{} · {} · evidence: {}",
        candidate.source.as_str(),
        candidate.claim.as_str(),
        says,
        age::short_duration(candidate.age_ms),
        candidate.rule,
        candidate.rule_version,
        status,
        candidate.evidence
    )
}
