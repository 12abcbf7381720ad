//! The user's own manifests: read at the start, and again when a file in their directory changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agtmux_agents::{Fault, LARGEST_MANIFEST, ManifestFile, Registry, UserManifests};
use agtmux_api::files::{self, Found};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::convert;
use super::discovery::Discovery;
use super::switchboard::{Notice, Notices, Watch};

/// A file is written in several steps; half of it is no mistake worth a word.
const WRITTEN_WITHIN: Duration = Duration::from_millis(100);
/// What cannot be watched, and what links lead to, is looked at this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct Manifests {
    dir: PathBuf,
    user: UserManifests,
    registry: Arc<Registry>,
    has_links: bool,
    /// Why they could not be read the last time: it is told once.
    trouble: Option<String>,
}

impl Manifests {
    /// Reads what is there.
    pub(crate) fn open(dir: PathBuf) -> Self {
        let registry = Arc::new(UserManifests::default().registry());
        let mut manifests = Self { dir, user: UserManifests::default(), registry, has_links: false, trouble: None };
        manifests.look();
        manifests
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.clone()
    }

    /// Runs for as long as the daemon.
    pub(super) async fn follow(mut self, discovery: Discovery) {
        let (to, mut notices) = mpsc::unbounded_channel();
        loop {
            let place = self.place();
            let watch = place.as_deref().and_then(|place| self.watch(place, &discovery, &to));
            if self.place() != place {
                continue;
            }
            // After the watch stands: what came before it is found now, what comes later is told.
            if self.look() {
                discovery.relearn(self.registry()).await;
            }
            tokio::select! {
                notice = notices.recv() => if notice.is_none() { return },
                () = sleep(LOOK_AGAIN), if watch.is_none() || self.has_links => {}
            }
            sleep(WRITTEN_WITHIN).await;
            while notices.try_recv().is_ok() {}
        }
    }

    /// The directory itself, or the nearest one above it that is there: it may be made at any time.
    fn place(&self) -> Option<PathBuf> {
        self.dir.ancestors().find(|place| place.is_dir()).map(Path::to_owned)
    }

    fn watch(&self, place: &Path, discovery: &Discovery, to: &Notices) -> Option<Watch> {
        let board = discovery.switchboard();
        let watch = match place == self.dir {
            true => board.contents(place, to, Notice::Manifests),
            false => board.dir(place, to, Notice::Manifests),
        };
        watch.inspect_err(|error| tracing::debug!(%error, "the directory of manifests is not watched")).ok()
    }

    /// Says whether anything is different.
    fn look(&mut self) -> bool {
        let found = match files::in_dir(&self.dir, "toml", LARGEST_MANIFEST) {
            Ok(found) => found,
            // What is known of them stays in force.
            Err(error) => {
                let trouble = Some(error.to_string());
                if self.trouble != trouble {
                    tracing::warn!(%error, dir = %self.dir.display(), "your manifests cannot be read");
                }
                self.trouble = trouble;
                return false;
            }
        };
        self.trouble = None;
        self.has_links = found.iter().any(|file| file.is_link);
        let file = |Found { path, text, .. }: Found| ManifestFile { path: convert::path(&path), text };
        if !self.user.update(found.into_iter().map(file)) {
            return false;
        }
        let registry = Arc::new(self.user.registry());
        self.tell(&registry);
        self.registry = registry;
        true
    }

    fn tell(&self, registry: &Registry) {
        let is_new = |fault: &&Fault| !self.registry.faults().contains(fault);
        for Fault { error, keeps } in registry.faults().iter().filter(is_new) {
            match keeps {
                Some(agent) => {
                    tracing::warn!(%error, agent, "a manifest is faulty; its last good version stays in force")
                }
                None => tracing::warn!(%error, "a manifest is faulty and is left out"),
            }
        }
        let changed = registry.differences(&self.registry);
        if !changed.is_empty() {
            tracing::info!(agents = changed.join(", "), "your manifests were read");
        }
        for adapter in registry.adapters().filter(|adapter| changed.contains(&adapter.name)) {
            adapter.warnings.iter().for_each(|warning| tracing::warn!(warning, "in a manifest"));
        }
    }
}
