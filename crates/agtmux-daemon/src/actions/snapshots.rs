//! Action snapshots. A snapshot records the state of a pane when a caller read it. With the snapshot as a guard, a
//! later action runs only if the pane is still in that state.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionSnapshot};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::engine::LocatedPane;
use crate::store::SnapshotRow;
use crate::submissions::Submission;

/// The most snapshots kept in memory.
const MAX_SNAPSHOTS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct ActionSnapshots(Mutex<HashMap<String, StoredSnapshot>>);

#[derive(Debug, Clone)]
struct StoredSnapshot {
    row: SnapshotRow,
    /// An action has already used this snapshot as a guard. That action may have changed the pane, so the snapshot is
    /// out of date.
    used: bool,
}

impl ActionSnapshots {
    pub(super) fn insert(&self, row: SnapshotRow) {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.len() >= MAX_SNAPSHOTS {
            // Expired snapshots are kept while there is room, so that callers get "expired" instead of "unknown".
            stored.retain(|_, old| old.row.expires_at > row.observed_at);
            if stored.len() >= MAX_SNAPSHOTS {
                stored.clear();
            }
        }
        stored.insert(row.snapshot_id.clone(), StoredSnapshot { row, used: false });
    }

    /// Marks the snapshot as used. The next action needs a new snapshot, because the caller has not seen what the pane
    /// shows after this action.
    pub(super) fn mark_used(&self, guards: &ActionGuards) {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = guards.snapshot_id.as_ref().and_then(|id| stored.get_mut(id)) {
            stored.used = true;
        }
    }

    /// The snapshot that the guards name, or `None` if they name none. Fails if the snapshot is unknown. Also fails if
    /// the snapshot was used or has expired, unless `force_stale` is set.
    pub(super) fn find(&self, guards: &ActionGuards, now: Timestamp) -> ApiResult<Option<SnapshotRow>> {
        let Some(id) = &guards.snapshot_id else {
            return match &guards.nonce {
                None => Ok(None),
                Some(_) => {
                    let error = ApiError::new(ErrorCode::BadRequest, "a nonce requires its snapshot_id");
                    Err(error.with_hint("send both snapshot_id and nonce, as returned by POST /v1/actions/snapshot"))
                }
            };
        };
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        // A caller that does not know the nonce does not own the snapshot.
        let Some(StoredSnapshot { row, used: spent }) =
            found.filter(|stored| guards.nonce.as_ref() == Some(&stored.row.nonce))
        else {
            return Err(expired("unknown snapshot: it has expired, or the nonce does not match"));
        };
        if spent && !guards.force_stale {
            return Err(expired("the snapshot was already used by an action and is out of date"));
        }
        if row.expires_at <= now && !guards.force_stale {
            let lived = row.expires_at.duration_since(row.observed_at);
            return Err(expired(&format!("the snapshot has expired: it is older than {lived:#}")));
        }
        Ok(Some(row))
    }
}

fn expired(message: &str) -> ApiError {
    ApiError::new(ErrorCode::SnapshotExpired, message).with_hint("take a new snapshot and try again")
}

pub(super) fn take_snapshot(located: &LocatedPane, now: Timestamp, lifetime: SignedDuration) -> SnapshotRow {
    let agent = located.agent.as_ref();
    SnapshotRow {
        snapshot_id: Uuid::now_v7().simple().to_string(),
        server: located.key.server.clone(),
        generation: located.generation,
        pane: located.key.pane,
        epoch: located.pane.epoch,
        pane_pid: located.pane.pid,
        runtime_id: agent.map(|agent| agent.runtime.id.to_string()),
        state_version: agent.map(|agent| agent.record.version),
        fingerprint: agent.and_then(|agent| Some(agent.dialog.as_ref()?.fingerprint.clone())),
        observed_at: now,
        expires_at: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        nonce: Uuid::new_v4().simple().to_string(),
    }
}

/// The snapshot as the API returns it.
pub(super) fn to_wire(row: &SnapshotRow, located: &LocatedPane) -> ActionSnapshot {
    let agent = located.agent.as_ref();
    let submission = agent.and_then(|agent| agent.submission.as_ref());
    ActionSnapshot {
        schema_version: SCHEMA_VERSION,
        snapshot_id: row.snapshot_id.clone(),
        nonce: row.nonce.clone(),
        target: row.server.target.to_string(),
        server: row.server.server.to_string(),
        pane_id: row.pane.to_string(),
        runtime_id: row.runtime_id.clone(),
        agent_type: agent.map(|agent| agent.runtime.agent_type.to_string()),
        state: agent.map(|agent| agent.record.state),
        state_version: row.state_version,
        submitted_at: submission.map(|submission| submission.at),
        turn_pending: submission.is_some_and(Submission::is_pending),
        dialog: agent.and_then(|agent| agent.dialog.clone()),
        observed_at: row.observed_at,
        expires_at: row.expires_at,
    }
}
