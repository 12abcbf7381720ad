//! The panes of shared terminals.

use std::collections::BTreeMap;

use agtmux_core::fleet::{Pane, PaneKey};

/// The shared terminal of each pane, and the process of its shell. A pane with another process is no shared terminal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct MirrorPanes(BTreeMap<PaneKey, (u32, String)>);

impl MirrorPanes {
    pub(crate) fn insert(&mut self, key: PaneKey, process: u32, mirror_id: String) {
        self.0.insert(key, (process, mirror_id));
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &PaneKey> {
        self.0.keys()
    }

    /// The id of the shared terminal in this pane.
    pub(super) fn mirror_id(&self, key: &PaneKey, pane: &Pane) -> Option<&str> {
        let (process, mirror_id) = self.0.get(key)?;
        (*process == pane.pid).then_some(mirror_id)
    }
}
