//! The one way back: what is asked of an agent, checked against what is there, done once, and written down.
//!
//! An action never edits state. Its effect comes back as an observation.

mod audit;
mod caller;
mod failure;
mod far;
mod followers;
mod foreign;
mod guards;
mod kill;
mod locks;
mod look;
mod note;
mod output;
mod perform;
mod repeated;
mod respond;
mod resume;
mod scene;
mod sender;
mod snapshots;
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
use crate::targets::Targets;

pub(crate) use caller::Asker;
use failure::Failure;
use followers::Followers;
pub(crate) use locks::Locks;
pub(crate) use note::Noted;
use scene::Scene;
use snapshots::Snapshots;

/// Stands where something was left out.
const CUT: &str = "… [cut]";

/// Everything that an action needs.
#[derive(Clone)]
pub(crate) struct Actions(Arc<Inner>);

struct Inner {
    engine: EngineHandle,
    discovery: Discovery,
    targets: Targets,
    store: Arc<Store>,
    clock: Clock,
    /// One pane is typed into by one at a time.
    panes: Locks,
    /// The same request is done by one at a time.
    requests: Locks,
    snapshots: Snapshots,
    followers: Followers,
    /// Where is written down who has had a task started.
    tasks_dir: PathBuf,
}

impl Actions {
    pub(crate) fn new(
        engine: EngineHandle,
        discovery: Discovery,
        targets: Targets,
        store: Arc<Store>,
        clock: Clock,
        tasks_dir: PathBuf,
    ) -> Self {
        let (panes, requests) = (Locks::default(), Locks::default());
        let (snapshots, followers) = (Snapshots::default(), Followers::default());
        Self(Arc::new(Inner {
            engine,
            discovery,
            targets,
            store,
            clock,
            panes,
            requests,
            snapshots,
            followers,
            tasks_dir,
        }))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Whether what was typed is kept.
    pub(crate) fn keeps_texts(&self) -> bool {
        self.config().audit.store_text
    }

    /// What is kept of a text.
    pub(crate) fn kept(&self, text: &str) -> Option<String> {
        audit::kept(self.config(), Some(text))
    }

    pub(crate) fn health_check_interval(&self) -> Duration {
        self.config().tmux_bridge.health_check_interval.0
    }

    fn config(&self) -> &Config {
        self.0.discovery.config()
    }
}
