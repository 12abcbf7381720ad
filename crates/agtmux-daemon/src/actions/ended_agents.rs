//! References to agents that have ended. `history`, `audit` and `resume` accept them.

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_core::refs::{PaneRef, RefError};

use super::Actions;
use crate::engine::{LocatedPane, ref_error};
use crate::store::past_runtimes::{self, PastRuntime};

/// The maximum number of ended agents that an error message lists.
const MAX_CANDIDATES: usize = 4;

impl Actions {
    /// The id of the runtime that the reference names. If no running agent matches the reference, this is the id of an
    /// ended agent: the last one in the named pane, or the one with the given name, type or session.
    pub(crate) async fn runtime_or_ended(&self, reference: &str) -> ApiResult<String> {
        let parsed: PaneRef = reference.parse().map_err(|error: RefError| ref_error(&error))?;
        if let PaneRef::Runtime(id) = &parsed {
            return Ok(id.to_string());
        }
        let located = match self.0.engine.locate(parsed.clone()).await {
            Ok(located) => located,
            Err(error) => return Ok(self.ended_like(parsed, error).await?.runtime_id),
        };
        if let Some(agent) = &located.agent {
            return Ok(agent.runtime.id.to_string());
        }
        let past = self.last_runtime_in(&located).await?;
        past.map(|past| past.runtime_id).ok_or_else(|| ref_error(&RefError::NotFound(reference.to_owned())))
    }

    /// The newest agent in the pane that agtmux has recorded.
    pub(super) async fn last_runtime_in(&self, located: &LocatedPane) -> ApiResult<Option<PastRuntime>> {
        let (key, generation) = (located.key.clone(), located.generation);
        let last = move |connection: &_| past_runtimes::last_in(connection, &key.server, generation, key.pane);
        Ok(self.0.store.read(last).await?)
    }

    /// The ended agent that the reference names. If there is none, the error is `missing`.
    pub(super) async fn ended_like(&self, reference: PaneRef, missing: ApiError) -> ApiResult<PastRuntime> {
        if missing.code != ErrorCode::RefNotFound {
            return Err(missing);
        }
        match reference {
            PaneRef::Pane(pane) => {
                let last = move |connection: &_| past_runtimes::last_in_any_pane(connection, pane);
                self.0.store.read(last).await?.ok_or(missing)
            }
            PaneRef::Agent(word) => {
                let wanted = word.clone();
                let find = move |connection: &_| past_runtimes::ended_like(connection, &wanted);
                only_one(&word, self.0.store.read(find).await?, missing)
            }
            _ => Err(missing),
        }
    }
}

/// The newest ended agent with this name. If no ended agent has this name, the word is a type or a session, and exactly
/// one ended agent must match it.
fn only_one(word: &str, newest_first: Vec<PastRuntime>, missing: ApiError) -> ApiResult<PastRuntime> {
    let named = newest_first.iter().position(|past| past.name.as_deref() == Some(word));
    match (named, newest_first.len()) {
        (Some(at), _) => newest_first.into_iter().nth(at).ok_or(missing),
        (None, 0 | 1) => newest_first.into_iter().next().ok_or(missing),
        (None, _) => {
            let describe = |past: &PastRuntime| {
                let pane = past.pane_ref.as_ref().map_or("a closed pane".to_owned(), PaneRef::to_string);
                format!("runtime:{} ({} in {pane}, ended)", past.runtime_id, past.agent_type)
            };
            let candidates = newest_first.iter().take(MAX_CANDIDATES).map(describe).collect();
            Err(ref_error(&RefError::Ambiguous { reference: word.to_owned(), candidates }))
        }
    }
}
