//! SIGINT, SIGTERM and SIGHUP as a future, so that long-running commands can clean up before they exit.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CliError, CliExit, CliResult};

#[derive(Debug)]
pub(crate) struct QuitSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl QuitSignals {
    pub(crate) fn new() -> CliResult<Self> {
        let on = |kind| signal(kind).map_err(|error| CliError::io("listen for signals", error));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn received(&mut self) -> CliExit {
        tokio::select! {
            _ = self.interrupt.recv() => CliExit::Interrupted,
            _ = self.terminate.recv() => CliExit::Terminated,
            _ = self.hang_up.recv() => CliExit::Terminated,
        }
    }
}
