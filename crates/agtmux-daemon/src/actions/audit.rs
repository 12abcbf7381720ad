//! The audit log: records the caller, the target and the result of every action.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::config::Config;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, ActionRecord, ActionStatus, AuditLog, AuditQuery};
use agtmux_core::redact;
use agtmux_tmux::TmuxKey;
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::{Actions, CUT_MARK};
use crate::store::{ActionRow, SnapshotRow, StoreChange, actions};

const MAX_AUDIT_ROWS: u32 = 10_000;
/// The maximum number of bytes of a typed text that the audit log stores.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The maximum number of bytes of an error message that the audit log stores.
const MAX_MESSAGE_BYTES: usize = 1000;

impl Actions {
    pub(super) async fn write_record(
        &self,
        record: &ActionRecord,
        content: &str,
        snapshot: Option<&SnapshotRow>,
    ) -> ApiResult<()> {
        // A short text can be guessed from its hash. Store the hash only if repeated requests must be recognised.
        let content_hash = record.request_ref.as_ref().map(|_| hash(content)).unwrap_or_default();
        let mut row = ActionRow { record: record.clone(), content_hash };
        // A refused action did nothing, so its request_ref may be used again.
        row.record.request_ref = row.record.request_ref.filter(|_| record.status != ActionStatus::Refused);
        let snapshot = snapshot.map(|row| StoreChange::PutSnapshot(Box::new(row.clone())));
        let changes = snapshot.into_iter().chain([StoreChange::PutAction(Box::new(row))]).collect();
        Ok(self.0.store.commit(changes).await?)
    }

    /// Records the end of an action.
    pub(super) async fn write_result(&self, mut record: ActionRecord, content: &str, error: Option<&ApiError>) {
        record.finished_at = Some(self.0.clock.now());
        record.status = match error {
            None => ActionStatus::Done,
            Some(error) if error.done_something => ActionStatus::Failed,
            Some(_) => ActionStatus::Refused,
        };
        record.code = error.map(|error| error.code);
        record.message = error.map(|error| redacted_prefix(&error.message, MAX_MESSAGE_BYTES));
        if let Err(error) = self.write_record(&record, content, None).await {
            // The action has run. Returning an error would make the caller repeat it.
            tracing::error!(%error, action = record.action_id, "cannot record the result of an action");
        }
    }

    pub(super) async fn stored_request(&self, name: &str) -> ApiResult<Option<ActionRow>> {
        let name = name.to_owned();
        Ok(self.0.store.read(move |connection| actions::by_request(connection, &name)).await?)
    }

    pub(crate) async fn action(&self, id: String) -> ApiResult<Option<ActionRecord>> {
        Ok(self.0.store.read(move |connection| actions::by_id(connection, &id)).await?)
    }

    pub(crate) async fn audit(&self, query: &AuditQuery) -> ApiResult<AuditLog> {
        let since = query.since.unwrap_or(Timestamp::MIN);
        let most = query.limit.unwrap_or(AuditQuery::DEFAULT_LIMIT);
        if most > MAX_AUDIT_ROWS {
            let error = ApiError::new(ErrorCode::BadRequest, format!("the limit must be at most {MAX_AUDIT_ROWS}"));
            return Err(error.with_hint("agtmux audit --since TIME --limit N"));
        }
        let runtime = match &query.r#ref {
            Some(reference) => Some(self.runtime_or_ended(reference).await?),
            None => None,
        };
        let find = move |connection: &_| actions::newest_since(connection, since, runtime.as_deref(), most);
        let items = self.0.store.read(find).await?;
        Ok(AuditLog { schema_version: SCHEMA_VERSION, items })
    }
}

/// The redacted and truncated text, or `None` if `audit.store_text` is off.
pub(super) fn stored_text(config: &Config, text: Option<&str>) -> Option<String> {
    text.filter(|_| config.audit.store_text).map(|text| redacted_prefix(text, MAX_TEXT_BYTES))
}

/// Redacts a text and truncates it to `most` bytes. Adds a mark if something was cut off.
///
/// A very long text is cut twice: to a larger size before the redaction, and to `most` bytes after it. A secret at the
/// first cut may be incomplete and not recognised, so the text close to that cut is dropped.
pub(super) fn redacted_prefix(text: &str, most: usize) -> String {
    let seen = (3 * most).max(MAX_TEXT_BYTES);
    let clean = redacted(&text[..text.floor_char_boundary(seen)]);
    let sound = if text.len() > seen { clean.len().saturating_sub(seen / 3) } else { clean.len() };
    let kept = &clean[..clean.floor_char_boundary(sound.min(most))];
    if kept.len() == clean.len() && text.len() <= seen { clean } else { format!("{kept}{CUT_MARK}") }
}

/// Describes the pressed keys. Successive character keys are joined to one word, so that secrets are recognised and
/// redacted.
pub(super) fn keys_summary(config: &Config, keys: &[TmuxKey]) -> Option<String> {
    if keys.is_empty() {
        return None;
    }
    if let [TmuxKey::Character(_)] = keys {
        // It may be one of many that together are a password, which could not be recognised.
        return Some("1 key".to_owned());
    }
    if !config.audit.store_text {
        return Some(format!("{} keys", keys.len()));
    }
    let mut words = String::from("keys");
    for (n, key) in keys.iter().enumerate() {
        let goes_on = matches!(
            (n.checked_sub(1).map(|before| &keys[before]), key),
            (Some(TmuxKey::Character(_)), TmuxKey::Character(_))
        );
        words.push_str(if goes_on { "" } else { " " });
        words.push_str(&key.to_string());
    }
    Some(redacted_prefix(&words, MAX_TEXT_BYTES))
}

fn redacted(text: &str) -> String {
    redact::text(text).into_owned()
}

pub(super) fn hash(content: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, content.as_bytes()).simple().to_string()
}

/// The result of an action in the form that the audit log stores. `None` for `view-output` and `last`, because what an
/// agent writes is never stored.
pub(super) fn stored_result<T: Serialize>(
    config: &Config,
    kind: ActionKind,
    outcome: &ActionOutcome<T>,
) -> Option<serde_json::Value> {
    if matches!(kind, ActionKind::ViewOutput | ActionKind::Last) {
        return None;
    }
    let mut value = serde_json::to_value(outcome).ok()?;
    redact::json(&mut value);
    if !config.audit.store_text
        && let Some(fields) = value.as_object_mut()
    {
        fields.insert("answered".into(), "[not kept]".into());
        // `asks_now` is the next dialog, and some dialogs echo the typed text.
        fields.remove("asks_now");
    }
    Some(value)
}

/// The event ids in a stored result.
pub(super) fn event_ids(result: Option<&serde_json::Value>) -> Vec<String> {
    let ids = result.and_then(|value| value.get("event_ids")?.as_array());
    ids.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

    #[test]
    fn a_truncated_text_contains_no_partial_secret() {
        let config = Config::default();
        let kept = |text: &str| stored_text(&config, Some(text)).expect("texts are stored by default");
        assert_eq!(kept("short"), "short");
        assert_eq!(kept(&format!("use {SECRET}")), "use [redacted:github]");
        for before in (0..4 * MAX_TEXT_BYTES).step_by(1000).chain(3 * MAX_TEXT_BYTES - 60..3 * MAX_TEXT_BYTES + 2) {
            let text = format!("{} {SECRET} {}", "é".repeat(before / 2), "x".repeat(MAX_TEXT_BYTES));
            let kept = kept(&text);
            assert!(!kept.contains("ghp_") && kept.len() <= MAX_TEXT_BYTES + 20, "{before}: {}", kept.len());
        }
        // Redaction makes this text short, but the part close to the cut is still dropped.
        let many = format!("{SECRET} ").repeat(3 * MAX_TEXT_BYTES / (SECRET.len() + 1) + 9);
        assert!(!kept(&many).contains("ghp_"));
    }

    #[test]
    fn secrets_in_pressed_keys_are_redacted() {
        let mut config = Config::default();
        let keys: Vec<TmuxKey> = SECRET.chars().map(TmuxKey::Character).chain([TmuxKey::enter()]).collect();
        assert_eq!(keys_summary(&config, &keys).as_deref(), Some("keys [redacted:github] Enter"));
        assert_eq!(keys_summary(&config, &[]), None);
        assert_eq!(keys_summary(&config, &keys[..1]).as_deref(), Some("1 key"));
        config.audit.store_text = false;
        assert_eq!(keys_summary(&config, &keys).as_deref(), Some("41 keys"));
    }
}
