//! An agent that has ended is started again: in its pane, where it was, with its own session.

pub(super) mod shell;

use std::time::Duration;

use agtmux_api::collect::HubRequest;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionKind, ActionOutcome, InputProfile, ResumeAction, ResumeReport};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::PaneRef;
use agtmux_tmux::{PaneInput, TmuxKey, quoted_for_shell};
use tokio::time::{Instant, sleep};

use super::idempotency::request_content;
use super::perform::ActionRequest;
use super::sender::{SendMessage, TextSender};
use super::{ActionFailure, ActionPane, Actions, RequestCaller, guards};
use crate::engine::LocatedPane;
use crate::store::past_runtimes::{self, PastRuntime};

/// An agent takes this long at the most until it is seen.
const DETECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A shell that waits for a command again after this has not started one.
const START_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Actions {
    pub(crate) async fn resume(
        &self,
        action: ResumeAction,
        asker: RequestCaller,
    ) -> Result<ActionOutcome<ResumeReport>, ApiError> {
        let content = request_content(ActionKind::Resume, &action);
        let wanted = self.named_runtime(&action.guards.r#ref).await?;
        // One that has ended is not found any more, but the pane that it lived in is.
        let place = wanted.as_ref().and_then(|past| past.pane_ref.as_ref()).map(PaneRef::to_string);
        let guards =
            ActionGuards { r#ref: place.unwrap_or_else(|| action.guards.r#ref.clone()), ..action.guards.clone() };
        let ask = |guards| HubRequest::Resume(ResumeAction { guards });
        let request = ActionRequest {
            kind: ActionKind::Resume,
            guards: &guards,
            caller: asker,
            summary: wanted.as_ref().map(|past| format!("runtime:{}", past.runtime_id)),
            text: None,
            content,
            remote_request: &ask,
        };
        if let Some(error) = self.remote_pane_changed(&guards.r#ref, guards.force_stale, wanted.as_ref()).await {
            return Err(self.reject(request, error).await);
        }
        let mut done = self.perform(request, async |scene| resume(scene, wanted).await).await?;
        let target = TargetName::new(&done.target);
        if let Some(id) = done.report.resumed_runtime_id.take_if(|_| !target.is_local()) {
            done.report.resumed_runtime_id = self.0.engine.local_id(target, id).await.map(|id| id.to_string());
        }
        Ok(done)
    }

    /// Another host resumes whoever lived there last: that has to be the one who is meant.
    async fn remote_pane_changed(&self, place: &str, forced: bool, wanted: Option<&PastRuntime>) -> Option<ApiError> {
        let located = self.0.engine.locate(place.parse().ok()?).await.ok()?;
        if located.key.server.target.is_local() {
            return None;
        }
        check_pane_epoch(&located, forced, wanted?).err().map(|failure| failure.error)
    }

    /// The runtime that is named by its id, whether or not it lives.
    async fn named_runtime(&self, reference: &str) -> Result<Option<PastRuntime>, ApiError> {
        let Ok(PaneRef::Runtime(id)) = reference.parse() else { return Ok(None) };
        self.read_past_runtime(move |path| past_runtimes::by_id(path, id.as_str())).await
    }

    async fn read_past_runtime(
        &self,
        read: impl FnOnce(&std::path::Path) -> rusqlite::Result<Option<PastRuntime>> + Send + 'static,
    ) -> Result<Option<PastRuntime>, ApiError> {
        let path = self.0.store.path().to_owned();
        match tokio::task::spawn_blocking(move || read(&path)).await {
            Ok(Ok(past)) => Ok(past),
            failed => {
                tracing::error!(?failed, "what lived before cannot be read");
                let error = ApiError::new(ErrorCode::Internal, "what lived there before cannot be read");
                Err(error.with_hint("agtmux daemon logs"))
            }
        }
    }
}

async fn resume(scene: &ActionPane<'_>, wanted: Option<PastRuntime>) -> Result<ResumeReport, ActionFailure> {
    if let Some(living) = &scene.located.agent {
        let message = format!("{} lives in {}", living.runtime.agent_type, scene.located.key.pane);
        let hint = format!("agtmux send {}", scene.located.key.pane);
        return Err(ActionFailure::precondition(message, hint));
    }
    let past = match wanted {
        Some(past) => past,
        None => last_runtime_in_pane(scene).await?,
    };
    check_pane_epoch(&scene.located, scene.forced, &past)?;
    let (session, command) = command_line(scene, &past)?;
    let cwd = past.cwd.as_deref().filter(|dir| dir.starts_with('/') && !dir.chars().any(char::is_control));
    let command = match scene.located.pane.dead {
        Some(_) => {
            scene.tmux.respawn(scene.guard, cwd, &command).await?;
            command
        }
        None => type_into_shell(scene, cwd, &command).await?,
    };
    let resumed_runtime_id = wait_for_runtime(scene, &past).await;
    Ok(ResumeReport { command, session, resumed_runtime_id })
}

async fn last_runtime_in_pane(scene: &ActionPane<'_>) -> Result<PastRuntime, ActionFailure> {
    let (key, generation) = (scene.located.key.clone(), scene.located.generation);
    let pane = key.pane;
    let past = scene
        .actions
        .read_past_runtime(move |path| past_runtimes::last_in(path, &key.server, generation, key.pane))
        .await?;
    past.ok_or_else(|| {
        let hint = "agtmux history runtime:ID tells of one that has ended";
        ActionFailure::precondition(format!("no agent has lived in {pane} since it was first seen"), hint)
    })
}

/// What has lived in the pane since, or was started in it, is not to be typed into.
fn check_pane_epoch(located: &LocatedPane, forced: bool, past: &PastRuntime) -> Result<(), ActionFailure> {
    let next = past.has_ended && past.generation == located.generation && past.epoch + 1 == located.pane.epoch;
    if next || (forced && past.generation == located.generation) {
        return Ok(());
    }
    let message = format!("{} is not the pane that it was when runtime:{} ended", located.key.pane, past.runtime_id);
    Err(ActionFailure::refused(guards::runtime_stale(message)))
}

fn command_line(scene: &ActionPane<'_>, past: &PastRuntime) -> Result<(String, String), ActionFailure> {
    let registry = scene.actions.0.discovery.registry();
    let agent = &past.agent_type;
    let Some(resume) = registry.resume(agent) else {
        let message = format!("how {agent} resumes a session is not known");
        return Err(ActionFailure::precondition(message, "[resume] in its manifest: docs/add-your-agent.md"));
    };
    let Some(session) = past.session.clone() else {
        let message = format!("{agent} did not say which session it had");
        return Err(ActionFailure::precondition(message, "agtmux setup   (its hooks tell)"));
    };
    let Some(command) = resume.command_line(&session) else {
        return Err(ActionFailure::precondition(
            format!("{agent} had a session without a usable id"),
            "start it yourself",
        ));
    };
    Ok((session, command))
}

/// Into the shell, which has to wait for a command, and has to do so still whenever something is typed.
async fn type_into_shell(scene: &ActionPane<'_>, cwd: Option<&str>, command: &str) -> Result<String, ActionFailure> {
    let tree = scene
        .processes
        .try_tree(scene.located.pane.pid)
        .await
        .map_err(|untold| scene.processes_unavailable(&untold))?;
    let shell = scene.waiting_shell(tree.as_ref()).map_err(|why| {
        let pane = scene.located.key.pane;
        ActionFailure::precondition(
            format!("{pane} has no shell that waits for a command: {why}"),
            format!("agtmux attach {}", scene.located.reference()),
        )
    })?;
    let there = cwd.is_some_and(|dir| scene.processes.cwd(shell.pid).is_some_and(|is| is == std::path::Path::new(dir)));
    let line = match cwd.filter(|_| !there) {
        Some(dir) => format!("cd {} && {command}", quoted_for_shell(dir)),
        None => command.to_owned(),
    };
    let at_shell = ActionPane { shell_only: true, ..scene.duplicate() };
    let sender = TextSender::for_pane(&at_shell, Some(InputProfile::Shell))?;
    // What somebody has begun, be it several lines, is not part of ours.
    at_shell.type_checked(PaneInput::Keys(&[TmuxKey::Named("C-c".into())])).await?;
    let sent = sender.send(&SendMessage { text: Some(&line), keys: &[], enter: true }).await;
    sent.map_err(ActionFailure::after_typing)?;
    Ok(line)
}

/// The agent, as soon as it is seen there.
async fn wait_for_runtime(scene: &ActionPane<'_>, past: &PastRuntime) -> Option<String> {
    let (engine, place) = (&scene.actions.0.engine, pane_ref(scene)?);
    let started = Instant::now();
    while started.elapsed() < DETECT_TIMEOUT {
        sleep(POLL_INTERVAL).await;
        let Ok(located) = engine.locate(place.clone()).await else { return None };
        match located.agent {
            Some(living) if living.runtime.agent_type.as_str() == past.agent_type => {
                return Some(living.runtime.id.to_string());
            }
            _ if started.elapsed() < START_TIMEOUT => {}
            _ if located.pane.dead.is_some() => return None,
            _ => {
                let tree = scene.processes.tree(located.pane.pid).await;
                if scene.waiting_shell(tree.as_ref()).is_ok() {
                    return None;
                }
            }
        }
    }
    None
}

fn pane_ref(scene: &ActionPane<'_>) -> Option<PaneRef> {
    let (key, pane) = (&scene.located.key, &scene.located.pane);
    Some(PaneRef::Path {
        target: key.server.target.to_string(),
        server: Some(key.server.server.to_string()),
        session: pane.placements.first()?.session_name.clone(),
        window: pane.window,
        pane: key.pane,
    })
}
