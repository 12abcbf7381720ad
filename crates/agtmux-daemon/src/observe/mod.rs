//! The way in: tmux servers found, watched and read back.

mod convert;
mod discovery;
mod hooking;
mod pace;
mod processes;
mod server;
mod switchboard;
mod watched;

use std::sync::Arc;

use agtmux_agents::Registry;
use agtmux_api::config::Config;
use agtmux_tmux::platform::ProcessTable;
use std::path::PathBuf;

use crate::engine::EngineHandle;
use switchboard::Switchboard;

pub(crate) use discovery::Discovery;

/// What every observer of the local target shares.
struct Senses {
    config: Config,
    hook_dir: PathBuf,
    engine: EngineHandle,
    switchboard: Arc<Switchboard>,
    processes: Arc<dyn ProcessTable>,
    registry: &'static Registry,
}
