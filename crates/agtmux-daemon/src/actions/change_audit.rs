//! Records in the audit log when a caller changes the daemon's adapters or targets, changes the name of an agent, or
//! creates a web link.

use agtmux_api::error::ApiResult;
use agtmux_api::wire::{ActionGuards, ActionKind};

use super::{Actions, RequestCaller};

/// The audit entry of a change.
pub(crate) struct ChangeEntry<'a> {
    pub(crate) kind: ActionKind,
    pub(crate) caller: &'a RequestCaller,
    /// What the caller does, in words, for the audit log and for the error message if the daemon refuses the change.
    pub(crate) summary: &'a str,
    /// The name of the adapter, target or agent.
    pub(crate) name: &'a str,
}

impl Actions {
    /// Like [`Self::audited_change`], but refuses callers that are agents unless `actions.allow_from_agents` is set.
    pub(crate) async fn audited_change_unless_agent<T>(
        &self,
        entry: ChangeEntry<'_>,
        change: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let (caller, what) = (entry.caller.clone(), entry.summary.to_owned());
        let allowed = async move {
            self.refuse_agents_unless_allowed(&caller, &what).await?;
            change.await
        };
        self.audited_change(entry, allowed).await
    }

    /// Records the start of the change, makes the change, and records the result of the change.
    pub(crate) async fn audited_change<T>(
        &self,
        entry: ChangeEntry<'_>,
        change: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let guards = ActionGuards { r#ref: entry.name.to_owned(), ..ActionGuards::default() };
        let record = self.new_record(entry.kind, &guards, entry.caller, Some(entry.summary), None);
        self.write_record(&record, "", None).await?;
        let outcome = change.await;
        self.write_result(record, "", outcome.as_ref().err()).await;
        outcome
    }
}
