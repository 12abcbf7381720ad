//! The way in: tmux servers found, watched and read back.

mod agents;
mod bare;
mod convert;
mod discovery;
mod files;
mod hooking;
mod logs;
mod lookout;
mod manifests;
mod pace;
mod processes;
mod residents;
mod screens;
mod seen;
mod server;
mod switchboard;
mod taps;
mod watched;

use std::sync::Arc;

use agtmux_api::config::Config;
use agtmux_tmux::platform::ProcessTable;
use std::path::PathBuf;

use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::roster::Roster;
use bare::BareHosts;
use switchboard::Switchboard;

pub(crate) use bare::{Processes, Reach, StrikeError, Untold, run_bare};
pub(crate) use convert::server_name;
pub(crate) use discovery::Discovery;
pub(crate) use lookout::Lookout;
pub(crate) use manifests::Manifests;
pub(crate) use processes::{facts as process_facts, resident};
pub(crate) use seen::{Seen, Sight};

/// What every observer of the local target shares.
struct Senses {
    config: Config,
    hook_dir: PathBuf,
    engine: EngineHandle,
    switchboard: Arc<Switchboard>,
    processes: Arc<dyn ProcessTable>,
    roster: Roster,
    lookout: Arc<Lookout>,
    clock: Clock,
    /// Hosts that have nothing but tmux and a shell.
    bare: BareHosts,
}
