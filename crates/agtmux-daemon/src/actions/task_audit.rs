//! What is done to tasks is written down as every other action is, first that it is begun and then what came of it.

use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionGuards, ActionKind, ActionStatus};

use super::perform::ActionDescription;
use super::{Actions, RequestCaller, audit};

/// What is about to be done, for whoever looks it up later.
pub(crate) struct TaskActionEntry<'a> {
    pub(crate) caller: &'a RequestCaller,
    pub(crate) summary: &'static str,
    pub(crate) session: &'a str,
    pub(crate) task: Option<&'a str>,
    /// The command of a task. It is kept as texts are.
    pub(crate) text: Option<&'a str>,
}

impl Actions {
    /// Refused to agents unless the settings let them.
    pub(crate) async fn audited_unless_agent<T>(
        &self,
        noted: TaskActionEntry<'_>,
        doing: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let (asker, what) = (noted.caller.clone(), noted.summary);
        let allowed = async move {
            self.refuse_agents_unless_allowed(&asker, what).await?;
            doing.await
        };
        self.audited(noted, allowed).await
    }

    pub(crate) async fn audited<T>(
        &self,
        noted: TaskActionEntry<'_>,
        doing: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let place = [Some(noted.session), noted.task].into_iter().flatten().collect::<Vec<_>>().join("/");
        let guards = ActionGuards { r#ref: place, ..ActionGuards::default() };
        let described = ActionDescription {
            kind: ActionKind::Task,
            guards: &guards,
            caller: noted.caller,
            summary: Some(noted.summary),
            text: noted.text,
        };
        let mut record = self.new_record(&described);
        self.write_record(&record, "", None).await?;
        let outcome = doing.await;
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
            tracing::error!(%error, action = record.action_id, "what came of an action could not be written down");
        }
        outcome
    }
}
