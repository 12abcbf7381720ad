//! The model of every pane on every server: what was read back, never what was hoped for.

mod apply;
mod delta;
mod model;
mod tasks;
#[cfg(test)]
mod tests;

pub use apply::{DetectedAgent, PaneProcess, PaneRow, TopologyUpdate};
pub use delta::{FleetDelta, RuntimeChange};
pub use model::{
    Fleet, ForegroundProcess, Outage, OutageCode, Pane, PaneExitStatus, PaneKey, PaneTask, PaneTaskStatus, Placement,
    Server,
};
