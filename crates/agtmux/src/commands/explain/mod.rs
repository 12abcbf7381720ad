//! `agtmux explain`: why a state is what it is.

mod screen;

use std::path::PathBuf;

use agtmux_api::wire::{Candidate, Explanation};
use agtmux_core::evidence::{DialogKind, Stand};
use agtmux_core::sanitize;
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::commands::{block_on, pick};
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
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
pub(crate) struct Named<'a> {
    pub(crate) r#ref: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<jiff::Timestamp>,
}

pub(crate) fn run(args: ExplainArgs) -> Result<Exit, CliError> {
    match &args.screen {
        Some(file) => screen::run(file, &args),
        None => block_on(live(args)),
    }
}

async fn live(args: ExplainArgs) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let reference = pick::reference(&daemon, args.reference.as_deref()).await?;
    let answer = daemon.bytes("/v1/explain", &Named { r#ref: &reference, since: None }).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(Exit::Ok);
    }
    let why: Explanation = parse(&answer)?;
    output::lines(&told(&why))?;
    Ok(Exit::Ok)
}

fn told(why: &Explanation) -> Vec<String> {
    let reason = why.reason_code.map(|r| format!(" ({r})")).unwrap_or_default();
    let mut lines = vec![
        format!("{} in {} on {}@{}", why.agent_type, why.pane_id, why.target, why.server),
        format!("state    {}{reason}, confidence {}, version {}", why.state, why.confidence, why.state_version),
        format!("since    {}", why.since),
        format!("runtime  runtime:{}", why.runtime_id),
    ];
    lines.push(if why.candidates.is_empty() { "nothing has been said about it".into() } else { "statements:".into() });
    lines.extend(why.candidates.iter().map(candidate));
    lines.extend(why.would_change.iter().map(|change| format!("would change it: {change}")));
    lines.iter().map(|line| sanitize::for_terminal(line)).collect()
}

fn candidate(said: &Candidate) -> String {
    let says = match said.says {
        Stand::Running => "running",
        Stand::Completed => "completed",
        Stand::Idle => "idle",
        Stand::Failed => "failed",
        Stand::Asks(DialogKind::Approval) => "asks for an approval",
        Stand::Asks(DialogKind::Input) => "asks for input",
        Stand::AsksNothing => "asks nothing",
    };
    let verdict = said.why_not.clone().unwrap_or_else(|| "counts".into());
    format!(
        "  {:<8} {:<7} {} · {} ago · rule {} v{} · {} · evidence: {}",
        said.source.as_str(),
        said.claim.as_str(),
        says,
        age::short(said.age_ms),
        said.rule,
        said.rule_version,
        verdict,
        said.evidence
    )
}
