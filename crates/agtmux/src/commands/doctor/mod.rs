//! `agtmux doctor`: checks everything that agtmux depends on, and names the command that fixes each problem.

mod check;
mod daemon;
mod machine;
mod report;

use clap::Args;
use serde::Serialize;

use crate::error::{CliExit, CliResult};
use crate::output;
use crate::terminal::StdoutTerminal;
use check::{CheckStatus, DoctorCheck};

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print a report for a bug report: versions, checks, changed settings and the last warnings of the log. Secrets are
    /// redacted
    #[arg(long, conflicts_with = "json")]
    report: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result of `agtmux doctor --json`.
#[derive(Debug, Serialize)]
struct DoctorDocument<'a> {
    schema_version: u32,
    version: &'static str,
    /// False if there is a problem. Warnings do not count.
    healthy: bool,
    checks: &'a [DoctorCheck],
}

pub(crate) async fn run(args: DoctorArgs) -> CliResult {
    let mut checks = machine::checks().await?;
    checks.extend(daemon::checks().await?);
    let healthy = !checks.iter().any(|check| check.status == CheckStatus::Problem);
    if args.json {
        let (schema_version, version) = (agtmux_api::SCHEMA_VERSION, agtmux_api::VERSION);
        output::json(&DoctorDocument { schema_version, version, healthy, checks: &checks })?;
    } else if args.report {
        output::lines(report::lines(&checks)?)?;
    } else {
        let colour = StdoutTerminal::detect().colour;
        output::styled_lines(&checks.iter().flat_map(|check| check.lines(colour)).collect::<Vec<_>>())?;
    }
    if healthy { Ok(()) } else { CliExit::Failed.into_result() }
}
