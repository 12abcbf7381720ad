//! `agtmux adapters record`: saves the screen and the events of an agent, with secrets removed.

mod facts;
mod screen;

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agtmux_api::config::Config;
use agtmux_api::paths::private_dir;
use agtmux_api::wire::{DaemonHealth, Explanation};
use agtmux_client::DaemonClient;
use agtmux_core::redact;
use agtmux_tmux::{Capture, TmuxServer};
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::commands::explain::AgentRefQuery;
use crate::error::{CliError, CliResult};
use crate::message::CliMessage;
use crate::{agent_registry, output};

#[derive(Debug, Args)]
pub(crate) struct AdapterRecordArgs {
    /// The agent: %12, runtime:ID, pane:TARGET/SESSION/@W/%P, or its type if only one agent matches
    #[arg(value_name = "REF")]
    reference: String,
    /// Write the files into this directory, which must be empty or new [default: a directory in agtmux's state
    /// directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) async fn run(args: AdapterRecordArgs) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let explained: Value = daemon.get("/v1/explain", &AgentRefQuery { r#ref: &args.reference, since: None }).await?;
    let explanation: Explanation =
        serde_json::from_value(explained.clone()).map_err(|e| CliError::io("read the daemon's response", e))?;
    let runtime = format!("runtime:{}", explanation.runtime_id);
    let named = AgentRefQuery { r#ref: &runtime, since: None };
    let capture = capture(&daemon, &explanation).await?;
    let shown = screen::redact_screen(&capture.screen);
    let files = [
        ("screen.txt", shown.plain.into_bytes()),
        ("screen.ansi", shown.ansi),
        ("facts.json", redacted_json(facts::pane_facts(&explanation, &capture))?),
        ("explain.json", redacted_json(explained)?),
        ("history.json", redacted_json(daemon.get("/v1/history", &named).await?)?),
        ("events.json", redacted_json(daemon.get("/v1/history/events", &named).await?)?),
    ];
    let dir = match args.out {
        Some(dir) => create_empty_dir(dir)?,
        None => default_dir(&daemon, &explanation)?,
    };
    for (name, content) in &files {
        write(&dir.join(name), content)?;
    }
    output::verbatim(dir.as_os_str().as_encoded_bytes())?;
    let screen = agent_registry::display_path(&dir.join("screen.ansi"));
    CliMessage::new(format!(
        "saved the screen and the events of {} in {}",
        explanation.agent_type, explanation.pane_id
    ))
    .because("secrets of known kinds are redacted; review the files before you share them")
    .hint(format!("agtmux explain --screen {screen} --agent {}", explanation.agent_type))
    .print_stderr();
    Ok(())
}

async fn capture(daemon: &DaemonClient, explanation: &Explanation) -> CliResult<Capture> {
    let health: DaemonHealth = daemon.get("/v1/health", &()).await?;
    let server =
        health.servers.iter().find(|server| server.target == explanation.target && server.server == explanation.server);
    let pane = explanation.pane_id.trim_start_matches('%').parse::<u32>().ok();
    let gone = || CliError::failed(format!("cannot read the pane {}", explanation.pane_id)).hint("agtmux list panes");
    let (server, pane) = server.zip(pane).ok_or_else(gone)?;
    let tmux = Config::load(&daemon.paths.config)?.tmux;
    let socket = agtmux_core::text::to_bytes(&server.socket);
    let socket = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&socket);
    let captures = TmuxServer::new(tmux.program, socket, tmux.command_timeout.0).capture(&[pane]).await;
    let captures = captures.map_err(|error| CliError::io("read the pane", error))?;
    captures.into_iter().find(|capture| capture.server_pid == server.pid).ok_or_else(gone)
}

/// Formats the daemon's response as JSON, with secrets redacted.
fn redacted_json(mut answer: Value) -> CliResult<Vec<u8>> {
    redact::json(&mut answer);
    let mut bytes = serde_json::to_vec_pretty(&answer).map_err(|error| CliError::io("write JSON", error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn default_dir(daemon: &DaemonClient, explanation: &Explanation) -> CliResult<PathBuf> {
    let records = daemon.paths.records_dir();
    daemon.paths.prepare_state_dir()?;
    private_dir(&records, "AGTMUX_STATE_DIR")?;
    let time = Timestamp::now().strftime("%Y%m%dT%H%M%S%.3fZ");
    let kind: String =
        explanation.agent_type.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    create_empty_dir(records.join(format!("{kind}-{}-{time}", explanation.pane_id.trim_start_matches('%'))))
}

/// Creates the directory, or accepts an existing empty directory. Fails if the directory contains files, so that agtmux
/// overwrites none of them.
fn create_empty_dir(dir: PathBuf) -> CliResult<PathBuf> {
    let shown = agent_registry::display_path(&dir);
    let cannot = |error: std::io::Error| CliError::io(&format!("use '{shown}'"), error);
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(cannot)?;
    if std::fs::read_dir(&dir).map_err(cannot)?.next().is_some() {
        return Err(CliError::usage(format!("'{shown}' is not empty")).hint("choose an empty or new directory"));
    }
    std::path::absolute(&dir).map_err(cannot)
}

fn write(path: &Path, content: &[u8]) -> CliResult {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(content));
    written.map_err(|error| CliError::io(&format!("write '{}'", agent_registry::display_path(path)), error))
}
