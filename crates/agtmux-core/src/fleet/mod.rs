//! The model of every pane on every server: what was read back, never what was hoped for.

mod apply;
mod delta;
mod model;
mod tasks;
#[cfg(test)]
mod tests;

pub use apply::{AgentSighting, Observation, PaneRow, ProcessSighting};
pub use delta::{Delta, Life};
pub use model::{
    Death, Fleet, Foreground, Outage, OutageCode, Pane, PaneKey, Placement, Server, TaskSighting, TaskStand,
};
