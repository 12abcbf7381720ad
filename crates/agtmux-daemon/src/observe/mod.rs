//! Observers: find tmux servers, watch them, and report what they read to the engine.

mod agent_map;
mod agentless;
mod agents;
mod convert;
mod discovery;
mod logs;
mod manifests;
mod process_watch;
mod recheck_hints;
mod screen_judge;
mod screen_schedule;
mod server_hooks;
mod server_observer;
mod server_schedule;
mod signal_router;
mod status_files;
mod taps;
mod watched_panes;

use std::sync::Arc;

use agtmux_api::config::Config;
use agtmux_tmux::platform::ProcessTable;
use std::path::PathBuf;

use crate::clock::Clock;
use crate::current_registry::CurrentRegistry;
use crate::engine::EngineHandle;
use agentless::AgentlessHostMap;
use signal_router::SignalRouter;

pub(crate) use agentless::{HostProcesses, ProcessesUnavailable, ServerAccess, SignalError, watch_agentless_host};
pub(crate) use convert::server_name;
pub(crate) use discovery::Discovery;
pub(crate) use manifests::UserManifestWatch;
pub(crate) use process_watch::{agent_in_tree, process_facts};
pub(crate) use recheck_hints::RecheckHints;
pub(crate) use screen_judge::{ScreenEvidence, SourceObservation};

/// What all observers share.
struct ObserverContext {
    config: Config,
    hook_dir: PathBuf,
    engine: EngineHandle,
    router: Arc<SignalRouter>,
    processes: Arc<dyn ProcessTable>,
    registry: CurrentRegistry,
    recheck_hints: Arc<RecheckHints>,
    clock: Clock,
    /// The agentless hosts: hosts with tmux and a shell, but without agtmux.
    agentless: AgentlessHostMap,
}
