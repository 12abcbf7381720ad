//! `view-output`, `attach` and health checks. None of them changes the pane.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{
    ActionOutcome, AttachAction, AttachPlan, AttachSession, OutputAction, OutputReport, PaneHealth,
};
use agtmux_api::{SCHEMA_VERSION, wire::ActionGuards};
use agtmux_core::ids::{ProcessRef, TargetName};
use agtmux_core::{sanitize, text};
use agtmux_tmux::TmuxError;
use jiff::SignedDuration;
use uuid::Uuid;

use super::action_target::ActionTarget;
use super::perform::{ActionRequest, outcome};
use super::{ActionPane, Actions, RequestCaller, guards, tmux_error};
use crate::engine::LocatedPane;
use crate::remote;

/// The most lines of a pane that one request may read.
const MAX_LINES: u32 = 10_000;

impl Actions {
    pub(crate) async fn view_output(
        &self,
        action: OutputAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<OutputReport>> {
        let lines = action.lines.unwrap_or(0);
        if action.again && lines <= MAX_LINES && self.is_follower(&action, &caller).await {
            return self.view_again(&action).await;
        }
        let guards = &action.guards;
        let request = ActionRequest {
            summary: Some(format!("lines {lines}")),
            ..ActionRequest::new(HubRequest::ViewOutput(action.clone()), guards, caller.clone())
        };
        if lines > MAX_LINES {
            let error =
                ApiError::new(ErrorCode::BadRequest, format!("the number of lines must be at most {MAX_LINES}"));
            return Err(self.reject(request, error.with_hint("ask for fewer lines")).await);
        }
        if guards.request_ref.is_some() {
            let message = "view-output does not accept a request_ref: pane output is not stored and cannot be repeated";
            let error = ApiError::new(ErrorCode::BadRequest, message)
                .with_hint("leave out request_ref and run the command again");
            return Err(self.reject(request, error).await);
        }
        let done = self.perform(request, async |pane| capture_output(pane, action.lines, action.ansi).await).await?;
        self.0.followers.insert(&caller, &done.target, &done.server, &done.pane_id);
        Ok(sanitized_if_remote(done, &action))
    }

    /// Whether this caller has read this pane before. The audit log contains only the first read.
    async fn is_follower(&self, action: &OutputAction, caller: &RequestCaller) -> bool {
        let Ok(located) = self.locate(&action.guards.r#ref).await else { return false };
        let key = &located.key;
        self.0.followers.contains(caller, key.server.target.as_str(), key.server.server.as_str(), &key.pane.to_string())
    }

    /// Reads the pane again for a caller that has read it before. The audit log does not record this read.
    async fn view_again(&self, action: &OutputAction) -> ApiResult<ActionOutcome<OutputReport>> {
        let (located, snapshot) = self.look(&action.guards, SignedDuration::ZERO).await?;
        let report = match self.action_target(located, action.guards.force_stale)? {
            ActionTarget::Local(pane) => capture_output(&pane, action.lines, action.ansi).await,
            ActionTarget::Remote(remote) => remote.relay(HubRequest::ViewOutput(action.clone())).await,
        };
        let action_id = Uuid::now_v7().simple().to_string();
        Ok(sanitized_if_remote(outcome(action_id, &snapshot, Duration::ZERO, report?), action))
    }

    pub(crate) async fn attach(
        &self,
        action: AttachAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<AttachPlan>> {
        let request = ActionRequest::new(HubRequest::Attach(action.clone()), &action.guards, caller);
        let mut done = self.perform(request, async |pane| attach_plan(pane)).await?;
        done.report.ssh = self.0.targets.ssh_route(&TargetName::new(&done.target));
        Ok(done)
    }

    /// Checks whether the pane exists and whether the agent's process runs in it.
    pub(crate) async fn check_health(&self, guards: &ActionGuards) -> ApiResult<PaneHealth> {
        let located = self.locate(&guards.r#ref).await?;
        if let Some(link) = self.remote_link(&located)? {
            // The remote daemon reports every change of its panes, so the known state is current.
            return match link.status().connected && located.reachable {
                true => Ok(pane_health(&located, None, located.agent.is_some())),
                false => Err(guards::target_unreachable(&located.key.server.target)),
            };
        }
        let pane = self.action_pane(located, false)?;
        let gone = match pane.capture().await {
            Ok(_) => None,
            Err(failure) => Some(unavailable_reason(failure, &pane)?),
        };
        let tree = pane.processes.try_tree(pane.guard.pane_pid).await;
        let tree = tree.map_err(|unavailable| no_answer(&pane, &unavailable.to_string()))?;
        let lives = |agent: ProcessRef| {
            let mut processes = tree.iter().flat_map(|tree| &tree.processes);
            processes.any(|process| (process.pid, process.start) == (agent.pid, agent.start) && !process.zombie)
        };
        let agent = pane.located.agent.as_ref();
        let running = gone.is_none() && agent.is_some_and(|agent| lives(agent.runtime.process));
        Ok(pane_health(&pane.located, gone, running))
    }
}

/// The health of a pane. `gone` says why the pane is unavailable, and is `None` if the pane is available.
fn pane_health(located: &LocatedPane, gone: Option<String>, running: bool) -> PaneHealth {
    PaneHealth {
        schema_version: SCHEMA_VERSION,
        available: gone.is_none(),
        running,
        runtime_id: located.agent.as_ref().map(|agent| agent.runtime.id.to_string()),
        pane_id: Some(located.key.pane.to_string()),
        reason: gone.or_else(|| (!running).then(|| "no agent runs in the pane".into())),
    }
}

/// Turns the error of a check into the reason why the pane is unavailable. Fails if a remote host does not answer,
/// because the pane may still exist.
fn unavailable_reason(error: ApiError, pane: &ActionPane<'_>) -> ApiResult<String> {
    match error.code {
        ErrorCode::RuntimeStale | ErrorCode::PaneNotFound => {
            Ok("the pane is gone, or another program was started in it".into())
        }
        _ if pane.located.key.server.target.is_local() => Ok(error.message),
        ErrorCode::Timeout | ErrorCode::TargetUnreachable => Err(no_answer(pane, &error.message)),
        _ => Err(error),
    }
}

fn no_answer(pane: &ActionPane<'_>, why: &str) -> ApiError {
    let target = &pane.located.key.server.target;
    let error = ApiError::new(ErrorCode::TargetUnreachable, format!("{target} did not answer: {why}"));
    error.with_hint(format!("agtmux target doctor {target}"))
}

/// Sanitizes output that comes from another host.
fn sanitized_if_remote(done: ActionOutcome<OutputReport>, action: &OutputAction) -> ActionOutcome<OutputReport> {
    if done.target == TargetName::LOCAL {
        return done;
    }
    let most = action.lines.unwrap_or(MAX_LINES).min(MAX_LINES) as usize;
    ActionOutcome { report: remote::sanitize_output(done.report, most, action.ansi), ..done }
}

async fn capture_output(pane: &ActionPane<'_>, lines: Option<u32>, ansi: bool) -> ApiResult<OutputReport> {
    let (guard, most) = (pane.guard, lines.unwrap_or(0));
    let capture = match pane.tmux.output(guard.pane, most, ansi).await {
        // The connection broke. Reading is harmless, so try once more when the host is back.
        Err(lost @ TmuxError::Unreachable(_)) => match pane.reconnected_tmux().await {
            Some(tmux) => tmux.output(guard.pane, most, ansi).await,
            None => Err(lost),
        },
        captured => captured,
    };
    let capture = capture.map_err(tmux_error)?;
    let same = capture.filter(|c| (c.server_pid, c.pane_pid) == (guard.server_pid, guard.pane_pid));
    let Some(capture) = same else {
        return Err(guards::runtime_stale("the pane is gone, or another program was started in it".into()));
    };
    let shown = text::from_bytes(&capture.screen);
    let clean = |line: &str| if ansi { sanitize::keeping_colours(line) } else { sanitize::for_terminal(line) };
    let mut all: Vec<String> = shown.trim_end().lines().map(|line| clean(line.trim_end())).collect();
    if let Some(most) = lines.and_then(|most| usize::try_from(most).ok()) {
        let left_out: String = all.drain(..all.len().saturating_sub(most)).collect();
        if let Some(first) = all.first_mut().filter(|_| ansi) {
            first.insert_str(0, &active_colours(&left_out));
        }
    }
    let title = text::from_bytes(&capture.title);
    Ok(OutputReport {
        lines: all,
        title: Some(sanitize::for_terminal(&title)).filter(|title| !title.is_empty()),
        full_screen: capture.full_screen,
        tty: Some(pane.located.pane.tty.clone()).filter(|tty| !tty.is_empty()),
    })
}

/// The colour sequences that are still active at the end of this text. tmux emits a sequence only where a colour
/// changes. If agtmux cuts this text off, the text after it must therefore begin with these sequences.
fn active_colours(coloured: &str) -> String {
    let since = coloured.rfind("\u{1b}[0m").map_or(coloured, |at| &coloured[at..]);
    let attribute = |rest: &str| rest.find('m').map(|end| format!("\u{1b}[{}", &rest[..=end]));
    since.split("\u{1b}[").skip(1).filter_map(attribute).collect()
}

fn attach_plan(pane: &ActionPane<'_>) -> ApiResult<AttachPlan> {
    let located = &pane.located.pane;
    let Some(placement) = located.placements.first() else {
        return Err(guards::runtime_stale("the pane is not in any session".into()));
    };
    Ok(AttachPlan {
        socket: text::from_bytes(pane.tmux.socket().as_os_str().as_bytes()),
        server_pid: pane.guard.server_pid,
        server_start: pane.guard.server_start,
        session_id: placement.session.to_string(),
        session_name: placement.session_name.clone(),
        sessions: located.placements.iter().map(plan_session).collect(),
        window_id: located.window.to_string(),
        pane_pid: located.pid,
        ssh: None,
    })
}

fn plan_session(placement: &agtmux_core::fleet::Placement) -> AttachSession {
    AttachSession { session_id: placement.session.to_string(), session_name: placement.session_name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_becomes_the_first_keeps_its_colours() {
        let red_and_bold = "\u{1b}[32mgone\u{1b}[0m \u{1b}[31mred \u{1b}[1mbold";
        assert_eq!(active_colours(red_and_bold), "\u{1b}[0m\u{1b}[31m\u{1b}[1m");
        assert_eq!(active_colours("plain"), "");
    }
}
