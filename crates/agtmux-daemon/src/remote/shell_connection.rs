//! Watches an agentless host: sends commands to its tmux through a shell that stays open.

use agtmux_api::wire::EvidenceKind;
use agtmux_core::fleet::TopologyUpdate;
use agtmux_core::target::TargetFault;
use agtmux_tmux::host::{HostShell, REMOTE_COMMAND, ShellError};
use agtmux_tmux::ssh::ConnectionSharing;

use super::agentless::HostWatch;
use super::connection_end::{ConnectionEnd, last_line};
use super::supervisor::Supervisor;
use super::timeouts::hello_timeout;

impl Supervisor {
    /// Opens a shell on the host and watches the host through it until the connection ends. Returns `None` if another
    /// attempt to connect was requested.
    pub(super) async fn run_shell(&mut self, native_end: &ConnectionEnd) -> Option<ConnectionEnd> {
        let command = self.ssh.command(ConnectionSharing::Shared, REMOTE_COMMAND);
        let shell = match HostShell::open(command, hello_timeout(self.health.health())).await {
            Ok(shell) => shell,
            Err(error) => return Some(connection_end(&error)),
        };
        self.health.record_success();
        let (context, link, ahead) = (self.discovery.context().clone(), self.link.clone(), shell.clock_ahead_ms());
        let mut watch = HostWatch::new(&context, self.target.clone(), shell);
        let mut is_first = true;
        loop {
            tokio::select! {
                answer = watch.next_answer() => match answer {
                    Ok(()) => self.on_shell_answer(ahead, native_end, std::mem::take(&mut is_first)).await,
                    Err(why) => return Some(connection_end(&why)),
                },
                () = link.retry_requested() => return None,
            }
        }
    }

    /// Updates the status if the answer of the host changes it. The first answer on a connection always updates the
    /// status, because a caller may wait for the result of this connection attempt.
    async fn on_shell_answer(&mut self, ahead: i64, native_end: &ConnectionEnd, is_first: bool) {
        let health = self.health.record_success();
        let status = self.link.status();
        if status.connected && status.target.health == health && !is_first {
            return;
        }
        let (target, now) = (self.target.clone(), self.clock.now());
        let update = self.update_hint(native_end, &format!("agtmux target connect {target}"));
        if !status.connected {
            tracing::info!(%target, why = native_end.message, "connected through a shell");
            self.engine.apply_topology(TopologyUpdate::TargetOutage { target, outage: None }).await;
        }
        self.update_status(|link| {
            let target = &mut link.target;
            target.since = if link.connected { target.since } else { now };
            (link.connected, link.attempts) = (true, link.attempts + 1);
            (target.health, target.evidence) = (health, EvidenceKind::Screen);
            (target.agtmux_version, target.fault, target.message) = (None, None, None);
            target.clock_ahead_ms = Some(ahead);
            target.hint = Some(format!("{}: only screens and processes are visible; {update}", native_end.message));
        })
        .await;
    }
}

fn connection_end(error: &ShellError) -> ConnectionEnd {
    let fault = match error {
        ShellError::Spawn(_) => TargetFault::Unreachable,
        ShellError::Timeout { .. } => TargetFault::NoResponse,
        ShellError::Unsupported(_) => TargetFault::NothingInstalled,
        ShellError::Closed(_) | ShellError::OutputTooLarge(_) => TargetFault::Disconnected,
    };
    ConnectionEnd::new(fault, last_line(&error.to_string()).unwrap_or_default())
}
