//! `task startup`: when a harness session begins, removes or reports the task sessions that earlier harness sessions of
//! the same project left.

use std::path::Path;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActiveLeftoverSession, TaskStartupReport, TaskStartupRequest};
use agtmux_core::task::{
    Delivery, LeftoverAction, LeftoverSession, SessionOwnership, TaskSessionName as SessionName, project_slug,
    removed_notice, still_active_notice,
};
use agtmux_tmux::TmuxServer;

use super::titles::title_of;
use super::{Tasks, tmux_failed};
use crate::actions::RequestCaller;
use crate::store::TaskSessionKey;

impl Tasks {
    pub(crate) async fn startup(
        &self,
        request: TaskStartupRequest,
        caller: &RequestCaller,
    ) -> Result<TaskStartupReport, ApiError> {
        let key = self.session_key(&request.session, request.socket.as_ref())?;
        if !Path::new(&request.project).is_absolute() {
            let message = format!("the project path '{}' is not absolute", request.project.escape_debug());
            return Err(
                ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux task startup --project \"$PWD\"")
            );
        }
        let tmux = self.tmux(&key);
        self.take_ownership(&tmux, &key, caller).await;
        let asking = SessionOwnership { owner: self.0.owner.clone(), project: request.project.clone() };
        let found = tmux.task_sessions().await.map_err(tmux_failed)?;
        let mut report = TaskStartupReport {
            removed: Vec::new(),
            active: Vec::new(),
            notices: Vec::new(),
            delivery: Delivery::STARTUP,
        };
        for other in found.into_iter().filter(|other| other.name != key.session.as_str()) {
            let Ok(session) = other.name.parse() else { continue };
            let left_key = TaskSessionKey { socket: key.socket.clone(), session };
            self.review_session(left_key, &asking, &key.session, &mut report).await?;
        }
        report.notices.extend(removed_notice(&report.removed));
        report.notices.extend(report.active.iter().map(|active| active.notice.clone()));
        Ok(report)
    }

    /// Records the caller as the owner of its own session, unless another owner lives. If the caller is unknown and the
    /// recorded owner is dead, clears the owner. A session without a recorded owner is kept, but a session with a dead
    /// owner is removed.
    async fn take_ownership(&self, tmux: &TmuxServer, key: &TaskSessionKey, caller: &RequestCaller) {
        let Ok(Some(own)) = tmux.task_session(key.session.as_str()).await else { return };
        let process = self.owner_process(caller);
        let clears = process.is_empty() && self.owner_lives(&own) == Some(false);
        if !self.is_ours(&own.owner) || !clears && self.next_owner(&own, &process).is_none() {
            return;
        }
        let kept = tmux.set_task_session_owner_pid((own.server_pid, own.server_start), own.session, &process).await;
        if let Err(error) = kept {
            tracing::warn!(%error, session = %key.session, "cannot record the owner of a task session");
        }
    }

    async fn review_session(
        &self,
        left_key: TaskSessionKey,
        asking: &SessionOwnership,
        asking_session: &SessionName,
        report: &mut TaskStartupReport,
    ) -> Result<(), ApiError> {
        // Hold the lock so that no task starts between the check and the removal.
        let _lock = self.lock_session(&left_key).await;
        let session = match self.listed_session(&left_key).await? {
            Some(session) if self.is_ours(&session.owner) => self.wait_for_dead_panes(&left_key, session).await?,
            session => session,
        };
        let Some(session) = session else { return Ok(()) };
        let snapshot = self.listed_snapshot(&left_key, Some(&session)).await;
        let owner = SessionOwnership { owner: session.owner.owner_id.clone(), project: session.owner.project.clone() };
        // Includes panes and windows that the user made in the session.
        let live: Vec<String> =
            session.panes.iter().filter(|pane| !pane.dead).map(|pane| pane.window_name.clone()).collect();
        let found = LeftoverSession {
            name: left_key.session.as_str(),
            owner: &owner,
            owner_alive: self.owner_lives(&session),
            attached: session.attached,
            tasks: &snapshot.tasks,
            live_windows: &live,
        };
        match found.action(asking, asking_session) {
            LeftoverAction::Keep => {}
            LeftoverAction::Remove => {
                self.kill_session(&left_key, &session).await?;
                report.removed.push(left_key.session.to_string());
            }
            LeftoverAction::Report(tasks) => report.active.push(left_session(&left_key, &owner, tasks).await),
        }
        Ok(())
    }
}

async fn left_session(
    left_key: &TaskSessionKey,
    owner: &SessionOwnership,
    tasks: Vec<String>,
) -> ActiveLeftoverSession {
    let session_id = session_id(&left_key.session, &owner.project);
    let title = match &session_id {
        Some(id) => title_of(id.clone()).await,
        None => None,
    };
    let notice = still_active_notice(left_key.session.as_str(), &tasks, title.as_deref());
    ActiveLeftoverSession { session: left_key.session.to_string(), session_id, tasks, title, notice }
}

/// The harness's session id, taken from a session name of the form `pi-SLUG-ID`. SLUG is the slug of the project.
fn session_id(session: &SessionName, project: &str) -> Option<String> {
    let slug = project_slug(Path::new(project)).ok()?;
    session.as_str().strip_prefix(&format!("pi-{slug}-")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_id_follows_the_project_slug() {
        let id = |name: &str, project: &str| session_id(&name.parse().expect("a name"), project);
        assert_eq!(id("pi-foo-bar-1-2", "/w/foo-bar").as_deref(), Some("1-2"));
        assert_eq!(id("pi-foo-bar-1-2", "/w/Foo.Bar").as_deref(), Some("1-2"));
        assert_eq!(id("mine", "/w/foo"), None);
    }
}
