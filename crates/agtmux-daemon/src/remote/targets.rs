//! Remote targets: the list, and one supervisor task per target. The daemon never waits for a target.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::fleet_items::ItemFilter;
use agtmux_api::wire::{NewTarget, SshDestination, TargetItem, TargetList};
use agtmux_core::fleet::{Fleet, TopologyUpdate};
use agtmux_core::ids::TargetName;
use agtmux_core::target::{SshTarget, Target, TargetHealthLog, TargetKind};
use agtmux_tmux::ssh::SshClient;
use jiff::SignedDuration;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::link::{LinkStatus, TargetLink};
use super::supervisor::Supervisor;
use crate::clock::Clock;
use crate::engine::EngineHandle;
use crate::event_log::EventLog;
use crate::observe::Discovery;
use crate::store::{Store, StoreChange};
use crate::view::TargetChange;

/// How long `add` and `connect` wait for the first result.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of targets.
const MAX_TARGETS: usize = 256;

#[derive(Clone)]
pub(crate) struct TargetManager(Arc<Inner>);

struct Inner {
    engine: EngineHandle,
    store: Arc<Store>,
    event_log: Arc<EventLog>,
    clock: Clock,
    program: PathBuf,
    /// The directory of the ssh control sockets.
    control_dir: PathBuf,
    discovery: Discovery,
    entries: Mutex<BTreeMap<TargetName, TargetEntry>>,
    /// Ensures that only one `add` or `remove` runs at a time.
    change_lock: tokio::sync::Mutex<()>,
}

struct TargetEntry {
    ssh: SshTarget,
    link: TargetLink,
    task: JoinHandle<()>,
}

/// How remote targets are reached.
pub(crate) struct TargetOptions {
    pub(crate) program: PathBuf,
    pub(crate) control_dir: PathBuf,
    /// Observes agentless hosts.
    pub(crate) discovery: Discovery,
}

impl TargetManager {
    /// Starts a supervisor for every stored target. Each target shows its last known state until it answers.
    pub(crate) async fn start(
        means: TargetOptions,
        stored: Vec<Target>,
        remembered: &Fleet,
        engine: EngineHandle,
        store: Arc<Store>,
        event_log: Arc<EventLog>,
        clock: Clock,
    ) -> Self {
        let TargetOptions { program, control_dir, discovery } = means;
        let (entries, change_lock) = (Mutex::default(), tokio::sync::Mutex::default());
        let inner = Inner { engine, store, event_log, clock, program, control_dir, discovery, entries, change_lock };
        let targets = Self(Arc::new(inner));
        let mut unknown: Vec<TargetName> = remembered.servers().map(|(key, _)| key.target.clone()).collect();
        unknown.retain(|name| !name.is_local() && !stored.iter().any(|target| target.name == *name));
        for target in unknown {
            targets.0.engine.apply_topology(TopologyUpdate::TargetRemoved { target }).await;
        }
        for target in stored {
            // The stored state is outdated until the target answers.
            let message = "no answer yet".to_owned();
            targets
                .0
                .engine
                .apply_topology(TopologyUpdate::TargetUnreachable { target: target.name.clone(), message })
                .await;
            targets.start_supervisor(target).await;
        }
        targets.0.engine.flush().await;
        targets
    }

    async fn start_supervisor(&self, target: Target) {
        let link = TargetLink::new(&target, self.0.clock.now());
        self.0.engine.change_target(TargetChange::Put(Box::new(link.status().target))).await;
        let ssh = self.ssh(&target.name, &target.ssh);
        let supervisor = Supervisor {
            target: target.name.clone(),
            ssh,
            discovery: self.0.discovery.clone(),
            engine: self.0.engine.clone(),
            clock: self.0.clock.clone(),
            link: link.clone(),
            health: TargetHealthLog::default(),
            local_clock_ahead: SignedDuration::ZERO,
            clock_steps: self.0.clock.total_step(),
        };
        let supervisor = Arc::new(tokio::sync::Mutex::new(supervisor));
        let (run, failed) = (supervisor.clone(), supervisor);
        let task = self.0.discovery.background().keep_and_clean_up(
            component_name(&target.name),
            move || {
                let supervisor = run.clone();
                async move { supervisor.lock().await.run().await }
            },
            move || {
                let supervisor = failed.clone();
                async move { supervisor.lock().await.on_panic().await }
            },
        );
        self.entries().insert(target.name, TargetEntry { ssh: target.ssh, link, task });
    }

    pub(super) fn ssh(&self, target: &TargetName, destination: &SshTarget) -> SshClient {
        // A socket path is limited to about 100 bytes, so the file name is a short hash.
        let name = Uuid::new_v5(&Uuid::NAMESPACE_OID, target.as_str().as_bytes()).simple().to_string();
        SshClient::new(&self.0.program, destination.as_str(), self.0.control_dir.join(&name[..12]))
    }

    pub(crate) fn is_known(&self, name: &str) -> bool {
        name == TargetName::LOCAL || self.entries().contains_key(&TargetName::new(name))
    }

    pub(crate) fn link(&self, name: &TargetName) -> Option<TargetLink> {
        self.entries().get(name).map(|entry| entry.link.clone())
    }

    /// The ssh program and destination, for clients that attach to a pane.
    pub(crate) fn ssh_route(&self, name: &TargetName) -> Option<SshDestination> {
        let destination = self.entries().get(name)?.ssh.to_string();
        Some(SshDestination { program: self.0.program.display().to_string(), destination })
    }

    pub(crate) fn list(&self) -> TargetList {
        self.0.event_log.read().view.fleet.list_targets(&ItemFilter::default())
    }

    pub(super) fn item(&self, name: &str) -> Result<TargetItem, ApiError> {
        self.0.event_log.read().view.fleet.target(name).ok_or_else(|| no_such_target(name))
    }

    pub(super) fn find(&self, name: &str) -> Result<(TargetName, SshTarget, TargetLink), ApiError> {
        let key = TargetName::new(name);
        let entries = self.entries();
        let found = entries.get(&key).map(|entry| (key.clone(), entry.ssh.clone(), entry.link.clone()));
        found.ok_or_else(|| no_such_target(name))
    }

    pub(crate) async fn add(&self, new: NewTarget) -> Result<TargetItem, ApiError> {
        let bad = |error: agtmux_core::target::TargetNameError| {
            ApiError::new(ErrorCode::BadRequest, error.to_string()).with_hint("agtmux target add --help")
        };
        if new.kind == TargetKind::Local {
            let message = format!("'{}' is this machine and is always watched", TargetName::LOCAL);
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux target list"));
        }
        let name = TargetName::parse_remote(&new.name).map_err(bad)?;
        let ssh: SshTarget = new.ssh_target.as_deref().unwrap_or(&new.name).parse().map_err(bad)?;
        let guard = self.0.change_lock.lock().await;
        if self.is_known(name.as_str()) {
            let error = ApiError::new(ErrorCode::TargetExists, format!("target '{name}' already exists"));
            return Err(error.with_hint(format!("agtmux target remove {name}   (then add the target again)")));
        }
        if self.entries().len() >= MAX_TARGETS {
            let error = ApiError::new(ErrorCode::BadRequest, format!("at most {MAX_TARGETS} targets are allowed"));
            return Err(error.with_hint("agtmux target remove NAME"));
        }
        let target = Target { name: name.clone(), ssh };
        self.commit(StoreChange::PutSshTarget(target.clone())).await?;
        self.start_supervisor(target).await;
        // Other changes need not wait until this target answers.
        drop(guard);
        let (_, _, link) = self.find(name.as_str())?;
        self.item_after(name.as_str(), link.wait_for(has_result)).await
    }

    /// Tries to connect now and returns the result.
    pub(crate) async fn connect(&self, name: &str) -> Result<TargetItem, ApiError> {
        if name == TargetName::LOCAL {
            return self.item(name);
        }
        let (_, _, link) = self.find(name)?;
        let before = link.status().attempts;
        if link.request_retry() {
            return self.item_after(name, link.wait_for(|status| status.attempts > before)).await;
        }
        self.item_after(name, link.wait_for(has_result)).await
    }

    /// Waits for the connection attempt, but at most `CONNECT_TIMEOUT`. Returns the target.
    async fn item_after(&self, name: &str, tried: impl Future<Output = ()>) -> Result<TargetItem, ApiError> {
        let _ = tokio::time::timeout(CONNECT_TIMEOUT, tried).await;
        self.0.engine.flush().await;
        self.item(name)
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<(), ApiError> {
        if name == TargetName::LOCAL {
            let message = "this machine cannot be removed: agtmux always watches this machine";
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux target list"));
        }
        let _turn = self.0.change_lock.lock().await;
        let (key, ssh, _) = self.find(name)?;
        self.commit(StoreChange::DropTarget(key.clone())).await?;
        let Some(entry) = self.entries().remove(&key) else { return Err(no_such_target(name)) };
        // Aborting the task also ends its ssh.
        entry.task.abort();
        let _ = entry.task.await;
        self.0.discovery.background().clear(&component_name(&key));
        self.ssh(&key, &ssh).remove_control_socket();
        self.0.engine.apply_topology(TopologyUpdate::TargetRemoved { target: key.clone() }).await;
        self.0.engine.change_target(TargetChange::Remove(key)).await;
        self.0.engine.flush().await;
        Ok(())
    }

    async fn commit(&self, change: StoreChange) -> Result<(), ApiError> {
        self.0.store.commit(vec![change]).await.map_err(|error| {
            let error = ApiError::new(ErrorCode::NotStored, format!("could not store the target: {error}"));
            error.with_hint("agtmux daemon status")
        })
    }

    /// Ends every connection.
    pub(crate) async fn shut_down(&self) {
        let all = std::mem::take(&mut *self.entries());
        for entry in all.values() {
            entry.task.abort();
        }
        for (name, entry) in all {
            let _ = entry.task.await;
            self.ssh(&name, &entry.ssh).remove_control_socket();
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<TargetName, TargetEntry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the target is connected or the first attempt has failed.
fn has_result(status: &LinkStatus) -> bool {
    status.connected || status.attempts > 0
}

pub(crate) fn no_such_target(name: &str) -> ApiError {
    let shown: String = name.chars().take(64).collect();
    let error = ApiError::new(ErrorCode::TargetNotFound, format!("no target named '{shown}'"));
    error.with_hint("agtmux target list")
}

/// The name of a target's supervisor in the health report.
fn component_name(target: &TargetName) -> String {
    format!("target_{target}")
}
