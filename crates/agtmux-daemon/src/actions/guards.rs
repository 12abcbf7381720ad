//! Checks that the pane is still in the state that the caller expects.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionKind};
use agtmux_core::ids::TargetName;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use crate::engine::LocatedPane;
use crate::store::SnapshotRow;

/// Checks the guards that apply to every action. Returns an error for the first guard that fails.
///
/// With `force_stale`, checks only the identity of the pane. Guards about the agent, its state and its dialog are
/// skipped.
pub(super) fn check(
    guards: &ActionGuards,
    seen: Option<&SnapshotRow>,
    located: &LocatedPane,
    kind: ActionKind,
    now: Timestamp,
) -> ApiResult<()> {
    if let Some(seen) = seen {
        check_same_pane(seen, located)?;
    }
    if let Some(expected) = &guards.if_pane {
        let (generation, pane_pid) = (located.generation, located.pane.pid);
        if (expected.server_pid, expected.server_start, expected.pane_pid)
            != (generation.pid, generation.start_time, pane_pid)
        {
            return Err(runtime_stale(
                "the pane no longer runs the program that the request expects; nothing was done".into(),
            ));
        }
    }
    if guards.force_stale {
        return Ok(());
    }
    if let Some(seen) = seen {
        check_unchanged(seen, located)?;
    }
    if let Some(wanted) = &guards.if_runtime {
        let wanted = wanted.trim_start_matches("runtime:");
        let lives = located.agent.as_ref().map(|agent| agent.runtime.id.as_str());
        if lives != Some(wanted) {
            return Err(runtime_stale(match lives {
                Some(other) => format!("the pane now runs runtime:{other}, not runtime:{wanted}"),
                None => format!("runtime:{wanted} no longer runs in the pane"),
            }));
        }
    }
    if let Some(wanted) = guards.if_state {
        let state = located.agent.as_ref().map(|agent| agent.record.state);
        if state != Some(wanted) {
            let is = state.map_or("no agent runs in the pane", State::as_str);
            return Err(state_changed(format!("expected state {wanted}, found: {is}")));
        }
    }
    if let Some(within) = guards.if_updated_within_ms {
        check_updated_within(located, within, now)?;
    }
    if let Some(wanted) = &guards.if_dialog {
        let open = located.agent.as_ref().and_then(|agent| Some(agent.dialog.as_ref()?.fingerprint.as_str()));
        if open != Some(wanted) {
            return Err(state_changed("the expected dialog is no longer open; nothing was typed".into()));
        }
    }
    if kind.is_mutating() { check_state_known(located, kind) } else { Ok(()) }
}

/// Refuses a request whose deadline has passed. By then the caller has stopped waiting and has reported that the
/// outcome is unknown, so the action must not run.
pub(super) fn check_deadline(guards: &ActionGuards, now: Timestamp) -> ApiResult<()> {
    if guards.not_after.is_none_or(|until| now <= until) {
        return Ok(());
    }
    let error = ApiError::new(ErrorCode::Precondition, "nothing was done: the request arrived after its deadline");
    Err(error.with_hint("agtmux list panes   (then repeat the command)"))
}

fn check_same_pane(seen: &SnapshotRow, located: &LocatedPane) -> ApiResult<()> {
    let was = (&seen.server, seen.generation, seen.pane, seen.epoch, seen.pane_pid);
    let (key, pane) = (&located.key, &located.pane);
    if was == (&key.server, located.generation, key.pane, pane.epoch, pane.pid) {
        return Ok(());
    }
    Err(runtime_stale("the pane was replaced or respawned since the snapshot".into()))
}

fn check_unchanged(seen: &SnapshotRow, located: &LocatedPane) -> ApiResult<()> {
    let now = super::snapshots::take_snapshot(located, seen.observed_at, SignedDuration::ZERO);
    if seen.runtime_id != now.runtime_id {
        return Err(runtime_stale("the agent in the snapshot no longer runs in the pane".into()));
    }
    if seen.fingerprint != now.fingerprint {
        return Err(state_changed("the dialog in the snapshot is no longer open".into()));
    }
    if seen.state_version != now.state_version {
        return Err(state_changed("the state has changed since the snapshot".into()));
    }
    Ok(())
}

fn check_updated_within(located: &LocatedPane, within_ms: u64, now: Timestamp) -> ApiResult<()> {
    let state = located.agent.as_ref().map(|agent| agent.record.updated_at);
    let updated = state.map_or(located.pane.updated_at, |at| at.max(located.pane.updated_at));
    let age = now.duration_since(updated);
    let within = SignedDuration::from_millis(i64::try_from(within_ms).unwrap_or(i64::MAX));
    if age <= within {
        return Ok(());
    }
    Err(state_changed(format!(
        "the agent and its pane last changed {} s ago, but the request requires a change within {within:#}",
        age.as_secs()
    )))
}

/// Refuses actions if the tmux server does not answer or the agent's state is unknown.
fn check_state_known(located: &LocatedPane, kind: ActionKind) -> ApiResult<()> {
    let target = &located.key.server.target;
    if !located.reachable && !target.is_local() {
        return Err(target_unreachable(target));
    }
    if !located.reachable {
        let error = ApiError::new(ErrorCode::RuntimeStale, "the tmux server does not answer");
        return Err(error.with_hint("agtmux daemon status"));
    }
    let Some(agent) = &located.agent else { return Ok(()) };
    // `resume` needs no state, because it restarts an agent that has ended.
    if agent.record.state == State::Unknown && kind != ActionKind::Resume {
        let why = agent.record.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let error = ApiError::new(ErrorCode::Precondition, format!("the agent's state is unknown{why}"));
        return Err(error.with_hint("agtmux explain REF   (shows why; --force-stale overrides this check)"));
    }
    Ok(())
}

pub(super) fn target_unreachable(target: &TargetName) -> ApiError {
    let message = format!("nothing was done: {target} or its tmux server does not answer");
    ApiError::new(ErrorCode::TargetUnreachable, message).with_hint(format!("agtmux target doctor {target}"))
}

pub(crate) fn runtime_stale(message: String) -> ApiError {
    ApiError::new(ErrorCode::RuntimeStale, message).with_hint("agtmux list panes")
}

pub(super) const LIST_PANES_HINT: &str = "agtmux list panes --all   (shows the current state)";

pub(crate) fn state_changed(message: String) -> ApiError {
    ApiError::new(ErrorCode::StateChanged, message).with_hint(LIST_PANES_HINT)
}
