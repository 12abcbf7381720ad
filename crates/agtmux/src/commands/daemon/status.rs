use agtmux_api::wire::{ComponentHealth, DaemonHealth, ListQuery, ServerHealth};
use agtmux_client::{ClientError, DaemonClient, parse};
use jiff::Timestamp;

use super::find::find;
use crate::error::{CliError, CliExit, CliResult};
use crate::message::CliMessage;
use crate::{message, output, render};

pub(super) async fn run(json: bool) -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let bytes = match daemon.api.get_bytes("/v1/health", &ListQuery::default()).await {
        Ok(bytes) => bytes,
        Err(ClientError::NotRunning(_)) => return Err(not_running(&daemon).await?),
        Err(error) => return Err(error.into()),
    };
    if json {
        return output::json_answer(&bytes);
    }
    let health: DaemonHealth = parse(&bytes)?;
    output::lines(describe(&health, &daemon.paths.socket.display().to_string(), Timestamp::now()))?;
    render::target_errors(&health.target_errors).for_each(|message| message.print_stderr());
    if health.version != agtmux_api::VERSION {
        message::other_version(&health.version).print_stderr();
    }
    Ok(())
}

async fn not_running(daemon: &DaemonClient) -> CliResult<CliError> {
    let message = match find(daemon).await? {
        None => CliMessage::new("the daemon is not running").hint("agtmux daemon start"),
        Some(pid) => CliMessage::new(format!("the daemon (pid {}) is starting, ending or stuck", pid.as_raw_nonzero()))
            .because(format!(
                "the daemon holds the lock '{}' but does not listen on the daemon's socket",
                daemon.paths.lock().display()
            ))
            .hint("agtmux daemon logs")
            .hint("agtmux daemon restart"),
    };
    Ok(CliError::new(CliExit::NoDaemon, message))
}

fn describe(health: &DaemonHealth, socket: &str, now: Timestamp) -> Vec<String> {
    let mut lines = vec![
        format!("agtmuxd {}, {}", health.version, health.status),
        format!("  pid     {}, for {}", health.pid, render::age(health.started_at, now)),
        format!("  socket  {socket}"),
        format!("  store   {}", health.store.path),
    ];
    if let Some(error) = &health.store.error {
        lines.push(format!("          cannot be written: {error}"));
    }
    if let Some(moved) = &health.store.quarantined {
        lines.push(format!("          the old database was unreadable and is kept at {moved}"));
    }
    lines.extend(health.components.iter().filter_map(|(name, health)| component(name, health)));
    if health.servers.is_empty() {
        lines.push("  no tmux server is running".to_owned());
    }
    lines.extend(health.servers.iter().map(server));
    lines
}

/// The line of the output for a component of the daemon. `None` for two components that are always present: they get no
/// line.
fn component(name: &str, health: &ComponentHealth) -> Option<String> {
    let is_usual = matches!(name, "tmux_bridge" | "commander_availability");
    let state = if health.status == "ok" { "note" } else { "failed" };
    (!is_usual).then(|| format!("  {state:<7} {name}: {}", health.detail))
}

fn server(server: &ServerHealth) -> String {
    format!(
        "  server  {}@{}: tmux {}, pid {}, {} panes, {}{}",
        server.target,
        server.server,
        server.tmux_version,
        server.pid,
        server.panes,
        server.evidence,
        if server.hooks { "" } else { ", no hooks" },
    )
}
