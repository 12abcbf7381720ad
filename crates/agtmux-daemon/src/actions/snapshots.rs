//! What was there when somebody looked, for those who act on it a moment later.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionGuards, ActionSnapshot};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::engine::LocatedPane;
use crate::store::SnapshotRow;

/// Nobody acts on more than this within its lifetime.
const MAX_SNAPSHOTS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct ActionSnapshots(Mutex<HashMap<String, StoredSnapshot>>);

#[derive(Debug, Clone)]
struct StoredSnapshot {
    row: SnapshotRow,
    /// Something was done to what it shows: it shows what was there before.
    used: bool,
}

impl ActionSnapshots {
    pub(super) fn insert(&self, row: SnapshotRow) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_SNAPSHOTS {
            // An old one is told to be expired as long as there is room; then it is not known.
            kept.retain(|_, old| old.row.expires_at > row.observed_at);
            if kept.len() >= MAX_SNAPSHOTS {
                kept.clear();
            }
        }
        kept.insert(row.snapshot_id.clone(), StoredSnapshot { row, used: false });
    }

    /// Whoever has looked once has not seen what came of what was done then.
    pub(super) fn mark_used(&self, guards: &ActionGuards) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = guards.snapshot_id.as_ref().and_then(|id| kept.get_mut(id)) {
            kept.used = true;
        }
    }

    /// The one that is named, if it is known and may still be acted on.
    pub(super) fn find(&self, guards: &ActionGuards, now: Timestamp) -> Result<Option<SnapshotRow>, ApiError> {
        let Some(id) = &guards.snapshot_id else {
            return match &guards.nonce {
                None => Ok(None),
                Some(_) => {
                    let error = ApiError::new(ErrorCode::BadRequest, "a nonce without its snapshot_id guards nothing");
                    Err(error.with_hint("give both, as POST /v1/actions/snapshot has told them"))
                }
            };
        };
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        // One whose nonce is not known to the caller is not the caller's.
        let Some(StoredSnapshot { row, used: spent }) =
            found.filter(|kept| guards.nonce.as_ref() == Some(&kept.row.nonce))
        else {
            return Err(expired("this snapshot is not known: it is old, or its nonce is another"));
        };
        if spent && !guards.force_stale {
            return Err(expired("this snapshot was acted on before, and what is there now was not seen"));
        }
        if row.expires_at <= now && !guards.force_stale {
            let lived = row.expires_at.duration_since(row.observed_at);
            return Err(expired(&format!("this snapshot is older than {lived:#}")));
        }
        Ok(Some(row))
    }
}

fn expired(message: &str) -> ApiError {
    ApiError::new(ErrorCode::SnapshotExpired, message).with_hint("look again, then act on what you see")
}

pub(super) fn take_snapshot(located: &LocatedPane, now: Timestamp, lifetime: SignedDuration) -> SnapshotRow {
    let living = located.agent.as_ref();
    SnapshotRow {
        snapshot_id: Uuid::now_v7().simple().to_string(),
        server: located.key.server.clone(),
        generation: located.generation,
        pane: located.key.pane,
        epoch: located.pane.epoch,
        pane_pid: located.pane.pid,
        runtime_id: living.map(|living| living.runtime.id.to_string()),
        state_version: living.map(|living| living.record.version),
        fingerprint: living.and_then(|living| Some(living.dialog.as_ref()?.fingerprint.clone())),
        observed_at: now,
        expires_at: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        nonce: Uuid::new_v4().simple().to_string(),
    }
}

/// As it is given to whoever looks.
pub(super) fn to_wire(row: &SnapshotRow, located: &LocatedPane) -> ActionSnapshot {
    let living = located.agent.as_ref();
    ActionSnapshot {
        schema_version: SCHEMA_VERSION,
        snapshot_id: row.snapshot_id.clone(),
        nonce: row.nonce.clone(),
        target: row.server.target.to_string(),
        server: row.server.server.to_string(),
        pane_id: row.pane.to_string(),
        runtime_id: row.runtime_id.clone(),
        agent_type: living.map(|living| living.runtime.agent_type.to_string()),
        state: living.map(|living| living.record.state),
        state_version: row.state_version,
        dialog: living.and_then(|living| living.dialog.clone()),
        observed_at: row.observed_at,
        expires_at: row.expires_at,
    }
}
