//! The `agtmux` executable. Every command except `daemon run` is a client of the daemon.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agent_registry;
mod choices;
mod cli;
mod command_groups;
mod commands;
mod error;
mod input;
mod jq;
mod message;
mod output;
mod program_name;
mod quit_signals;
mod render;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(exit) = commands::hook::intercept(std::env::args_os()) {
        return exit;
    }
    if let Some(exit) = commands::task::intercept(std::env::args_os()) {
        return exit;
    }
    if let Some(exit) = commands::mirror::intercept(std::env::args_os()) {
        return exit;
    }
    if let Some(exit) = commands::completions::intercept() {
        return exit;
    }
    let arguments = program_name::arguments(std::env::args_os());
    if let Some(printed) = commands::help_topics::intercept(&arguments) {
        return ended(printed);
    }
    let (cli, filter) = match cli::parse(&arguments) {
        Ok(parsed) => parsed,
        Err(error) => return message::print_usage_error(&error, &arguments),
    };
    output::set_filter(filter);
    // `collect` prints no note about a different daemon version, because the hub would treat the note as an error.
    let notes_version = !matches!(cli.command, Some(cli::CliCommand::Collect { .. } | cli::CliCommand::Daemon(_)));
    let outcome = commands::run(cli.command);
    if let Some(version) = agtmux_client::other_daemon_version().filter(|_| notes_version) {
        message::other_version(version).print_stderr();
    }
    ended(outcome)
}

/// Prints the error of a command. Returns the exit code.
fn ended(outcome: error::CliResult) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            error.exit().into()
        }
    }
}
