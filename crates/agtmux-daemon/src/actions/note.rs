//! What is done to tasks is written down as every other action is, first that it is begun and then what came of it.

use agtmux_api::error::ApiError;
use agtmux_api::wire::{ActionKind, ActionStatus, Guards};

use super::perform::Described;
use super::{Actions, Asker, audit};

/// What is about to be done, for whoever looks it up later.
pub(crate) struct Noted<'a> {
    pub(crate) asker: &'a Asker,
    pub(crate) what: &'static str,
    pub(crate) session: &'a str,
    pub(crate) task: Option<&'a str>,
    /// The command of a task. It is kept as texts are.
    pub(crate) text: Option<&'a str>,
}

impl Actions {
    /// Refused to agents unless the settings let them.
    pub(crate) async fn noted_of_people<T>(
        &self,
        noted: Noted<'_>,
        doing: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let (asker, what) = (noted.asker.clone(), noted.what);
        let allowed = async move {
            self.refuse_agents_to(&asker, what).await?;
            doing.await
        };
        self.noted(noted, allowed).await
    }

    pub(crate) async fn noted<T>(
        &self,
        noted: Noted<'_>,
        doing: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let place = [Some(noted.session), noted.task].into_iter().flatten().collect::<Vec<_>>().join("/");
        let guards = Guards { r#ref: place, ..Guards::default() };
        let described = Described {
            kind: ActionKind::Task,
            guards: &guards,
            asker: noted.asker,
            what: Some(noted.what),
            text: noted.text,
        };
        let mut record = self.begin(&described);
        self.write(&record, "", None).await?;
        let outcome = doing.await;
        record.finished_at = Some(self.0.clock.now());
        match &outcome {
            Ok(_) => record.status = ActionStatus::Done,
            Err(error) => {
                record.status = if error.done_something { ActionStatus::Failed } else { ActionStatus::Refused };
                record.code = Some(error.code);
                record.message = Some(audit::shortened(&error.message, audit::LONGEST_MESSAGE));
            }
        }
        if let Err(error) = self.write(&record, "", None).await {
            tracing::error!(%error, action = record.action_id, "what came of an action could not be written down");
        }
        outcome
    }
}
