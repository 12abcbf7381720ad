//! Actions: send, respond, kill, new, resume, rename, attach, view-output and last.
//!
//! An action is validated against the current pane, runs once, and is recorded in the audit log. An action never sets
//! an agent's state: the daemon observes the effect of the action and derives the state from that.

mod action_pane;
mod action_target;
mod ancestry;
mod audit;
mod caller;
mod caller_report;
mod change_audit;
mod desktop;
mod ended_agents;
mod event_sender;
mod failure;
pub(crate) mod guards;
mod idempotency;
mod kill;
mod last;
mod locks;
mod mirror_access;
mod mirror_origin;
mod new;
mod origin;
mod output;
mod output_followers;
mod own_dialog;
mod pane_screen;
mod pane_visits;
mod perform;
mod popups;
mod rename;
mod respond;
mod resume;
mod sender;
mod snapshots;
mod task_audit;
mod task_origin;
mod worktree_panes;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::config::Config;
use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::observe::Discovery;
use crate::remote::TargetManager;
use crate::store::Store;

use action_pane::ActionPane;
pub(crate) use caller::RequestCaller;
pub(crate) use change_audit::ChangeEntry;
use event_sender::SenderChains;
use failure::{after_typing, after_typing_if};
pub(crate) use failure::{precondition, tmux_error, type_error};
pub(crate) use locks::NamedLocks;
pub(crate) use mirror_access::{MirrorActionEntry, MirrorPlace};
use mirror_origin::AgentShells;
pub(crate) use new::KeptPrompts;
pub(crate) use origin::ContainingPane;
use output_followers::OutputFollowers;
use pane_visits::VisitedPanes;
use snapshots::ActionSnapshots;
pub(crate) use task_audit::TaskActionEntry;

/// Marks the place where a text was truncated.
pub(crate) const CUT_MARK: &str = "… [cut]";

/// Runs actions. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Actions(Arc<ActionsInner>);

struct ActionsInner {
    engine: EngineHandle,
    discovery: Discovery,
    targets: TargetManager,
    store: Arc<Store>,
    clock: Clock,
    /// One lock per pane, so that two actions never type into the same pane at once.
    pane_locks: NamedLocks,
    /// One lock per `request_ref`, so that repeated requests run one after the other.
    request_locks: NamedLocks,
    snapshots: ActionSnapshots,
    followers: OutputFollowers,
    visited_panes: VisitedPanes,
    sender_chains: SenderChains,
    agent_shells: AgentShells,
    /// The directory with the run files of tasks. These files say which agent started a task.
    tasks_dir: PathBuf,
    kept_prompts: KeptPrompts,
}

impl Actions {
    pub(crate) fn new(
        engine: EngineHandle,
        discovery: Discovery,
        targets: TargetManager,
        store: Arc<Store>,
        clock: Clock,
        tasks_dir: PathBuf,
        kept_prompts: KeptPrompts,
    ) -> Self {
        Self(Arc::new(ActionsInner {
            engine,
            discovery,
            targets,
            store,
            clock,
            pane_locks: NamedLocks::default(),
            request_locks: NamedLocks::default(),
            snapshots: ActionSnapshots::default(),
            followers: OutputFollowers::default(),
            visited_panes: VisitedPanes::default(),
            sender_chains: SenderChains::default(),
            agent_shells: AgentShells::default(),
            tasks_dir,
            kept_prompts,
        }))
    }

    /// By how much the wall clock was set forward or back in total since the daemon started.
    pub(crate) fn clock_steps(&self) -> SignedDuration {
        self.0.clock.total_step()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Whether the audit log stores typed text (`audit.store_text`).
    pub(crate) fn stores_text(&self) -> bool {
        self.config().audit.store_text
    }

    /// The redacted and truncated text, as the audit log stores it. `None` if `audit.store_text` is off.
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
