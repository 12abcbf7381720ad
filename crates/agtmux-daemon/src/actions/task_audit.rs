//! Records task commands in the audit log: first that they began, then their result.

use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionStatus};

use super::perform::ActionDescription;
use super::{Actions, RequestCaller, audit};

/// The audit entry of a task command.
pub(crate) struct TaskActionEntry<'a> {
    pub(crate) caller: &'a RequestCaller,
    pub(crate) summary: &'static str,
    pub(crate) session: &'a str,
    pub(crate) task: Option<&'a str>,
    /// The command line of the task. Stored under the same rules as typed text.
    pub(crate) text: Option<&'a str>,
}

impl Actions {
    /// Like [`Self::audited`], but refuses callers that are agents unless `actions.allow_from_agents` is set.
    pub(crate) async fn audited_unless_agent<T>(
        &self,
        entry: TaskActionEntry<'_>,
        action: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let (caller, what) = (entry.caller.clone(), entry.summary);
        let allowed = async move {
            self.refuse_agents_unless_allowed(&caller, what).await?;
            action.await
        };
        self.audited(entry, allowed).await
    }

    pub(crate) async fn audited<T>(
        &self,
        entry: TaskActionEntry<'_>,
        action: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let reference = [Some(entry.session), entry.task].into_iter().flatten().collect::<Vec<_>>().join("/");
        let guards = ActionGuards { r#ref: reference, ..ActionGuards::default() };
        let described = ActionDescription {
            kind: ActionKind::Task,
            guards: &guards,
            caller: entry.caller,
            summary: Some(entry.summary),
            text: entry.text,
        };
        let mut record = self.new_record(&described);
        self.write_record(&record, "", None).await?;
        let outcome = action.await;
        record.finished_at = Some(self.0.clock.now());
        match &outcome {
            Ok(_) => record.status = ActionStatus::Done,
            Err(error) => {
                record.status = if error.done_something { ActionStatus::Failed } else { ActionStatus::Refused };
                record.code = Some(error.code);
                record.message = Some(audit::redacted_prefix(&error.message, audit::MAX_MESSAGE_BYTES));
            }
        }
        if let Err(error) = self.write_record(&record, "", None).await {
            tracing::error!(%error, action = record.action_id, "cannot record the result of an action");
        }
        outcome
    }
}
