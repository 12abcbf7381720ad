//! `agtmux completions`: prints the script that lets a shell complete commands, options and names.
//!
//! The script runs `agtmux` again with a variable set, which [`intercept`] answers before the command line is parsed.

mod candidates;
mod live;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::choices::one_of;
use crate::error::{CliError, CliResult};
use crate::{cli, output};

/// The script of the shell sets this variable to the name of the shell.
const VARIABLE: &str = "AGTMUX_COMPLETE";

#[derive(Debug, Args)]
#[command(after_help = "Add one of these lines to the startup file of your shell:\n\n  \
    bash  source <(agtmux completions bash)\n  \
    zsh   source <(agtmux completions zsh)     (after compinit)\n  \
    fish  agtmux completions fish | source\n\n\
    Completion asks a running daemon for the names of agents, sessions, targets and tasks. It never starts the daemon.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_parser = one_of([
        ("bash", CompletionShell::Bash),
        ("zsh", CompletionShell::Zsh),
        ("fish", CompletionShell::Fish),
    ]))]
    shell: CompletionShell,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs) -> CliResult {
    let completer: &dyn EnvCompleter = match args.shell {
        CompletionShell::Bash => &Bash,
        CompletionShell::Zsh => &Zsh,
        CompletionShell::Fish => &Fish,
    };
    let mut script = Vec::new();
    let written = completer.write_registration(VARIABLE, "agtmux", "agtmux", "agtmux", &mut script);
    written.map_err(|error| CliError::io("write the script", error))?;
    output::verbatim(&script)
}

/// Answers a request of the script for candidates. Returns `None` for all other calls.
pub(crate) fn intercept() -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    let environment = CompleteEnv::with_factory(|| candidates::add(cli::definition())).var(VARIABLE).bin("agtmux");
    let directory: Option<PathBuf> = std::env::current_dir().ok();
    match environment.try_complete(std::env::args_os(), directory.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}
