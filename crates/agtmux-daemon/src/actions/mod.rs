//! The one way back: what is asked of an agent, checked against what is there, done once, and written down.
//!
//! An action never edits state. Its effect comes back as an observation.

mod action_pane;
mod audit;
mod caller;
mod failure;
mod guards;
mod idempotency;
mod kill;
mod locks;
mod output;
mod output_followers;
mod pane_screen;
mod perform;
mod remote;
mod respond;
mod resume;
mod sanitize_remote;
mod sender;
mod snapshots;
mod task_audit;
mod task_origin;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::config::Config;
use jiff::Timestamp;

use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::observe::Discovery;
use crate::store::Store;
use crate::targets::TargetManager;

use action_pane::ActionPane;
pub(crate) use caller::RequestCaller;
use failure::ActionFailure;
pub(crate) use locks::NamedLocks;
use output_followers::OutputFollowers;
use snapshots::ActionSnapshots;
pub(crate) use task_audit::TaskActionEntry;

/// Stands where something was left out.
const CUT_MARK: &str = "… [cut]";

/// Everything that an action needs.
#[derive(Clone)]
pub(crate) struct Actions(Arc<ActionsInner>);

struct ActionsInner {
    engine: EngineHandle,
    discovery: Discovery,
    targets: TargetManager,
    store: Arc<Store>,
    clock: Clock,
    /// One pane is typed into by one at a time.
    pane_locks: NamedLocks,
    /// The same request is done by one at a time.
    request_locks: NamedLocks,
    snapshots: ActionSnapshots,
    followers: OutputFollowers,
    /// Where is written down who has had a task started.
    tasks_dir: PathBuf,
}

impl Actions {
    pub(crate) fn new(
        engine: EngineHandle,
        discovery: Discovery,
        targets: TargetManager,
        store: Arc<Store>,
        clock: Clock,
        tasks_dir: PathBuf,
    ) -> Self {
        let (panes, requests) = (NamedLocks::default(), NamedLocks::default());
        let (snapshots, followers) = (ActionSnapshots::default(), OutputFollowers::default());
        Self(Arc::new(ActionsInner {
            engine,
            discovery,
            targets,
            store,
            clock,
            pane_locks: panes,
            request_locks: requests,
            snapshots,
            followers,
            tasks_dir,
        }))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Whether what was typed is kept.
    pub(crate) fn stores_text(&self) -> bool {
        self.config().audit.store_text
    }

    /// What is kept of a text.
    pub(crate) fn audit_text(&self, text: &str) -> Option<String> {
        audit::stored_text(self.config(), Some(text))
    }

    pub(crate) fn health_check_interval(&self) -> Duration {
        self.config().tmux_bridge.health_check_interval.0
    }

    fn config(&self) -> &Config {
        self.0.discovery.config()
    }
}
