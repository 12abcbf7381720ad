//! When a harness session begins: what earlier ones of the same project have left is cleaned up or named.

use std::path::Path;

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActiveLeftoverSession, TaskStartupReport, TaskStartupRequest};
use agtmux_core::task::{
    Delivery, LeftoverAction, LeftoverSession, PlannedRemoval, SessionOwnership, TaskSessionName as SessionName,
    project_slug, removed_notice, still_active_notice,
};
use agtmux_tmux::{TmuxServer, TmuxTaskSession};

use super::titles::title_of;
use super::{TaskSessionKey, Tasks, tmux_failed};
use crate::actions::RequestCaller;

impl Tasks {
    pub(crate) async fn startup(
        &self,
        asked: TaskStartupRequest,
        asker: &RequestCaller,
    ) -> Result<TaskStartupReport, ApiError> {
        let place = self.session_key(&asked.session, asked.socket.as_ref())?;
        if !Path::new(&asked.project).is_absolute() {
            let message = format!("'{}' is no absolute path of a project", asked.project.escape_debug());
            return Err(
                ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux task startup --project \"$PWD\"")
            );
        }
        let tmux = self.tmux(&place);
        self.take_ownership(&tmux, &place, asker).await;
        let asking = SessionOwnership { owner: self.0.owner.clone(), project: asked.project.clone() };
        let found = tmux.task_sessions().await.map_err(|error| tmux_failed(&error))?;
        let mut report = TaskStartupReport {
            removed: Vec::new(),
            active: Vec::new(),
            notices: Vec::new(),
            delivery: Delivery::STARTUP,
        };
        for seen in found.into_iter().filter(|seen| seen.name != place.session.as_str()) {
            let Ok(session) = seen.name.parse() else { continue };
            let left = TaskSessionKey { socket: place.socket.clone(), session };
            self.review_session(&tmux, left, &asking, &place.session, &mut report).await?;
        }
        report.notices.extend(removed_notice(&report.removed));
        report.notices.extend(report.active.iter().map(|active| active.notice.clone()));
        Ok(report)
    }

    /// The session that asks is somebody's again, if it was left by one before. Where it cannot be told whose, that is written down: one
    /// that is known to be dead would have it cleaned up.
    async fn take_ownership(&self, tmux: &TmuxServer, place: &TaskSessionKey, asker: &RequestCaller) {
        let Ok(Some(own)) = tmux.task_session(place.session.as_str()).await else { return };
        let process = self.owner_process(asker);
        let is_kept = process.is_empty() && self.owner_lives(&own) != Some(false);
        if !self.is_ours(&own.owner) || is_kept || process == own.owner.process {
            return;
        }
        let kept = tmux.set_task_session_owner_pid((own.server_pid, own.server_start), own.session, &process).await;
        if let Err(error) = kept {
            tracing::warn!(%error, session = %place.session, "it could not be written down who keeps the tasks");
        }
    }

    async fn review_session(
        &self,
        tmux: &TmuxServer,
        left: TaskSessionKey,
        asking: &SessionOwnership,
        asking_session: &SessionName,
        report: &mut TaskStartupReport,
    ) -> Result<(), ApiError> {
        // Nobody starts anything in it between the look and its end.
        let _turn = self.lock_session(&left).await;
        let seen = tmux.task_session(left.session.as_str()).await.map_err(|error| tmux_failed(&error))?;
        let seen = match seen {
            Some(seen) if self.is_ours(&seen.owner) => self.wait_for_dead_panes(&left, seen).await?,
            seen => seen,
        };
        let Some(seen) = seen else { return Ok(()) };
        let look = self.listed_snapshot(&left, Some(seen.clone())).await;
        let keeper = SessionOwnership { owner: seen.owner.owner_id.clone(), project: seen.owner.project.clone() };
        // A user may have split the window of a task, or made one beside it.
        let live: Vec<String> =
            seen.panes.iter().filter(|pane| !pane.dead).map(|pane| pane.window_name.clone()).collect();
        let found = LeftoverSession {
            name: left.session.as_str(),
            owner: &keeper,
            owner_alive: self.owner_lives(&seen),
            attached: seen.attached,
            tasks: &look.tasks,
            live_windows: &live,
        };
        match found.action(asking, asking_session) {
            LeftoverAction::Keep => {}
            LeftoverAction::Remove => {
                self.remove_session(tmux, &left, &seen).await?;
                report.removed.push(left.session.to_string());
            }
            LeftoverAction::Report(tasks) => report.active.push(left_session(&left, &keeper, tasks).await),
        }
        Ok(())
    }

    async fn remove_session(
        &self,
        tmux: &TmuxServer,
        left: &TaskSessionKey,
        seen: &TmuxTaskSession,
    ) -> Result<(), ApiError> {
        self.record_ending(left, seen, PlannedRemoval::KillAll).await?;
        let killed = tmux.kill_session((seen.server_pid, seen.server_start), seen.session).await;
        killed.map_err(|error| tmux_failed(&error))?;
        self.remove_logs(seen.panes.iter());
        self.check_soon(left).await;
        Ok(())
    }
}

async fn left_session(left: &TaskSessionKey, keeper: &SessionOwnership, tasks: Vec<String>) -> ActiveLeftoverSession {
    let session_id = session_id(&left.session, &keeper.project);
    let title = match &session_id {
        Some(id) => title_of(id.clone()).await,
        None => None,
    };
    let notice = still_active_notice(left.session.as_str(), &tasks, title.as_deref());
    ActiveLeftoverSession { session: left.session.to_string(), session_id, tasks, title, notice }
}

/// The harness's own id, which the name of the session ends with. The project is known, so it is known where that begins.
fn session_id(session: &SessionName, project: &str) -> Option<String> {
    let slug = project_slug(Path::new(project)).ok()?;
    session.as_str().strip_prefix(&format!("pi-{slug}-")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_what_follows_the_project() {
        let id = |name: &str, project: &str| session_id(&name.parse().expect("a name"), project);
        assert_eq!(id("pi-foo-bar-1-2", "/w/foo-bar").as_deref(), Some("1-2"));
        assert_eq!(id("pi-foo-bar-1-2", "/w/Foo.Bar").as_deref(), Some("1-2"));
        assert_eq!(id("mine", "/w/foo"), None);
    }
}
