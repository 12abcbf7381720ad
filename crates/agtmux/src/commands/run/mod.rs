//! `agtmux run`: runs a program transparently and reports its start and its exit to the daemon.

pub(crate) mod job;
mod signals;
mod spawn;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use agtmux_api::wire::EventSubmission;
use agtmux_core::task::ExitSignal;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::hook::{event, send};
use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use job::{ChildEnd, ChildJob};

#[derive(Debug, Args)]
#[command(
    after_help = "The program owns the terminal, receives signals and can be suspended with Ctrl-Z. It runs with \
    or without a daemon.\n\n\
    Exits with the exit code of the program. If a signal kills the program, `agtmux run` kills itself with the same \
    signal. Exits with 127 if the program was not found, \
    and with 126 if it cannot be executed.\n\n\
    Example:\n  agtmux run --name reviewer -- claude --model opus"
)]
pub(crate) struct AgentRunArgs {
    /// A name for the agent, which other commands accept as REF
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn parse_name(given: &str) -> Result<String, String> {
    match agtmux_core::refs::is_agent_name(given) {
        true => Ok(given.to_owned()),
        false => Err("a name has at most 64 letters, digits, '-', '_' and '.'".into()),
    }
}

pub(crate) fn run(args: &AgentRunArgs) -> CliResult {
    let began = Timestamp::now();
    let job = ChildJob::start(&args.command).map_err(|error| start_error(&args.command, &error))?;
    let report = |event_type: &str, time: Timestamp, end: Option<ChildEnd>| {
        let payload = Some(event_payload(args, job.pid(), end));
        send(EventSubmission { pid: Some(job.pid()), payload, ..event::of_this_process("wrapper", event_type, time) });
    };
    report("agent-started", began, None);
    let end = job.wait();
    report("agent-exited", Timestamp::now(), Some(end));
    job.exit_like_child(end)
}

/// The payload of an event. Contains only the program's name, because its arguments may hold a prompt or a secret.
fn event_payload(args: &AgentRunArgs, pid: u32, end: Option<ChildEnd>) -> Value {
    let program = args.command.first().map(Path::new).and_then(Path::file_name).map(|name| name.to_string_lossy());
    let mut about = json!({"program": program, "pid": pid});
    if let Some(name) = &args.name {
        about["name"] = json!(name);
    }
    match end {
        Some(ChildEnd::Exited(code)) => about["exit_code"] = json!(code),
        Some(ChildEnd::Killed(signal)) => {
            let name = u8::try_from(signal).map_or_else(|_| signal.to_string(), |n| ExitSignal(n).to_string());
            (about["signal"], about["signal_name"]) = (json!(signal), json!(name));
        }
        None => {}
    }
    about
}

fn start_error(command: &[OsString], error: &std::io::Error) -> CliError {
    let name = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    let missing = error.kind() == ErrorKind::NotFound;
    let message = CliMessage::new(format!("cannot run '{name}': {error}"));
    let message = if missing { message.hint(format!("command -v {name}")) } else { message };
    CliError::new(if missing { CliExit::NotFound } else { CliExit::NotExecutable }, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_not_reported() {
        let args =
            AgentRunArgs { name: Some("reviewer".into()), command: vec!["/opt/bin/claude".into(), "secret".into()] };
        let payload = event_payload(&args, 7, Some(ChildEnd::Killed(9)));
        assert_eq!(
            payload,
            json!({"program": "claude", "pid": 7, "name": "reviewer", "signal": 9, "signal_name": "SIGKILL"})
        );
        assert_eq!(event_payload(&args, 7, Some(ChildEnd::Exited(3)))["exit_code"], json!(3));
    }
}
