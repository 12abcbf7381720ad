//! The signals that end a long-running command, so that it can tidy up first.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CliError, Exit};

#[derive(Debug)]
pub(crate) struct Quit {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Quit {
    pub(crate) fn new() -> Result<Self, CliError> {
        let on = |kind| signal(kind).map_err(|error| CliError::io("listen for signals", error));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: on(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn requested(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            _ = self.hang_up.recv() => Exit::Terminated,
        }
    }
}
