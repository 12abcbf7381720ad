//! The fleet: a model of every pane on every server. agtmux builds it only from data that it has read from tmux and
//! from the process table.

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
