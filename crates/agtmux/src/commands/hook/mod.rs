//! `agtmux hook`: called by the hooks of agents. It sends one event to the daemon and exits.
//!
//! It always exits with 0 and prints nothing on stdout: agents interpret a hook's stdout as instructions and exit code
//! 2 as a veto.

mod ancestors;
mod background_spool;
mod deliver;
pub(crate) mod event;
mod payload;
mod spool;
mod stdin;
mod tap;
mod transcript;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use agtmux_agents::AgentRegistry;
use agtmux_api::paths::Paths;
use agtmux_api::wire::EventSubmission;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::message::CliMessage;

/// The name of a Codex setting that names a program. In addition to its hooks, Codex calls this program with the event
/// as one JSON argument.
pub(crate) const NOTIFY: &str = "notify";
/// The words after this flag are the command of another program, such as the user's own notify program. `agtmux hook`
/// runs it with the same JSON.
pub(crate) const THEN: &str = "--then";

#[derive(Debug, Args)]
#[command(after_help = "\
Reads the hook's JSON from stdin. For Codex's notify setting, reads the JSON from the last argument. Adds the pane and \
the parent processes to the event. `agtmux setup` configures your agents to run this command.

Always exits with 0, prints nothing on stdout and never starts the daemon. If the daemon is not \
running, the event is stored and delivered later.")]
pub(crate) struct HookArgs {
    #[arg(required = true, help = agent_help())]
    agent: String,
    /// The name of the hook, as in the agent's settings
    #[arg(required = true)]
    event: String,
    /// For Codex's notify setting only: after reporting the event, run this program with the event's JSON as the last
    /// argument
    #[arg(long, num_args = 1.., allow_hyphen_values = true, value_name = "PROGRAM")]
    then: Vec<OsString>,
}

fn agent_help() -> String {
    format!("The type of the agent: {}", AgentRegistry::setup_names().collect::<Vec<_>>().join(", "))
}

/// Handles `agtmux hook` before clap parses the command line, because a hook must be fast. Returns `None` for `--help`
/// and for all other commands.
pub(crate) fn intercept(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let began = Timestamp::now();
    if args.nth(1)? != "hook" {
        return None;
    }
    let words: Vec<OsString> = args.collect();
    match words.first().and_then(|word| word.to_str()) {
        Some(background_spool::KEEP_FLAG) => background_spool::run(&words[1..]),
        Some(tap::TAP_FLAG) => tap::run(&words[1..]),
        Some("--help" | "-h") => return None,
        _ => {
            // A panic here must never fail the agent's hook.
            std::panic::set_hook(Box::new(|_| {}));
            let _ = std::panic::catch_unwind(|| run(&words, began));
        }
    }
    Some(ExitCode::SUCCESS)
}

fn run(words: &[OsString], began: Timestamp) {
    let [agent, event, rest @ ..] = words else {
        CliMessage::new("hook needs an agent and an event").hint("agtmux hook --help").print_stderr();
        return;
    };
    let (agent, event) = (agent.to_string_lossy(), event.to_string_lossy());
    if event == NOTIFY {
        handle_notify(&agent, rest, began);
        return;
    }
    let mut payload = payload::read(&stdin::read());
    if let Some(payload) = &mut payload {
        transcript::complete(&agent, &event, payload);
    }
    send_without_waiting(EventSubmission {
        agent_type: Some(agent.into_owned()),
        payload,
        ..event::of_this_process("hook", &event, began)
    });
}

fn handle_notify(agent: &str, rest: &[OsString], began: Timestamp) {
    let Some(text) = rest.last().filter(|word| *word != THEN) else { return };
    let payload = payload::read(text.as_encoded_bytes());
    let kind = payload.as_ref().and_then(|p| p.get("type")).and_then(Value::as_str).unwrap_or(NOTIFY).to_owned();
    let agent_type = Some(agent.to_owned());
    send_without_waiting(EventSubmission { agent_type, payload, ..event::of_this_process("notify", &kind, began) });
    if rest.first().is_some_and(|word| word == THEN) {
        exec_next(&rest[1..]);
    }
}

/// Replaces this process by the user's notify program.
fn exec_next(words: &[OsString]) {
    if let [program, args @ ..] = words
        && !args.is_empty()
    {
        let error = Command::new(program).args(args).exec();
        let what = format!("cannot run the notify program '{}': {error}", OsStr::display(program));
        CliMessage::new(what).print_stderr();
    }
}

/// Sends the event to the daemon, or stores it in the spool.
pub(crate) fn send(event: EventSubmission) {
    deliver_or(event, spool::store);
}

/// Like `send`, but another process stores the event in the spool, because the agent waits until this process exits.
fn send_without_waiting(event: EventSubmission) {
    deliver_or(event, |paths, body, time| {
        if background_spool::spawn_spooler(body, time).is_err() {
            spool::store(paths, body, time);
        }
    });
}

fn deliver_or(event: EventSubmission, keep: impl FnOnce(&Paths, &[u8], Timestamp)) {
    let Ok(paths) = Paths::from_env() else { return };
    let time = event.event_time.unwrap_or_else(Timestamp::now);
    let body = payload::encode_to_fit(event);
    if deliver::post(&paths.socket, &body).is_err() {
        keep(&paths, &body, time);
    }
}
