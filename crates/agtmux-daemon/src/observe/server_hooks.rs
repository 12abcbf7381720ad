//! Our hooks in one server.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agtmux_api::paths::private_dir;
use agtmux_core::ids::ServerKey;
use agtmux_tmux::TmuxServer;
use agtmux_tmux::hooks::{FILE_SUFFIX, HintHooks};

use super::ObserverContext;
use super::signal_router::{HintSender, ObserverHint, SignalRouter, WatchGuard};

pub(super) struct ServerHooks {
    hooks: HintHooks,
    hint_file: PathBuf,
    _watch: WatchGuard,
    router: Arc<SignalRouter>,
    to: HintSender,
    /// The sessions for which the hooks were last checked.
    sessions: Vec<u32>,
    checked_at: Option<Instant>,
    installed: bool,
}

/// A user may give a session hooks of its own at any time, and nothing tells of it.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

impl ServerHooks {
    /// `None` where hooks are switched off or cannot be used; changes are then seen by looking.
    pub(super) fn prepare(senses: &Arc<ObserverContext>, key: &ServerKey, to: &HintSender) -> Option<Self> {
        if !senses.config.tmux.hooks {
            return None;
        }
        let hint_file = senses.hook_dir.join(format!("{}{FILE_SUFFIX}", file_name(key)));
        let Some(hooks) = HintHooks::new(&hint_file) else {
            tracing::warn!(path = %hint_file.display(), "no hooks: this path cannot stand in a tmux command");
            return None;
        };
        let watch = watch_file(&hint_file, &senses.router, to);
        let watch = watch.inspect_err(|error| tracing::warn!(%error, "no hooks: their file cannot be watched")).ok()?;
        Some(Self {
            hooks,
            hint_file,
            _watch: watch,
            router: senses.router.clone(),
            to: to.clone(),
            sessions: Vec::new(),
            checked_at: None,
            installed: false,
        })
    }

    pub(super) fn installed(&self) -> bool {
        self.installed
    }

    /// A new server has none of our hooks, and a new session may hide them. Says whether they were not there yet: what
    /// happened before has left no note.
    pub(super) async fn check(&mut self, tmux: &TmuxServer, sessions: Vec<u32>, new_server: bool) -> bool {
        let file_stayed = match self.ensure_hint_file() {
            Ok(stayed) => stayed,
            Err(error) => {
                self.installed = false;
                tracing::warn!(%error, "hooks are of no use: their file is gone and cannot be made again");
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
                tracing::warn!(%error, "hooks could not be set");
                false
            }
        }
    }

    /// Whoever tidies up may take the file away under us. Says whether it was still there.
    fn ensure_hint_file(&mut self) -> io::Result<bool> {
        if self.hint_file.exists() {
            return Ok(true);
        }
        self._watch = watch_file(&self.hint_file, &self.router, &self.to)?;
        Ok(false)
    }

    /// The server is gone, and our hooks with it.
    pub(super) fn server_ended(&mut self) {
        self.installed = false;
        let _ = std::fs::remove_file(&self.hint_file);
    }

    pub(super) async fn remove(&self, tmux: &TmuxServer) {
        if let Err(error) = self.hooks.remove(tmux).await {
            tracing::warn!(%error, "hooks could not be removed; the next start removes them");
            return;
        }
        let _ = std::fs::remove_file(&self.hint_file);
    }
}

/// Makes the file of the hooks, and tells of whoever opens it from now on.
fn watch_file(hint_file: &Path, board: &Arc<SignalRouter>, to: &HintSender) -> io::Result<WatchGuard> {
    if let Some(dir) = hint_file.parent() {
        private_dir(dir, "AGTMUX_STATE_DIR").map_err(io::Error::other)?;
    }
    drop(OpenOptions::new().append(true).create(true).mode(0o600).open(hint_file)?);
    board.watch_file(hint_file, to, ObserverHint::HookFired)
}

/// The same for the same server after a restart, and only plain characters.
fn file_name(key: &ServerKey) -> String {
    let name = format!("{}/{}", key.target, key.server);
    uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_URL, name.as_bytes()).simple().to_string()
}
