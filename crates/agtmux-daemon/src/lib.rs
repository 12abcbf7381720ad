//! The daemon: observers bring evidence in, the engine decides, the store keeps it, the server tells everyone.

mod engine;
mod lock;
mod logging;
mod observe;
mod recorder;
mod run;
mod serve;
mod shared;
mod store;
mod view;

pub use run::{DaemonError, LogTo, RunOptions, run};
pub use serve::openapi;
pub use store::StoreError;
