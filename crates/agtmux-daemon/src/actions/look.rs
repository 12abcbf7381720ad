//! What a pane shows at this moment.

use agtmux_agents::{Reading, Registry, Screen};
use agtmux_core::text;

use super::{Failure, Scene, guards};

/// One look at a pane.
pub(super) struct Look {
    pub(super) screen: Screen,
    pub(super) raw: Vec<u8>,
    pub(super) title: String,
}

impl Look {
    pub(super) fn reading(&self, registry: &Registry, agent_type: &str) -> Reading {
        registry.read_screen(agent_type, &self.screen, Some(&self.title))
    }
}

impl Scene<'_> {
    /// Refused where the pane is not the one that is meant.
    pub(super) async fn look(&self) -> Result<Look, Failure> {
        let captures = self.tmux.capture(&[self.guard.pane]).await?;
        let Some(capture) = captures.into_iter().find(|capture| capture.pane == self.guard.pane) else {
            return Err(Failure::refused(guards::stale("the pane is gone".into())));
        };
        if (capture.server_pid, capture.pane_pid) != (self.guard.server_pid, self.guard.pane_pid) {
            return Err(Failure::refused(guards::stale("another program was started in the pane".into())));
        }
        let title = text::from_bytes(&capture.title);
        Ok(Look { screen: Screen::parse(&capture.screen), raw: capture.screen, title })
    }
}
