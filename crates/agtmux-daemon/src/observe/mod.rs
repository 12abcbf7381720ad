//! Observers: find tmux servers, watch them, and report what they read to the engine.

mod agent_files;
mod agent_map;
pub(crate) mod agent_paths;
pub(crate) mod convert;
mod discovery;
mod local_server;
mod logs;
mod manifests;
pub(crate) mod process_watch;
mod recheck_hints;
mod reported_agents;
mod screen_judge;
mod screen_schedule;
mod server_hooks;
mod server_observer;
mod server_process;
mod server_schedule;
mod signal_router;
mod status_files;
mod taps;
mod wake;
mod watched_panes;

use std::sync::Arc;

use agtmux_api::config::Config;
use agtmux_tmux::platform::ProcessTable;
use std::path::PathBuf;

use crate::background::BackgroundTasks;
use crate::clock::Clock;
use crate::current_registry::CurrentRegistry;
use crate::engine::EngineHandle;
use crate::remote::AgentlessHostMap;
use signal_router::SignalRouter;

pub(crate) use convert::server_name;
pub(crate) use discovery::{Discovery, ObserverSetup};
pub(crate) use manifests::UserManifestWatch;
pub(crate) use process_watch::{agent_in_tree, process_facts};
pub(crate) use recheck_hints::RecheckHints;
pub(crate) use reported_agents::AgentReport;
pub(crate) use screen_judge::ScreenEvidence;
pub(crate) use screen_schedule::DueCapture;
pub(crate) use server_observer::ServerObserver;
pub(crate) use signal_router::{ObserverHint, WatchGuard};

/// The data that all observers share.
pub(crate) struct ObserverContext {
    pub(crate) config: Config,
    pub(crate) hook_dir: PathBuf,
    pub(crate) engine: EngineHandle,
    pub(crate) router: Arc<SignalRouter>,
    pub(crate) processes: Arc<dyn ProcessTable>,
    pub(crate) registry: CurrentRegistry,
    pub(crate) recheck_hints: Arc<RecheckHints>,
    pub(crate) clock: Clock,
    /// The agentless hosts: hosts with tmux and a shell, but without agtmux.
    pub(crate) agentless: AgentlessHostMap,
    pub(crate) background: BackgroundTasks,
}
