//! Installs and removes agtmux's hooks in one tmux server.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agtmux_api::paths::private_dir;
use agtmux_core::ids::ServerKey;
use agtmux_tmux::TmuxServer;
use agtmux_tmux::hooks::{FILE_SUFFIX, HintHooks};

use super::ObserverContext;
use super::signal_router::{HintWatcher, ObserverHint, WatchGuard, WatchSubject};

pub(super) struct ServerHooks {
    hooks: HintHooks,
    hint_file: PathBuf,
    _watch: WatchGuard,
    watcher: HintWatcher,
    /// The sessions at the last check of the hooks.
    sessions: Vec<u32>,
    checked_at: Option<Instant>,
    installed: bool,
}

/// How often to check the hooks. The user can set hooks on a session at any time. Such hooks hide agtmux's hooks in
/// that session, and agtmux gets no hint when this happens.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

impl ServerHooks {
    /// Prepares the hooks. Returns `None` if hooks are disabled or unusable. agtmux then finds changes by polling.
    pub(super) fn prepare(context: &ObserverContext, key: &ServerKey, watcher: &HintWatcher) -> Option<Self> {
        if !context.config.tmux.hooks {
            return None;
        }
        let hint_file = context.hook_dir.join(format!("{}{FILE_SUFFIX}", file_name(key)));
        let Some(hooks) = HintHooks::new(&hint_file) else {
            tracing::warn!(path = %hint_file.display(), "hooks disabled: this path cannot be quoted in a tmux command");
            return None;
        };
        let watch = watch_file(&hint_file, watcher);
        let watch = watch
            .inspect_err(
                |error| tracing::warn!(%error, "cannot install tmux hooks: their signal file cannot be watched"),
            )
            .ok()?;
        Some(Self {
            hooks,
            hint_file,
            _watch: watch,
            watcher: watcher.clone(),
            sessions: Vec::new(),
            checked_at: None,
            installed: false,
        })
    }

    pub(super) fn installed(&self) -> bool {
        self.installed
    }

    /// Installs the hooks if the server or its sessions changed, or if the last check is too long ago. Returns true if
    /// the hooks or the hint file were missing, because agtmux may then have missed changes.
    pub(super) async fn check(&mut self, tmux: &TmuxServer, sessions: Vec<u32>, new_server: bool) -> bool {
        let file_stayed = match self.ensure_hint_file() {
            Ok(stayed) => stayed,
            Err(error) => {
                self.installed = false;
                tracing::warn!(%error, "cannot install tmux hooks: their signal file cannot be created");
                return false;
            }
        };
        let recent = self.checked_at.is_some_and(|at| at.elapsed() < RECHECK_INTERVAL);
        let were_there = self.installed && !new_server;
        if were_there && recent && sessions == self.sessions {
            return !file_stayed;
        }
        self.checked_at = Some(Instant::now());
        match self.hooks.install(tmux).await {
            Ok(()) => {
                (self.installed, self.sessions) = (true, sessions);
                !were_there || !file_stayed
            }
            Err(error) => {
                self.installed = false;
                tracing::warn!(%error, "cannot install tmux hooks");
                false
            }
        }
    }

    /// Creates the hint file again if it is gone, for example because a cleanup tool removed it. Returns true if the
    /// file still existed.
    fn ensure_hint_file(&mut self) -> io::Result<bool> {
        if self.hint_file.exists() {
            return Ok(true);
        }
        self._watch = watch_file(&self.hint_file, &self.watcher)?;
        Ok(false)
    }

    /// Notes that the server has ended. Its hooks are gone with it, so only the hint file is removed.
    pub(super) fn server_ended(&mut self) {
        self.installed = false;
        let _ = std::fs::remove_file(&self.hint_file);
    }

    pub(super) async fn remove(&self, tmux: &TmuxServer) {
        if let Err(error) = self.hooks.remove(tmux).await {
            tracing::warn!(%error, "cannot remove tmux hooks; the next start of the daemon removes them");
            return;
        }
        let _ = std::fs::remove_file(&self.hint_file);
    }
}

/// Creates the hint file and watches for programs that open it.
fn watch_file(hint_file: &Path, watcher: &HintWatcher) -> io::Result<WatchGuard> {
    if let Some(dir) = hint_file.parent() {
        private_dir(dir, "AGTMUX_STATE_DIR").map_err(io::Error::other)?;
    }
    drop(OpenOptions::new().append(true).create(true).mode(0o600).open(hint_file)?);
    watcher.watch(WatchSubject::File(hint_file), ObserverHint::HookFired)
}

/// The name of the hint file. It is the same after each restart and contains no special characters.
fn file_name(key: &ServerKey) -> String {
    let name = format!("{}/{}", key.target, key.server);
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}
