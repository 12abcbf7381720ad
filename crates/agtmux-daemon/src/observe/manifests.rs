//! Loads the user's manifests at the start, and again when their directory changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agtmux_agents::{AgentRegistry, MAX_MANIFEST_BYTES, ManifestFault, ManifestFile, UserManifests};
use agtmux_api::files::{self, UserFile};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::convert;
use super::discovery::Discovery;
use super::signal_router::{HintWatcher, ObserverHint, WatchGuard, WatchSubject};

/// The delay between a change in the directory and the reload. A file may be written in several steps, and an
/// incomplete file must not be reported as faulty.
const WRITE_SETTLE_TIME: Duration = Duration::from_millis(100);
/// How often manifests are read again if the directory cannot be watched, or if a manifest is a symbolic link.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct UserManifestWatch {
    dir: PathBuf,
    user: UserManifests,
    registry: Arc<AgentRegistry>,
    has_links: bool,
    /// The error that was logged last. A repeated error is not logged again.
    last_error: Option<String>,
}

impl UserManifestWatch {
    /// Loads the manifests in this directory.
    pub(crate) fn open(dir: PathBuf) -> Self {
        let registry = Arc::new(UserManifests::default().registry());
        let mut manifests = Self { dir, user: UserManifests::default(), registry, has_links: false, last_error: None };
        manifests.reload();
        manifests
    }

    pub(crate) fn registry(&self) -> Arc<AgentRegistry> {
        self.registry.clone()
    }

    /// Reloads changed manifests until the daemon stops.
    pub(super) async fn follow(&mut self, discovery: &Discovery) {
        let (to, mut hints) = mpsc::unbounded_channel();
        let watcher = discovery.context().router.watcher(to);
        loop {
            let dir = self.nearest_existing_dir();
            let watch = dir.as_deref().and_then(|dir| self.watch(dir, &watcher));
            if self.nearest_existing_dir() != dir {
                continue;
            }
            // Reload after the watch is set, so that no change is missed in between.
            if self.reload() {
                discovery.replace_registry(self.registry()).await;
            }
            tokio::select! {
                hint = hints.recv() => if hint.is_none() { return },
                () = sleep(RELOAD_INTERVAL), if watch.is_none() || self.has_links => {}
            }
            sleep(WRITE_SETTLE_TIME).await;
            while hints.try_recv().is_ok() {}
        }
    }

    /// The directory to watch: the manifest directory, or its nearest existing parent if it does not exist.
    fn nearest_existing_dir(&self) -> Option<PathBuf> {
        self.dir.ancestors().find(|dir| dir.is_dir()).map(Path::to_owned)
    }

    fn watch(&self, dir: &Path, watcher: &HintWatcher) -> Option<WatchGuard> {
        let subject = if dir == self.dir { WatchSubject::DirContents(dir) } else { WatchSubject::Dir(dir) };
        let watch = watcher.watch(subject, ObserverHint::ManifestsChanged);
        watch.inspect_err(|error| tracing::debug!(%error, "cannot watch the manifest directory")).ok()
    }

    /// Loads the manifests. Returns whether the registry changed.
    fn reload(&mut self) -> bool {
        let found = match files::read_dir_files(&self.dir, "toml", MAX_MANIFEST_BYTES) {
            Ok(found) => found,
            // Keep the manifests that are loaded.
            Err(error) => {
                let trouble = Some(error.to_string());
                if self.last_error != trouble {
                    tracing::warn!(%error, dir = %self.dir.display(), "cannot read the user manifests");
                }
                self.last_error = trouble;
                return false;
            }
        };
        self.last_error = None;
        self.has_links = found.iter().any(|file| file.is_link);
        let file = |UserFile { path, text, .. }: UserFile| ManifestFile { path: convert::path_text(&path), text };
        if !self.user.update(found.into_iter().map(file)) {
            return false;
        }
        let registry = Arc::new(self.user.registry());
        self.log_changes(&registry);
        self.registry = registry;
        true
    }

    fn log_changes(&self, registry: &AgentRegistry) {
        let is_new = |fault: &&ManifestFault| !self.registry.faults().contains(fault);
        for ManifestFault { error, agent_kept: keeps } in registry.faults().iter().filter(is_new) {
            match keeps {
                Some(agent) => {
                    tracing::warn!(%error, agent, "invalid manifest; its last valid version stays in use")
                }
                None => tracing::warn!(%error, "invalid manifest; it is ignored"),
            }
        }
        let changed = registry.changed_agents(&self.registry);
        if !changed.is_empty() {
            tracing::info!(agents = changed.join(", "), "user manifests loaded");
        }
        for adapter in registry.adapters().filter(|adapter| changed.contains(&adapter.name)) {
            adapter.warnings.iter().for_each(|warning| tracing::warn!(warning, "manifest warning"));
        }
    }
}
