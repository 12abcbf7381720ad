//! `agtmux explain`: why a state is what it is.

mod screen;

use std::path::PathBuf;

use agtmux_api::wire::{ExplainCandidate, Explanation};
use agtmux_core::evidence::{Assertion, DialogKind};
use agtmux_core::sanitize;
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::commands::{block_on, pick};
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::output;
use crate::render::age;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("rules").args(["agent", "manifest"]).multiple(true)))]
pub(crate) struct ExplainArgs {
    /// The agent: runtime:ID, %12, its kind where there is one, or pane:TARGET/SESSION/@W/%P
    #[arg(value_name = "REF")]
    reference: Option<String>,
    /// Judge this saved screen instead, plain or with escapes; needs no daemon
    #[arg(long, value_name = "FILE", requires = "rules", conflicts_with = "reference")]
    screen: Option<PathBuf>,
    /// The kind of agent on that screen
    #[arg(long, value_name = "TYPE", requires = "screen", conflicts_with = "reference")]
    agent: Option<String>,
    /// Judge it by this manifest instead of those that are known
    #[arg(long, value_name = "FILE", requires = "screen", conflicts_with = "reference")]
    manifest: Option<PathBuf>,
    /// The pane's title at that time
    #[arg(long, requires = "screen", conflicts_with = "reference")]
    title: Option<String>,
    /// The pane's command at that time
    #[arg(long, requires = "screen", conflicts_with = "reference")]
    command: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the daemon is asked.
#[derive(Debug, Serialize)]
pub(crate) struct AgentRefQuery<'a> {
    pub(crate) r#ref: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<jiff::Timestamp>,
}

pub(crate) fn run(args: ExplainArgs) -> Result<CliExit, CliError> {
    match &args.screen {
        Some(file) => screen::run(file, &args),
        None => block_on(explain_agent(args)),
    }
}

async fn explain_agent(args: ExplainArgs) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let reference = pick::resolve_reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.get_bytes("/v1/explain", &AgentRefQuery { r#ref: &reference, since: None }).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    let why: Explanation = parse(&answer)?;
    output::lines(&explanation_lines(&why))?;
    Ok(CliExit::Ok)
}

fn explanation_lines(why: &Explanation) -> Vec<String> {
    let reason = why.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let mut lines = vec![
        format!("{} in {} on {}@{}", why.agent_type, why.pane_id, why.target, why.server),
        format!("state    {}{reason}, confidence {}, version {}", why.state, why.confidence, why.state_version),
        format!("since    {}", why.since),
        format!("runtime  runtime:{}", why.runtime_id),
    ];
    lines.push(if why.candidates.is_empty() { "nothing has been said about it".into() } else { "statements:".into() });
    lines.extend(why.candidates.iter().map(candidate_line));
    lines.extend(why.would_change.iter().map(|change| format!("would change it: {change}")));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn candidate_line(said: &ExplainCandidate) -> String {
    let says = match said.says {
        Assertion::Running => "running",
        Assertion::Completed => "completed",
        Assertion::Idle => "idle",
        Assertion::Failed => "failed",
        Assertion::DialogOpen(DialogKind::Approval) => "asks for an approval",
        Assertion::DialogOpen(DialogKind::Input) => "asks for input",
        Assertion::NoDialog => "asks nothing",
    };
    let verdict = said.why_not.clone().unwrap_or_else(|| "counts".into());
    format!(
        "  {:<8} {:<7} {} · {} ago · rule {} v{} · {} · evidence: {}",
        said.source.as_str(),
        said.claim.as_str(),
        says,
        age::short_duration(said.age_ms),
        said.rule,
        said.rule_version,
        verdict,
        said.evidence
    )
}
