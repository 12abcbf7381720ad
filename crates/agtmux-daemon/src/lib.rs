//! The daemon: observers bring evidence in, the engine decides, the store keeps it, the server tells everyone.

mod actions;
mod bridge;
mod clock;
mod engine;
mod lock;
mod logging;
mod observe;
mod patience;
mod recorder;
mod replay;
mod roster;
mod run;
mod serve;
mod shared;
mod spool;
mod store;
mod targets;
mod tasks;
mod view;

pub use replay::{Line, ReplayError, Replayed, replay_database, replay_lines};
pub use run::{DaemonError, LogTo, RunOptions, run};
pub use serve::openapi;
pub use store::StoreError;
