//! Why a state is what it is.

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
        let Some(record) = self.states.state(&runtime.id) else {
            return Err(ref_error(&RefError::NotFound(reference.to_string())));
        };
        let standings = self.states.rated_observations(&runtime.id, now);
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
            candidates: standings.iter().map(|standing| candidate(standing, now)).collect(),
            would_change: would_change(record.state, &standings),
        })
    }
}

pub(crate) fn ref_error(error: &RefError) -> ApiError {
    let (code, hint) = match error {
        RefError::Invalid(_) => {
            (ErrorCode::RefInvalid, "write runtime:ID, %12, an agent's name, or pane:TARGET/SESSION/@W/%P")
        }
        RefError::NotFound(_) => (ErrorCode::RefNotFound, "agtmux list panes"),
        RefError::OnOtherHost { .. } => {
            (ErrorCode::RefNotFound, "a bare %N is one of this machine; write one of these")
        }
        RefError::Ambiguous { .. } => (ErrorCode::RefAmbiguous, "write one of these instead"),
    };
    ApiError::new(code, error.to_string()).with_hint(hint)
}

fn candidate(standing: &RatedObservation<'_>, now: Timestamp) -> ExplainCandidate {
    let statement = standing.observation;
    ExplainCandidate {
        source: statement.source,
        claim: standing.assertion.claim(),
        says: standing.assertion,
        conclusive: statement.conclusive,
        fresh: standing.status == ObservationStatus::Fresh,
        why_not: why_not(standing.status),
        as_of: statement.as_of,
        age_ms: i64::try_from(now.duration_since(standing.recorded_at).as_millis()).unwrap_or(i64::MAX),
        rule: statement.rule.name.clone(),
        rule_version: statement.rule.version,
        evidence: statement.excerpt.clone(),
    }
}

fn why_not(aging: ObservationStatus) -> Option<String> {
    match aging {
        ObservationStatus::Fresh => None,
        ObservationStatus::Inconclusive => Some("a hint only: it cannot make a state".into()),
        ObservationStatus::Expired => Some("not said again for too long".into()),
        ObservationStatus::Contradicted(source) => Some(format!("{source} said otherwise later")),
        ObservationStatus::Replaced => Some("its own source said otherwise later".into()),
    }
}

fn would_change(state: State, standings: &[RatedObservation<'_>]) -> Vec<String> {
    let mut changes = Vec::new();
    if standings.is_empty() {
        changes.push("any statement about this agent: an event from its hooks, or from `agtmux emit`".into());
    }
    if state == State::Completed {
        changes.push("time: a completed turn counts as idle after a while".into());
    }
    if standings.iter().any(|s| s.status == ObservationStatus::Fresh && s.observation.ttl.is_some()) {
        changes.push("time: what is not said again goes stale".into());
    }
    if state != State::Unknown {
        changes.push("a later conclusive statement of any source, or the end of the agent's process".into());
    }
    changes
}
