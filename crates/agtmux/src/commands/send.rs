//! `agtmux send`: a text for an agent, and proof that it was taken.

use std::io::Read;
use std::path::{Path, PathBuf};

use agtmux_api::wire::{ActionOutcome, InputProfile, SendAction, SendReport, Verification, VerifiedBy};
use clap::{ArgGroup, Args, ValueEnum};

use super::guards::GuardArgs;
use crate::connect::{DaemonClient, parse};
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;
use crate::output;

/// The daemon takes no more than this; reading more is of no use.
const MAX_TEXT_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["text", "stdin", "file"])),
    after_help = "Exits with 0 when the text was taken, or typed and nothing tells whether it was; with 5 when it was \
    refused, or not taken: the message says whether something was typed."
)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    guards: GuardArgs,
    /// The text to send
    #[arg(long)]
    text: Option<String>,
    /// Read the text from stdin
    #[arg(long)]
    stdin: bool,
    /// Read the text from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A key to press after the text, such as Escape, C-u or Down; may be given several times
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Leave the text in the input box
    #[arg(long, requires = "what")]
    no_enter: bool,
    /// How the program there takes its input: an agent's box, or a shell
    #[arg(long)]
    profile: Option<SendProfileArg>,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SendProfileArg {
    Tui,
    Shell,
}

pub(crate) async fn run(args: Box<SendArgs>) -> Result<CliExit, CliError> {
    let text = text(&args)?;
    if text.is_none() && args.keys.is_empty() {
        let message = CliMessage::new("there is nothing to send").hint("agtmux send REF --text TEXT");
        return Err(CliError::new(CliExit::Usage, message.hint("agtmux send REF --key Escape")));
    }
    let profile = args.profile.map(|name| match name {
        SendProfileArg::Tui => InputProfile::Tui,
        SendProfileArg::Shell => InputProfile::Shell,
    });
    let daemon = DaemonClient::from_env()?;
    let guards = args.guards.resolved(&daemon).await?;
    let action = SendAction { guards, text, keys: args.keys.clone(), no_enter: args.no_enter, profile };
    let answer = daemon.act("/v1/actions/send", &action).await?;
    if args.json {
        output::line(&answer)?;
        return Ok(CliExit::Ok);
    }
    output::line(outcome_line(&parse(&answer)?).as_bytes())?;
    Ok(CliExit::Ok)
}

fn text(args: &SendArgs) -> Result<Option<String>, CliError> {
    match (&args.text, args.stdin, &args.file) {
        (Some(text), ..) => Ok(Some(text.clone())),
        (None, true, _) => read(Path::new("-")).map(Some),
        (None, false, Some(file)) => read(file).map(Some),
        (None, false, None) => Ok(None),
    }
}

fn read(path: &Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| CliError::io(&format!("read '{}'", path.display()), error))?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        // Before anything else: what was cut may end in half a character.
        let message =
            CliMessage::new(format!("'{}' has more than {MAX_TEXT_BYTES} bytes, which is the most", path.display()));
        return Err(CliError::new(CliExit::Usage, message.hint("tell the agent to read the file")));
    }
    String::from_utf8(bytes).map_err(|_| {
        let message = CliMessage::new(format!("'{}' is not UTF-8 text", path.display()));
        CliError::new(CliExit::Usage, message.hint("agents take text; convert it first, as with iconv"))
    })
}

fn outcome_line(done: &ActionOutcome<SendReport>) -> String {
    let SendReport { verified, by, attempts, bytes, .. } = &done.report;
    let how = match (verified, by) {
        (Verification::Confirmed, VerifiedBy::Event) => "submitted, the agent says so",
        (Verification::Confirmed, VerifiedBy::Box) if *attempts == 0 => "stands in the input box",
        (Verification::Confirmed, VerifiedBy::Box) => "submitted, the input box is empty again",
        (Verification::Confirmed, _) => "submitted, the screen changed",
        (Verification::Inconclusive, _) => "typed; nothing tells whether it was taken",
        (Verification::Failed, _) => "not taken",
    };
    let again = if done.repeated { "; that was done before" } else { "" };
    format!("{bytes} bytes to {} on {}: {how} ({} ms{again})", done.pane_id, done.server_label(), done.latency_ms)
}
