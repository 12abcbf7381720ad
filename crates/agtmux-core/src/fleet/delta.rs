use std::collections::BTreeSet;

use super::model::PaneKey;
use crate::ids::{ProcessRef, ServerKey, SessionId, WindowId};
use crate::runtime::{Runtime, RuntimeId};

/// The changes made by one topology update, for the store and for clients.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FleetDelta {
    /// Panes that are new or different.
    pub changed: BTreeSet<PaneKey>,
    /// Panes that are gone.
    pub removed: BTreeSet<PaneKey>,
    /// Servers that appeared or disappeared, or whose generation or health changed.
    pub servers: BTreeSet<ServerKey>,
    /// Windows and sessions whose summary may have changed, including those that lost a pane.
    pub windows: BTreeSet<(ServerKey, WindowId)>,
    pub sessions: BTreeSet<(ServerKey, SessionId)>,
    /// Changes of runtimes and their servers, in order.
    pub runtime_changes: Vec<RuntimeChange>,
    /// Whether the outage of a target began, changed or ended.
    pub targets_changed: bool,
}

/// A change of a runtime, or of the reachability of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeChange {
    /// An agent or task appeared in a pane.
    Started { pane: PaneKey, runtime: Runtime },
    /// The runtime's process ended, or its pane is gone.
    Ended { pane: PaneKey, runtime: RuntimeId, process: ProcessRef },
    /// The process was stopped (Ctrl-Z) or continued.
    Suspended { runtime: RuntimeId, suspended: bool },
    /// A server became reachable or unreachable.
    Reachable { server: ServerKey, reachable: bool },
}

impl FleetDelta {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
