use std::collections::BTreeSet;

use super::model::PaneKey;
use crate::ids::{ProcessRef, ServerKey, SessionId, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// What one observation changed: enough to store it and to tell everyone.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FleetDelta {
    /// Panes that are new or different.
    pub changed: BTreeSet<PaneKey>,
    /// Panes that are gone.
    pub removed: BTreeSet<PaneKey>,
    /// Servers whose generation or health changed, or that came or went.
    pub servers: BTreeSet<ServerKey>,
    /// Windows and sessions whose summary may differ, also those that lost a pane.
    pub windows: BTreeSet<(ServerKey, WindowId)>,
    pub sessions: BTreeSet<(ServerKey, SessionId)>,
    /// What happened to runtimes and to what they live on, in order.
    pub runtime_changes: Vec<RuntimeChange>,
    /// A whole target became unreachable or came back.
    pub targets_changed: bool,
}

/// A turn in the life of runtimes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeChange {
    Started {
        pane: PaneKey,
        runtime: Runtime,
    },
    Ended {
        pane: PaneKey,
        runtime: RuntimeId,
        process: ProcessRef,
    },
    /// Stopped with Ctrl-Z, or going on.
    Suspended {
        runtime: RuntimeId,
        suspended: bool,
    },
    /// A server no longer answers, or does again.
    Reachable {
        server: ServerKey,
        reachable: bool,
    },
}

impl FleetDelta {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
