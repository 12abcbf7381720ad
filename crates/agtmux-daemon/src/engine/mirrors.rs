//! The panes of shared terminals. They are shown in lists, but have no state, and the resolver does not know them.

use super::step::EngineStep;
use super::{Engine, EngineHandle, EngineInput};
use crate::view::MirrorPanes;

impl EngineHandle {
    /// Replaces the panes of shared terminals.
    pub(crate) async fn set_mirror_panes(&self, panes: MirrorPanes) {
        let _ = self.inputs.send(EngineInput::Mirrors(panes)).await;
    }
}

impl Engine {
    pub(super) fn replace_mirror_panes(&mut self, panes: MirrorPanes, step: &mut EngineStep) {
        if panes == self.mirror_panes {
            return;
        }
        for key in self.mirror_panes.keys().chain(panes.keys()) {
            if self.fleet.pane(key).is_some() {
                step.delta.changed.insert(key.clone());
            }
        }
        self.mirror_panes = panes;
    }
}
