//! The task sessions as of the last commit. The engine writes them; the rest of the daemon reads them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use agtmux_core::fleet::PaneTaskStatus;
use agtmux_core::ids::{ServerKey, TargetName, WindowId};
use agtmux_core::task::RunId;

use crate::observe::server_name;
use crate::store::{TaskRunRow, TaskSession, TaskSessionKey};

#[derive(Debug)]
pub(crate) struct TaskSessions(RwLock<BTreeMap<TaskSessionKey, Arc<TaskSession>>>);

impl TaskSessions {
    pub(super) fn new(stored: BTreeMap<TaskSessionKey, TaskSession>) -> Self {
        Self(RwLock::new(stored.into_iter().map(|(key, session)| (key, Arc::new(session))).collect()))
    }

    /// The session with this key. If there is none, returns a session without windows and runs.
    pub(crate) fn get(&self, key: &TaskSessionKey) -> Arc<TaskSession> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.unwrap_or_else(|| Arc::new(TaskSession::new(key.session.clone())))
    }

    pub(crate) fn all(&self) -> BTreeMap<TaskSessionKey, Arc<TaskSession>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the daemon has not reported the end of this run yet.
    pub(crate) fn awaits_exit(&self, run: &RunId) -> bool {
        let sessions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sessions.values().any(|session| session.runs.contains_key(run) || session.machine.awaits_exit(run))
    }

    /// Replaces the sessions that a commit has changed. Drops a session that has neither windows nor runs.
    pub(super) fn replace(&self, changed: BTreeMap<TaskSessionKey, Arc<TaskSession>>) {
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (key, session) in changed {
            match session.machine.is_empty() && session.runs.is_empty() {
                true => sessions.remove(&key),
                false => sessions.insert(key, session),
            };
        }
    }
}

impl TaskSessionKey {
    pub(super) fn server(&self) -> ServerKey {
        ServerKey { target: TargetName::local(), server: server_name(Path::new(&self.socket)) }
    }
}

impl TaskSession {
    /// The unfinished runs in a window.
    pub(crate) fn runs_in(&self, window: WindowId) -> impl Iterator<Item = &TaskRunRow> {
        self.runs.values().filter(move |run| run.window == window)
    }

    /// Whether the run waits at a prompt that the daemon has reported.
    pub(crate) fn waits_for_input(&self, run: &TaskRunRow) -> bool {
        self.machine.open_prompt(run.window).is_some()
    }

    pub(super) fn status(&self, run: &TaskRunRow) -> PaneTaskStatus {
        match self.machine.open_prompt(run.window) {
            Some(prompt) => PaneTaskStatus::WaitingInput(prompt.to_owned()),
            None => PaneTaskStatus::Running,
        }
    }
}
