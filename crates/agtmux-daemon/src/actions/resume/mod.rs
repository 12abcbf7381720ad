//! `resume`: restarts an agent that has ended. The agent runs in the same pane and directory as before and continues
//! its session.

mod revive;
pub(super) mod shell;

use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionGuards, ActionOutcome, InputProfile, ResumeAction, ResumeReport};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::{PaneRef, is_agent_name};
use agtmux_core::runtime::RuntimeId;
use agtmux_tmux::{PaneInput, TmuxKey, quoted_for_shell};
use tokio::time::{Instant, sleep};

use super::perform::ActionRequest;
use super::sender::{SendMessage, TextSender};
use super::{ActionPane, Actions, RequestCaller, after_typing, guards, precondition, type_error};
use crate::engine::LocatedPane;
use crate::store::past_runtimes::{self, PastRuntime};

/// How long to wait until agtmux detects the restarted agent.
const DETECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an agent may take to start. If the shell of the pane waits for a command after this time, the agent did not
/// start.
const START_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Actions {
    pub(crate) async fn resume(
        &self,
        action: ResumeAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<ResumeReport>> {
        let wanted = match self.wanted_runtime(&action.guards).await {
            Ok(wanted) => wanted,
            Err(error) => {
                let request = ActionRequest::new(HubRequest::Resume(action.clone()), &action.guards, caller);
                return Err(self.reject(request, error).await);
            }
        };
        // The pane of a runtime that ended with it, or with its server, is gone.
        if let Some(past) = wanted.as_ref().filter(|past| past.has_ended && past.is_local && past.pane_ref.is_none()) {
            return self.revive(action, past.clone(), caller).await;
        }
        // An ended runtime cannot be located, but its pane can.
        let pane_ref = wanted.as_ref().and_then(|past| past.pane_ref.as_ref()).map(PaneRef::to_string);
        let guards = ActionGuards {
            r#ref: pane_ref.unwrap_or_else(|| action.guards.r#ref.clone()),
            // `wanted_runtime` has checked it. `perform` would compare it with the agent that runs in the pane.
            if_runtime: None,
            ..action.guards.clone()
        };
        let request = ActionRequest {
            summary: wanted.as_ref().map(|past| format!("runtime:{}", past.runtime_id)),
            ..ActionRequest::new(HubRequest::Resume(action), &guards, caller)
        };
        if let Some(error) = self.remote_pane_changed(&guards.r#ref, guards.force_stale, wanted.as_ref()).await {
            return Err(self.reject(request, error).await);
        }
        let mut done = self.perform(request, async |pane| resume(pane, wanted).await).await?;
        let target = TargetName::new(&done.target);
        if let Some(id) = done.report.resumed_runtime_id.take_if(|_| !target.is_local()) {
            done.report.resumed_runtime_id = self.0.engine.local_id(target, id).await.map(|id| id.to_string());
        }
        Ok(done)
    }

    /// Returns an error if the pane is on another host and `wanted` is not the last agent that ran in the pane. The
    /// daemon on that host would resume the last agent, not `wanted`.
    async fn remote_pane_changed(
        &self,
        pane_ref: &str,
        forced: bool,
        wanted: Option<&PastRuntime>,
    ) -> Option<ApiError> {
        let located = self.locate(pane_ref).await.ok()?;
        if located.key.server.target.is_local() {
            return None;
        }
        check_pane_epoch(&located, forced, wanted?).err()
    }

    /// Finds the ended runtime to resume, and checks the guard `if_runtime`. `None` stands for the last runtime in the
    /// named pane.
    async fn wanted_runtime(&self, guards: &ActionGuards) -> ApiResult<Option<PastRuntime>> {
        let named = self.named_runtime(&guards.r#ref).await?;
        let Some(expected) = guards.if_runtime.as_deref().map(|id| id.trim_start_matches("runtime:")) else {
            return Ok(named);
        };
        let past = match named {
            Some(past) => Some(past),
            None => self.last_runtime_in(&self.locate(&guards.r#ref).await?).await?,
        };
        match past {
            Some(past) if past.runtime_id == expected => Ok(Some(past)),
            Some(past) => Err(guards::runtime_stale(format!(
                "the last agent in the pane was runtime:{}, not runtime:{expected}",
                past.runtime_id
            ))),
            None => Err(guards::runtime_stale(format!("runtime:{expected} has not run in the pane"))),
        }
    }

    /// Finds the runtime that the reference names: by `runtime:ID`, or the ended agent with this name, type or session.
    /// `None` if the reference has another form, if the id is unknown, or if an agent that still runs matches.
    pub(super) async fn named_runtime(&self, reference: &str) -> ApiResult<Option<PastRuntime>> {
        match reference.parse() {
            Ok(PaneRef::Runtime(id)) => {
                Ok(self.0.store.read(move |connection| past_runtimes::by_id(connection, id.as_str())).await?)
            }
            Ok(parsed @ PaneRef::Agent(_)) => match self.0.engine.locate(parsed.clone()).await {
                Ok(_) => Ok(None),
                // If no ended agent matches either, a later step rejects the action and records the rejection.
                Err(missing) => match self.ended_like(parsed, missing).await {
                    Err(error) if error.code == ErrorCode::RefNotFound => Ok(None),
                    past => past.map(Some),
                },
            },
            _ => Ok(None),
        }
    }
}

async fn resume(pane: &ActionPane<'_>, wanted: Option<PastRuntime>) -> ApiResult<ResumeReport> {
    if let Some(agent) = &pane.located.agent {
        let message = format!("{} is already running in {}", agent.runtime.agent_type, pane.located.key.pane);
        let hint = format!("agtmux send {}", pane.located.reference());
        return Err(precondition(message, hint));
    }
    let past = match wanted {
        Some(past) => past,
        None => last_runtime_in_pane(pane).await?,
    };
    check_pane_epoch(&pane.located, pane.forced, &past)?;
    let (session, command) = command_line(pane, &past)?;
    let cwd = past.cwd.as_deref().filter(|dir| dir.starts_with('/') && !dir.chars().any(char::is_control));
    let command = match pane.located.pane.dead {
        Some(_) => {
            pane.tmux.respawn(pane.guard, cwd, &command).await.map_err(type_error)?;
            command
        }
        None => type_into_shell(pane, cwd, &command).await?,
    };
    let resumed = wait_for_runtime(pane, &past.agent_type).await;
    // `agtmux run` gives the agent its name itself.
    if let (Some(runtime), Some(name), false) = (&resumed, &past.name, past.launch.wrapped)
        && let Err(error) = pane.actions.0.engine.name_agent(runtime.clone(), name.clone()).await
    {
        tracing::warn!(%runtime, error = error.message, "a resumed agent did not get its name back");
    }
    if let Some(runtime) = &resumed {
        pane.actions.note_resumed(&past.runtime_id, runtime).await;
    }
    Ok(ResumeReport { command, session, resumed_runtime_id: resumed.map(|id| id.to_string()) })
}

pub(super) async fn last_runtime_in_pane(pane: &ActionPane<'_>) -> ApiResult<PastRuntime> {
    pane.actions.last_runtime_in(&pane.located).await?.ok_or_else(|| {
        let hint = "agtmux history runtime:ID   (shows an agent that has ended)";
        precondition(format!("no agent has run in {} since agtmux first saw the pane", pane.located.key.pane), hint)
    })
}

/// Fails if another agent or program has run in the pane since the runtime `past` ended.
pub(super) fn check_pane_epoch(located: &LocatedPane, forced: bool, past: &PastRuntime) -> ApiResult<()> {
    let next = past.has_ended && past.generation == located.generation && past.epoch + 1 == located.pane.epoch;
    if next || (forced && past.generation == located.generation) {
        return Ok(());
    }
    let (pane, runtime) = (located.key.pane, &past.runtime_id);
    let message = format!("another program has run in pane {pane} since runtime:{runtime} ended");
    Err(guards::runtime_stale(message))
}

fn command_line(pane: &ActionPane<'_>, past: &PastRuntime) -> ApiResult<(String, String)> {
    let (session, command) = resume_command(pane.actions, &past.agent_type, past.session.as_ref())?;
    Ok((session, launched_like(past, command)))
}

/// The session, and the command that continues it.
fn resume_command(actions: &Actions, agent: &str, session: Option<&String>) -> ApiResult<(String, String)> {
    let registry = actions.0.discovery.registry();
    let Some(resume) = registry.agent(agent).and_then(|agent| agent.resume()) else {
        let message = format!("agtmux does not know how to resume a session of {agent}");
        return Err(precondition(message, "add [resume] to the agent's manifest: docs/add-your-agent.md"));
    };
    let Some(session) = session.cloned() else {
        let message = format!("the session id of {agent} is not known");
        return Err(precondition(message, "agtmux setup   (installs hooks that report session ids)"));
    };
    let Some(command) = resume.command_line(&session) else {
        return Err(precondition(
            format!("the session id of {agent} is not usable on a command line"),
            "start the agent by hand",
        ));
    };
    Ok((session, command))
}

/// Adds the wrapper and the arguments with which the agent was first started to the command that resumes it.
fn launched_like(past: &PastRuntime, command: String) -> String {
    let mut words = Vec::new();
    if past.launch.wrapped {
        words.push("agtmux run".to_owned());
        // Check the name again, because it becomes part of a shell command.
        words.extend(past.name.iter().filter(|name| is_agent_name(name)).map(|name| format!("--name {name}")));
        words.push("--".to_owned());
    }
    words.push(command);
    words.extend(past.launch.arguments.iter().map(|argument| shell_word(argument)));
    words.join(" ")
}

/// Quotes a word for a shell, unless the word contains only characters without a special meaning.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@+,%".contains(&b);
    if !word.is_empty() && word.bytes().all(is_plain) { word.to_owned() } else { quoted_for_shell(word) }
}

/// Types the command into the shell of the pane. Before each key press, checks that the shell still waits for a
/// command.
async fn type_into_shell(pane: &ActionPane<'_>, cwd: Option<&str>, command: &str) -> ApiResult<String> {
    let tree = pane.process_tree().await?;
    let shell = pane.waiting_shell(tree.as_ref()).map_err(|why| {
        let message = format!("no shell waits for a command in {}: {why}", pane.located.key.pane);
        precondition(message, format!("agtmux attach {}", pane.located.reference()))
    })?;
    let there = cwd.is_some_and(|dir| pane.processes.cwd(shell.pid).is_some_and(|is| is == std::path::Path::new(dir)));
    let line = match cwd.filter(|_| !there) {
        Some(dir) => format!("cd {} && {command}", quoted_for_shell(dir)),
        None => command.to_owned(),
    };
    let at_shell = ActionPane { shell_only: true, ..pane.clone() };
    let sender = TextSender::for_pane(&at_shell, Some(InputProfile::Shell))?;
    // Discard a command line that a person has begun.
    at_shell.type_checked(PaneInput::Keys(&[TmuxKey::Named("C-c".into())])).await?;
    let sent = sender.send(&SendMessage { text: Some(&line), keys: &[], enter: true, dialog: None }).await;
    sent.map_err(after_typing)?;
    Ok(line)
}

/// Waits until agtmux detects an agent of this type in the pane, and returns the id of its runtime.
pub(super) async fn wait_for_runtime(pane: &ActionPane<'_>, agent_type: &str) -> Option<RuntimeId> {
    let (engine, reference) = (&pane.actions.0.engine, pane_ref(pane)?);
    let started = Instant::now();
    while started.elapsed() < DETECT_TIMEOUT {
        sleep(POLL_INTERVAL).await;
        let Ok(located) = engine.locate(reference.clone()).await else { return None };
        match located.agent {
            Some(agent) if agent.runtime.agent_type.as_str() == agent_type => return Some(agent.runtime.id),
            _ if started.elapsed() < START_TIMEOUT => {}
            _ if located.pane.dead.is_some() => return None,
            _ => {
                let tree = pane.processes.tree(located.pane.pid).await;
                if pane.waiting_shell(tree.as_ref()).is_ok() {
                    return None;
                }
            }
        }
    }
    None
}

fn pane_ref(pane: &ActionPane<'_>) -> Option<PaneRef> {
    let (key, pane) = (&pane.located.key, &pane.located.pane);
    Some(PaneRef::Path {
        target: key.server.target.to_string(),
        server: Some(key.server.server.to_string()),
        session: pane.placements.first()?.session_name.clone(),
        window: pane.window,
        pane: key.pane,
    })
}
