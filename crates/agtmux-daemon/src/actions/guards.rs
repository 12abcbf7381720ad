//! Whether what is there is what the caller saw.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionKind};
use agtmux_core::ids::TargetName;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use crate::engine::LocatedPane;
use crate::store::SnapshotRow;

/// What is compared whatever the action is. The first difference is told. Force overrides all of it but one: a pane that is
/// another one than the one that was seen.
pub(super) fn check(
    guards: &ActionGuards,
    seen: Option<&SnapshotRow>,
    located: &LocatedPane,
    kind: ActionKind,
    now: Timestamp,
) -> Result<(), ApiError> {
    if let Some(seen) = seen {
        check_same_pane(seen, located)?;
    }
    if let Some(meant) = &guards.if_pane {
        let (generation, pane_pid) = (located.generation, located.pane.pid);
        if (meant.server_pid, meant.server_start, meant.pane_pid) != (generation.pid, generation.start_time, pane_pid) {
            return Err(runtime_stale("the pane is not the one that was meant".into()));
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
        let lives = located.agent.as_ref().map(|living| living.runtime.id.as_str());
        if lives != Some(wanted) {
            return Err(runtime_stale(match lives {
                Some(other) => format!("runtime:{other} lives there now, not runtime:{wanted}"),
                None => format!("runtime:{wanted} does not live there any more"),
            }));
        }
    }
    if let Some(wanted) = guards.if_state {
        let state = located.agent.as_ref().map(|living| living.record.state);
        if state != Some(wanted) {
            let is = state.map_or("no agent lives there", State::as_str);
            return Err(state_changed(format!("the state is not {wanted}: {is}")));
        }
    }
    if let Some(within) = guards.if_updated_within_ms {
        check_updated_within(located, within, now)?;
    }
    if let Some(wanted) = &guards.if_dialog {
        let open = located.agent.as_ref().and_then(|living| Some(living.dialog.as_ref()?.fingerprint.as_str()));
        if open != Some(wanted) {
            return Err(state_changed("that dialog is not open any more; nothing was typed".into()));
        }
    }
    if kind.is_mutating() { check_state_known(located, kind) } else { Ok(()) }
}

/// Whoever asked has been told by then that nobody knows what came of it.
pub(super) fn check_deadline(guards: &ActionGuards, now: Timestamp) -> Result<(), ApiError> {
    if guards.not_after.is_none_or(|until| now <= until) {
        return Ok(());
    }
    let error = ApiError::new(ErrorCode::Precondition, "nothing was done: it came too late");
    Err(error.with_hint("look, then ask again"))
}

fn check_same_pane(seen: &SnapshotRow, located: &LocatedPane) -> Result<(), ApiError> {
    let was = (&seen.server, seen.generation, seen.pane, seen.epoch, seen.pane_pid);
    let (key, pane) = (&located.key, &located.pane);
    if was == (&key.server, located.generation, key.pane, pane.epoch, pane.pid) {
        return Ok(());
    }
    Err(runtime_stale("the pane is not the one that was seen".into()))
}

fn check_unchanged(seen: &SnapshotRow, located: &LocatedPane) -> Result<(), ApiError> {
    let now = super::snapshots::take_snapshot(located, seen.observed_at, SignedDuration::ZERO);
    if seen.runtime_id != now.runtime_id {
        return Err(runtime_stale("another agent lives there than the one that was seen, or none".into()));
    }
    if seen.fingerprint != now.fingerprint {
        return Err(state_changed("it asks something else than what was seen, or nothing".into()));
    }
    if seen.state_version != now.state_version {
        return Err(state_changed("the state has changed since it was seen".into()));
    }
    Ok(())
}

fn check_updated_within(located: &LocatedPane, within_ms: u64, now: Timestamp) -> Result<(), ApiError> {
    let state = located.agent.as_ref().map(|living| living.record.updated_at);
    let updated = state.map_or(located.pane.updated_at, |at| at.max(located.pane.updated_at));
    let age = now.duration_since(updated);
    let within = SignedDuration::from_millis(i64::try_from(within_ms).unwrap_or(i64::MAX));
    if age <= within {
        return Ok(());
    }
    Err(state_changed(format!("nothing was heard of it for {} s, and {within:#} was the most", age.as_secs())))
}

/// What nobody is sure of is not acted on.
fn check_state_known(located: &LocatedPane, kind: ActionKind) -> Result<(), ApiError> {
    let target = &located.key.server.target;
    if !located.reachable && !target.is_local() {
        return Err(target_unreachable(target));
    }
    if !located.reachable {
        let error = ApiError::new(ErrorCode::RuntimeStale, "its tmux server does not answer");
        return Err(error.with_hint("agtmux daemon status"));
    }
    let Some(living) = &located.agent else { return Ok(()) };
    // One that has ended has no state that could be known.
    if living.record.state == State::Unknown && kind != ActionKind::Resume {
        let why = living.record.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let error = ApiError::new(ErrorCode::Precondition, format!("its state is unknown{why}"));
        return Err(error.with_hint("agtmux explain REF   (tells why; --force-stale goes on all the same)"));
    }
    Ok(())
}

pub(super) fn target_unreachable(target: &TargetName) -> ApiError {
    let message = format!("nothing was done: {target}, or its tmux server, does not answer");
    ApiError::new(ErrorCode::TargetUnreachable, message).with_hint(format!("agtmux target doctor {target}"))
}

pub(super) fn runtime_stale(message: String) -> ApiError {
    ApiError::new(ErrorCode::RuntimeStale, message).with_hint("agtmux list panes")
}

pub(super) const LIST_PANES_HINT: &str = "look again: agtmux list panes";

pub(super) fn state_changed(message: String) -> ApiError {
    ApiError::new(ErrorCode::StateChanged, message).with_hint(LIST_PANES_HINT)
}
