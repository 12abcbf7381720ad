//! `agtmux mirror exec`: runs a command in the shared terminal.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agtmux_api::config::ConfigDuration;
use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{
    MirrorCancelRequest, MirrorCommand, MirrorCommandQuery, MirrorCommandStatus, MirrorExecRequest, MirrorStreamItem,
};
use agtmux_client::{ClientError, DaemonClient, StreamSignal, parse};
use agtmux_core::mirror::MirrorMethod;
use agtmux_core::text;
use clap::Args;
use uuid::Uuid;

use super::terminal_args::TerminalArgs;
use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use crate::output;
use crate::quit_signals::QuitSignals;

/// How long the first response waits for the end of the command. Most commands end within this time.
const FIRST_WAIT_MS: u64 = 200;
/// How long each later response waits for the end of the command.
const WAIT_MS: u64 = 4000;
/// How long, and at which interval, to retry a request if the daemon ends before it responds.
const RESTART_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(
    after_help = "You see the command and its output in the pane. Prints the output of the command, stdout and stderr mixed. \
    Leaves out overwritten text, such as earlier states of a progress bar, and the screens of full-screen programs; --raw keeps \
    them. Opens a shared terminal if there is none.\n\n\
    Exits with the code of the command. After the timeout, agtmux interrupts the command with Ctrl-C and exits with \
    124. If you press Ctrl-C, agtmux exits with 130. Rejects an incomplete command, such as one with an unclosed quote, without running it.\n\n\
    Examples:\n  agtmux mirror exec 'cargo test'\n  agtmux mirror exec --timeout 10m --json 'make -j4'"
)]
pub(crate) struct MirrorExecArgs {
    #[command(flatten)]
    terminal: TerminalArgs,
    /// Interrupt the command after this time
    #[arg(long, value_name = "DURATION", default_value = "120s")]
    timeout: ConfigDuration,
    /// The working directory of the command [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The shell of a shared terminal that is opened for the command: a name or a path [default: the shell that tmux starts]
    #[arg(long, value_name = "SHELL")]
    shell: Option<String>,
    /// Export this variable in the shell before the command. The pane does not show this; the variable stays set
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// Print the result as JSON: output, exit_code, signal, duration_ms, cwd, truncated, method
    #[arg(long)]
    json: bool,
    /// With --json, print a line for each part of the output, `{"output": "…"}`, while the command runs, and then the result,
    /// `{"ended": {…}}`
    #[arg(long, short, requires = "json", conflicts_with = "max_bytes")]
    follow: bool,
    /// Keep overwritten text and the screens of full-screen programs
    #[arg(long)]
    raw: bool,
    /// With --json, print at most the last BYTES bytes of the output
    #[arg(long, value_name = "BYTES", default_value = "10000")]
    max_bytes: u64,
    /// The command, one line or many
    #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
    command: String,
}

pub(crate) async fn run(args: MirrorExecArgs) -> CliResult {
    let terminal = args.terminal.resolve()?;
    let daemon = DaemonClient::from_env()?;
    // Handle signals before the command is typed, so that Ctrl-C interrupts it.
    let mut quit = QuitSignals::new()?;
    let command_id = Uuid::now_v7().simple().to_string();
    let request = MirrorExecRequest {
        socket: terminal.socket,
        pane: terminal.pane,
        for_pane: terminal.for_pane,
        command: args.command.clone(),
        cwd: Some(directory(args.cwd.clone())?),
        timeout_ms: Some(u64::try_from(args.timeout.0.as_millis()).unwrap_or(u64::MAX)),
        command_id: Some(command_id.clone()),
        wait_ms: Some(FIRST_WAIT_MS),
        shell: args.shell.clone(),
        env: args.env.iter().cloned().collect(),
    };
    let followed = async {
        let first = start(&daemon, &request).await?;
        follow(&daemon, &args, first).await
    };
    let ended = tokio::select! {
        ended = followed => ended?,
        exit = quit.received() => return cancel(&daemon, command_id, exit).await,
    };
    finish(&ended, &args)
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The directory as an absolute path.
pub(super) fn directory(given: Option<PathBuf>) -> CliResult<String> {
    let here = std::env::current_dir().map_err(|error| CliError::io("find the current directory", error))?;
    let dir = given.map_or(here.clone(), |dir| here.join(dir));
    let path = dir.into_os_string().into_string();
    path.map_err(|_| CliError::usage("the path of the directory is not UTF-8"))
}

async fn start(daemon: &DaemonClient, request: &MirrorExecRequest) -> CliResult<MirrorCommand> {
    let lost = match daemon.act("/v1/mirrors/exec", request).await {
        Ok(answer) => return Ok(parse(&answer)?),
        Err(error @ (ClientError::Broken(_) | ClientError::Timeout(_))) => error,
        Err(error) => return Err(error.into()),
    };
    // The daemon ended, or it is slow. A slow daemon must not type the command later, so cancel the request. Then ask
    // the daemon whether the shell has taken the command.
    let command_id = request.command_id.clone().unwrap_or_default();
    if matches!(lost, ClientError::Timeout(_)) {
        let _ = daemon.act("/v1/mirrors/cancel", &MirrorCancelRequest { command_id: command_id.clone() }).await;
    }
    let query = MirrorCommandQuery { command_id, ..MirrorCommandQuery::default() };
    let until = Instant::now() + RESTART_TIMEOUT;
    loop {
        match daemon.get("/v1/mirrors/command", &query).await {
            Ok(command) => return Ok(command),
            Err(ClientError::Broken(_) | ClientError::NotRunning(_)) if Instant::now() < until => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::RefNotFound => {
                return Err(CliError::from(lost).because("the shell never received the command, so it did not run"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Prints the output until the command ends.
async fn follow(daemon: &DaemonClient, args: &MirrorExecArgs, first: MirrorCommand) -> CliResult<MirrorCommand> {
    if args.json && !args.follow {
        return wait_for_end(daemon, args, first).await;
    }
    if is_over(&first) && !first.truncated && !args.raw {
        let output = MirrorStreamItem::Output(first.output.clone());
        print_item(args, &output)?;
        return Ok(first);
    }
    let query = MirrorCommandQuery { command_id: first.command_id, raw: args.raw, ..MirrorCommandQuery::default() };
    let mut items = daemon.follow::<MirrorStreamItem>("/v1/mirrors/command/stream", query, None);
    loop {
        match items.next().await? {
            StreamSignal::Event(MirrorStreamItem::Ended(command)) => return Ok(*command),
            StreamSignal::Event(part) => print_item(args, &part)?,
            StreamSignal::CaughtUp | StreamSignal::Disconnected(_) => {}
        }
    }
}

/// Prints a part of the output: its bytes, or a line of JSON.
fn print_item(args: &MirrorExecArgs, item: &MirrorStreamItem) -> CliResult {
    match item {
        MirrorStreamItem::Output(part) if part.is_empty() => Ok(()),
        MirrorStreamItem::Output(part) if !args.json => output::part(&text::to_bytes(part)),
        item => output::json(item),
    }
}

async fn wait_for_end(daemon: &DaemonClient, args: &MirrorExecArgs, first: MirrorCommand) -> CliResult<MirrorCommand> {
    let query = MirrorCommandQuery {
        command_id: first.command_id,
        wait_ms: Some(WAIT_MS),
        raw: args.raw,
        max_bytes: Some(args.max_bytes),
    };
    loop {
        match daemon.get::<MirrorCommand>("/v1/mirrors/command", &query).await {
            Ok(command) if is_over(&command) => return Ok(command),
            Ok(_) => {}
            // A daemon that is restarted or busy will respond soon.
            Err(ClientError::Broken(_) | ClientError::Timeout(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_over(command: &MirrorCommand) -> bool {
    command.status != MirrorCommandStatus::Running || command.exit_code.is_some()
}

async fn cancel(daemon: &DaemonClient, command_id: String, exit: CliExit) -> CliResult {
    // If the command is still queued, the daemon withdraws it and replies that it knows no such command.
    let _ = daemon.act("/v1/mirrors/cancel", &MirrorCancelRequest { command_id }).await;
    Err(CliError::silent(exit))
}

fn finish(command: &MirrorCommand, args: &MirrorExecArgs) -> CliResult {
    match (args.json, args.follow) {
        (true, true) => {
            let ended = MirrorCommand { output: String::new(), ..command.clone() };
            output::json(&MirrorStreamItem::Ended(Box::new(ended)))?;
        }
        (true, false) => output::json(command)?,
        (false, _) => {}
    }
    if command.method == MirrorMethod::Screen && !args.json {
        let text = "the shell does not mark its output; agtmux read it from the screen, so it may differ in blanks";
        CliMessage::new(text).print_stderr();
    }
    if command.timed_out {
        let text = match command.status {
            MirrorCommandStatus::Running => "the command timed out and is still running after Ctrl-C",
            _ => "the command timed out and was interrupted with Ctrl-C",
        };
        CliMessage::new(text).hint("agtmux mirror exec --timeout 10m 'COMMAND'").print_stderr();
    } else if command.full_screen {
        CliMessage::new("the command ran a full-screen program, whose screen is not printed").print_stderr();
    }
    match (command.status, command.exit_code) {
        (MirrorCommandStatus::Lost, _) => Err(CliError::failed("the result of the command is unknown")
            .because("the shared terminal was closed while the command ran")
            .hint("agtmux mirror start   (makes a new one)")),
        (_, Some(0)) => Ok(()),
        (_, Some(code)) => std::process::exit(code),
        (_, None) => Err(CliError::failed("the shell did not report the exit code of the command")
            .hint("agtmux mirror stop; agtmux mirror start   (makes a new shared terminal)")),
    }
}
