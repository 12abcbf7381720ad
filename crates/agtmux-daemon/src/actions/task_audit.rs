//! Records task commands in the audit log: first the start of a command, later its result.

use agtmux_api::error::ApiResult;
use agtmux_api::wire::{ActionGuards, ActionKind};

use super::{Actions, RequestCaller};

/// The audit entry of a task command.
pub(crate) struct TaskActionEntry<'a> {
    pub(crate) caller: &'a RequestCaller,
    pub(crate) summary: &'static str,
    pub(crate) session: &'a str,
    pub(crate) task: Option<&'a str>,
    /// The command line of the task. The audit log stores it under the same rules as typed text.
    pub(crate) text: Option<&'a str>,
}

impl Actions {
    pub(crate) async fn audited<T>(
        &self,
        entry: TaskActionEntry<'_>,
        action: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let reference = [Some(entry.session), entry.task].into_iter().flatten().collect::<Vec<_>>().join("/");
        self.recorded(ActionKind::Task, reference, entry.caller, entry.summary, entry.text, action).await
    }

    /// Records the start of an action, runs it and records its result. An action that cannot be recorded does not run.
    pub(super) async fn recorded<T>(
        &self,
        kind: ActionKind,
        reference: String,
        caller: &RequestCaller,
        summary: &'static str,
        text: Option<&str>,
        action: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let guards = ActionGuards { r#ref: reference, ..ActionGuards::default() };
        let record = self.new_record(kind, &guards, caller, Some(summary), text);
        self.write_record(&record, "", None).await?;
        let outcome = action.await;
        self.write_result(record, "", outcome.as_ref().err()).await;
        outcome
    }
}
