//! The current screen of a pane.

use std::time::Duration;

use agtmux_agents::{CapturedScreen, KnownAgent, ScreenReading};
use agtmux_api::error::ApiResult;
use agtmux_core::text;
use tokio::time::{Instant, sleep};

use super::{ActionPane, guards, tmux_error};

pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// One capture of a pane.
pub(super) struct PaneScreen {
    pub(super) screen: CapturedScreen,
    pub(super) raw: Vec<u8>,
    pub(super) title: String,
}

impl PaneScreen {
    pub(super) fn reading(&self, agent: &KnownAgent) -> ScreenReading {
        agent.read_screen(&self.screen, Some(&self.title))
    }
}

impl ActionPane<'_> {
    /// Captures the pane. Fails if the pane is gone or runs another program.
    pub(super) async fn capture(&self) -> ApiResult<PaneScreen> {
        let captures = self.tmux.capture(&[self.guard.pane]).await.map_err(tmux_error)?;
        let Some(capture) = captures.into_iter().find(|capture| capture.pane == self.guard.pane) else {
            return Err(guards::runtime_stale("the pane is gone".into()));
        };
        if (capture.server_pid, capture.pane_pid) != (self.guard.server_pid, self.guard.pane_pid) {
            return Err(guards::runtime_stale("another program was started in the pane".into()));
        }
        let title = text::from_bytes(&capture.title);
        Ok(PaneScreen { screen: CapturedScreen::parse(&capture.screen), raw: capture.screen, title })
    }

    /// Captures the screen repeatedly until `shows` returns a value. Returns `None` on timeout.
    pub(super) async fn poll_screen<T>(
        &self,
        timeout: Duration,
        mut shows: impl FnMut(&PaneScreen) -> ApiResult<Option<T>>,
    ) -> ApiResult<Option<T>> {
        let deadline = Instant::now() + timeout;
        loop {
            let timed_out = Instant::now() >= deadline;
            if let Some(found) = shows(&self.capture().await?)? {
                return Ok(Some(found));
            }
            if timed_out {
                return Ok(None);
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}
