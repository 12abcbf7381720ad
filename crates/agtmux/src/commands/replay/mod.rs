//! `agtmux replay`: checks that the input log still produces the stored transitions.

use std::path::PathBuf;

use agtmux_daemon::{ReplayOutcome, replay_database, replay_lines};
use clap::Args;

use crate::error::{CliError, CliResult};
use crate::output;

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct ReplayArgs {
    /// Read a daemon's database from this file. The file is not changed
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Read this file of JSON lines: {n, at, input, transitions}
    #[arg(long, value_name = "FILE")]
    jsonl: Option<PathBuf>,
}

pub(crate) fn run(args: &ReplayArgs) -> CliResult {
    let unreadable = |error: &dyn std::fmt::Display| {
        CliError::usage(error.to_string()).hint("agtmux daemon status   (shows the database)")
    };
    let outcome = match (&args.db, &args.jsonl) {
        (Some(db), _) => replay_database(db).map_err(|error| unreadable(&error))?,
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| CliError::io(&format!("read '{}'", path.display()), error))?;
            replay_lines(&path.display().to_string(), &text).map_err(|error| unreadable(&error))?
        }
        (None, None) => return Err(unreadable(&"neither --db nor --jsonl is given")),
    };
    match outcome {
        ReplayOutcome::Same { inputs, transitions } => {
            output::line(&format!("no difference in {inputs} inputs and {transitions} transitions"))
        }
        ReplayOutcome::Differs { n, stored, replayed } => {
            Err(CliError::failed(format!("the replay of input {n} differs from the stored result"))
                .because(format!("stored:   {stored}"))
                .because(format!("replayed: {replayed}"))
                .hint("keep a copy of the file and report this as a bug in agtmux"))
        }
    }
}
