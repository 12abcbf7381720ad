//! The user's own manifests: read at the start, and again when a file in their directory changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agtmux_agents::{AgentRegistry, MAX_MANIFEST_BYTES, ManifestFault, ManifestFile, UserManifests};
use agtmux_api::files::{self, UserFile};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::convert;
use super::discovery::Discovery;
use super::signal_router::{HintSender, ObserverHint, WatchGuard};

/// A file is written in several steps; half of it is no mistake worth a word.
const WRITE_SETTLE_TIME: Duration = Duration::from_millis(100);
/// What cannot be watched, and what links lead to, is looked at this often.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct UserManifestWatch {
    dir: PathBuf,
    user: UserManifests,
    registry: Arc<AgentRegistry>,
    has_links: bool,
    /// Why they could not be read the last time: it is told once.
    last_error: Option<String>,
}

impl UserManifestWatch {
    /// Reads what is there.
    pub(crate) fn open(dir: PathBuf) -> Self {
        let registry = Arc::new(UserManifests::default().registry());
        let mut manifests = Self { dir, user: UserManifests::default(), registry, has_links: false, last_error: None };
        manifests.reload();
        manifests
    }

    pub(crate) fn registry(&self) -> Arc<AgentRegistry> {
        self.registry.clone()
    }

    /// Runs for as long as the daemon.
    pub(super) async fn follow(mut self, discovery: Discovery) {
        let (to, mut notices) = mpsc::unbounded_channel();
        loop {
            let place = self.nearest_existing_dir();
            let watch = place.as_deref().and_then(|place| self.watch(place, &discovery, &to));
            if self.nearest_existing_dir() != place {
                continue;
            }
            // After the watch stands: what came before it is found now, what comes later is told.
            if self.reload() {
                discovery.replace_registry(self.registry()).await;
            }
            tokio::select! {
                notice = notices.recv() => if notice.is_none() { return },
                () = sleep(RELOAD_INTERVAL), if watch.is_none() || self.has_links => {}
            }
            sleep(WRITE_SETTLE_TIME).await;
            while notices.try_recv().is_ok() {}
        }
    }

    /// The directory itself, or the nearest one above it that is there: it may be made at any time.
    fn nearest_existing_dir(&self) -> Option<PathBuf> {
        self.dir.ancestors().find(|place| place.is_dir()).map(Path::to_owned)
    }

    fn watch(&self, place: &Path, discovery: &Discovery, to: &HintSender) -> Option<WatchGuard> {
        let board = discovery.router();
        let watch = match place == self.dir {
            true => board.watch_contents(place, to, ObserverHint::ManifestsChanged),
            false => board.watch_dir(place, to, ObserverHint::ManifestsChanged),
        };
        watch.inspect_err(|error| tracing::debug!(%error, "the directory of manifests is not watched")).ok()
    }

    /// Says whether anything is different.
    fn reload(&mut self) -> bool {
        let found = match files::read_dir_files(&self.dir, "toml", MAX_MANIFEST_BYTES) {
            Ok(found) => found,
            // What is known of them stays in force.
            Err(error) => {
                let trouble = Some(error.to_string());
                if self.last_error != trouble {
                    tracing::warn!(%error, dir = %self.dir.display(), "your manifests cannot be read");
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
                    tracing::warn!(%error, agent, "a manifest is faulty; its last good version stays in force")
                }
                None => tracing::warn!(%error, "a manifest is faulty and is left out"),
            }
        }
        let changed = registry.changed_agents(&self.registry);
        if !changed.is_empty() {
            tracing::info!(agents = changed.join(", "), "your manifests were read");
        }
        for adapter in registry.adapters().filter(|adapter| changed.contains(&adapter.name)) {
            adapter.warnings.iter().for_each(|warning| tracing::warn!(warning, "in a manifest"));
        }
    }
}
