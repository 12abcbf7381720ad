//! Explains how the engine decided the state of an agent.

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ExplainCandidate, Explanation};
use agtmux_core::ledger::{ObservationStatus, RatedObservation};
use agtmux_core::refs::{PaneRef, RefError};
use agtmux_core::state::State;
use jiff::Timestamp;

use super::Engine;

impl Engine {
    pub(super) fn explain(&self, reference: &PaneRef, now: Timestamp) -> Result<Explanation, ApiError> {
        let (pane, runtime) = reference.resolve(&self.fleet).map_err(|error| ref_error(&error))?;
        let (Some(record), Some(ledger)) = (self.states.state(&runtime.id), self.states.ledger(&runtime.id)) else {
            return Err(ref_error(&RefError::NotFound(reference.to_string())));
        };
        let observations: Vec<RatedObservation<'_>> = ledger.rated_observations(now).collect();
        Ok(Explanation {
            schema_version: SCHEMA_VERSION,
            runtime_id: runtime.id.to_string(),
            agent_type: runtime.agent_type.to_string(),
            target: pane.server.target.to_string(),
            server: pane.server.server.to_string(),
            pane_id: pane.pane.to_string(),
            state: record.state,
            reason_code: record.reason,
            confidence: record.confidence,
            state_version: record.version,
            since: record.since,
            candidates: observations.iter().map(|rated| candidate(rated, now)).collect(),
            last_events: Vec::new(),
            would_change: would_change(record.state, &observations),
        })
    }
}

pub(crate) fn ref_error(error: &RefError) -> ApiError {
    let (code, hint) = match error {
        RefError::Invalid(_) => {
            (ErrorCode::RefInvalid, "use runtime:ID, %12, an agent's name, or pane:TARGET/SESSION/@W/%P")
        }
        RefError::NotFound(_) => (ErrorCode::RefNotFound, "agtmux list panes"),
        RefError::OnOtherHost { .. } => (ErrorCode::RefNotFound, "%N alone names a local pane; use one of these"),
        RefError::Ambiguous { .. } => (ErrorCode::RefAmbiguous, "use one of these instead"),
    };
    ApiError::new(code, error.to_string()).with_hint(hint)
}

fn candidate(rated: &RatedObservation<'_>, now: Timestamp) -> ExplainCandidate {
    let observation = rated.observation;
    ExplainCandidate {
        source: observation.source,
        claim: rated.assertion.claim(),
        says: rated.assertion,
        conclusive: observation.conclusive,
        fresh: rated.status == ObservationStatus::Fresh,
        why_not: why_not(rated.status),
        as_of: observation.as_of,
        age_ms: i64::try_from(now.duration_since(rated.recorded_at).as_millis()).unwrap_or(i64::MAX),
        rule: observation.rule.name.clone(),
        rule_version: observation.rule.version,
        evidence: observation.excerpt.clone(),
    }
}

fn why_not(status: ObservationStatus) -> Option<String> {
    match status {
        ObservationStatus::Fresh => None,
        ObservationStatus::Inconclusive => Some("inconclusive: not enough to decide the state".into()),
        ObservationStatus::Expired => Some("expired: the source did not repeat this observation in time".into()),
        ObservationStatus::Contradicted(source) => Some(format!("contradicted by a later observation from {source}")),
        ObservationStatus::Held => Some("held back for a moment, until the screen shows the dialog".into()),
        ObservationStatus::Replaced => Some("replaced by a later observation from the same source".into()),
    }
}

fn would_change(state: State, observations: &[RatedObservation<'_>]) -> Vec<String> {
    let mut changes = Vec::new();
    if observations.is_empty() {
        changes.push("any observation of this agent: an event from its hooks, or from `agtmux emit`".into());
    }
    if state == State::Completed {
        changes.push("time: completed becomes idle after a while".into());
    }
    if observations.iter().any(|s| s.status == ObservationStatus::Fresh && s.observation.ttl.is_some()) {
        changes.push("time: an observation that is not repeated expires".into());
    }
    if state != State::Unknown {
        changes.push("a later conclusive observation from any source, or the end of the agent's process".into());
    }
    changes
}
