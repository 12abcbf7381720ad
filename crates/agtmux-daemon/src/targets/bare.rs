//! A host without an agtmux: its tmux is asked through a shell that stays open.

use agtmux_api::VERSION;
use agtmux_api::wire::EvidenceKind;
use agtmux_core::fleet::Observation;
use agtmux_core::sanitize;
use agtmux_core::target::Fault;
use agtmux_tmux::host::{HostShell, REMOTE_COMMAND, ShellError};
use agtmux_tmux::ssh::Sharing;
use tokio::sync::mpsc;

use super::end::End;
use super::supervisor::Supervisor;
use crate::observe::run_bare;
use crate::patience::hello_within;

impl Supervisor {
    /// Returns when the connection has ended, or with nothing when somebody wants another way to be tried.
    pub(super) async fn watch_by_shell(&mut self, because: &End) -> Option<End> {
        let command = self.ssh.command(Sharing::Shared, REMOTE_COMMAND);
        let shell = match HostShell::open(command, hello_within(self.health.health())).await {
            Ok(shell) => shell,
            Err(error) => return Some(end(&error)),
        };
        self.health.succeeded();
        let (discovery, link, ahead) = (self.discovery.clone(), self.link.clone(), shell.clock_ahead_ms());
        let (tell, mut answers) = mpsc::unbounded_channel();
        let watch = run_bare(&discovery, self.target.clone(), shell, || {
            let _ = tell.send(());
        });
        tokio::pin!(watch);
        let mut is_first = true;
        loop {
            tokio::select! {
                why = &mut watch => return Some(end(&why)),
                Some(()) = answers.recv() => {
                    self.answered(ahead, because, std::mem::take(&mut is_first)).await;
                }
                () = link.nudged() => return None,
            }
        }
    }

    /// The first answer of a connection is told in any case: somebody may wait for what comes of it.
    async fn answered(&mut self, ahead: i64, because: &End, is_first: bool) {
        let health = self.health.succeeded();
        let status = self.link.status();
        if status.connected && status.health == health && !is_first {
            return;
        }
        let (target, host, now) = (self.target.clone(), self.ssh.destination().to_owned(), self.clock.now());
        if !status.connected {
            tracing::info!(%target, why = because.message, "connected; its tmux is asked through a shell");
            self.engine.observe(Observation::TargetOutage { target: target.clone(), outage: None }).await;
        }
        self.link.change(|status| {
            status.since = if status.connected { status.since } else { now };
            (status.health, status.connected, status.evidence) = (health, true, EvidenceKind::Screen);
            (status.version, status.fault, status.message) = (None, None, None);
            status.clock_ahead_ms = Some(ahead);
            status.hint = Some(format!(
                "{}, so only screens and processes are seen; install agtmux {VERSION} on {host}, then: \
                 agtmux target connect {target}",
                because.message
            ));
            status.tries += 1;
        });
    }
}

fn end(error: &ShellError) -> End {
    let fault = match error {
        ShellError::Spawn(_) => Fault::Unreachable,
        ShellError::Timeout { .. } => Fault::Silent,
        ShellError::Unfit(_) => Fault::NothingThere,
        ShellError::Closed(_) | ShellError::TooMuch(_) => Fault::Cut,
    };
    let text = error.to_string();
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    End::new(fault, sanitize::for_terminal(&last.chars().take(300).collect::<String>()))
}
