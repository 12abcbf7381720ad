//! The daemon: observers collect evidence, the engine decides, the store keeps the result, and the API server publishes
//! it.

mod actions;
mod background;
mod bridge;
mod clock;
mod current_registry;
mod engine;
mod event_log;
mod file_guard;
mod file_identity;
mod fleet_diff;
mod git;
mod lock;
mod logging;
mod mirror;
mod notify;
mod observe;
mod program;
mod remote;
mod replay;
mod run;
mod screens;
mod serve;
mod spool;
mod store;
mod submissions;
mod tasks;
mod view;
mod worktrees;

pub use replay::{ReplayError, ReplayLine, ReplayOutcome, replay_database, replay_lines};
pub use run::{DaemonError, DaemonOptions, LogDestination, run};
pub use serve::openapi;
pub use store::{StoreError, read_payload};
