//! The current screen of a pane.

use agtmux_agents::{CapturedScreen, KnownAgent, ScreenReading};
use agtmux_core::text;

use super::{ActionFailure, ActionPane, guards};

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
    pub(super) async fn capture(&self) -> Result<PaneScreen, ActionFailure> {
        let captures = self.tmux.capture(&[self.guard.pane]).await?;
        let Some(capture) = captures.into_iter().find(|capture| capture.pane == self.guard.pane) else {
            return Err(ActionFailure::refused(guards::runtime_stale("the pane is gone".into())));
        };
        if (capture.server_pid, capture.pane_pid) != (self.guard.server_pid, self.guard.pane_pid) {
            return Err(ActionFailure::refused(guards::runtime_stale(
                "another program was started in the pane".into(),
            )));
        }
        let title = text::from_bytes(&capture.title);
        Ok(PaneScreen { screen: CapturedScreen::parse(&capture.screen), raw: capture.screen, title })
    }
}
