use agtmux_core::ids::AgentType;
use agtmux_core::state::State;

use crate::error::{ApiError, ErrorCode};
use crate::wire::{
    ListFilters, ListQuery, ListScope, PaneItem, SessionGrouping, SessionItem, StateTally, TargetError, TargetStatus,
    TaskWatchEvent, WatchItem, WindowItem,
};

/// Selects items by a client's query.
#[derive(Debug, Clone, Default)]
pub struct ItemFilter {
    pub(super) given: ListFilters,
    pub(super) group_by: SessionGrouping,
    target: Option<String>,
    session: Option<String>,
}

impl ItemFilter {
    pub fn new(query: &ListQuery, scope: ListScope) -> Result<Self, ApiError> {
        let mut filter = Self {
            given: query.filters(),
            group_by: query.group_by.unwrap_or_default(),
            target: query.target.clone(),
            session: query.session.clone(),
        };
        if query.agent.is_some() && scope != ListScope::Panes {
            let message = format!("the filter 'agent' applies to panes, not to {scope}");
            return Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("remove 'agent', or list panes"));
        }
        if let Some(target_session) = &query.target_session {
            let Some((target, session)) = target_session.split_once('/') else {
                let message = format!("'target_session' is '{target_session}', not TARGET/SESSION");
                return Err(ApiError::new(ErrorCode::BadRequest, message)
                    .with_hint("use the form TARGET/SESSION, such as vm1/work"));
            };
            if query.target.as_deref().is_some_and(|t| t != target)
                || query.session.as_deref().is_some_and(|s| s != session)
            {
                let message = "'target_session' contradicts 'target' or 'session'";
                let error = ApiError::new(ErrorCode::BadRequest, message);
                return Err(error.with_hint("use either 'target_session', or 'target' and 'session'"));
            }
            filter.target = Some(target.to_owned());
            filter.session = Some(session.to_owned());
        }
        Ok(filter)
    }

    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    pub fn accepts(&self, item: &WatchItem) -> bool {
        match item {
            WatchItem::Pane(pane) => self.accepts_pane(pane),
            WatchItem::Window(window) => self.accepts_window(window),
            WatchItem::Session(session) => self.accepts_session(session),
            WatchItem::Target(target) => self.accepts_target(target),
        }
    }

    pub fn accepts_pane(&self, pane: &PaneItem) -> bool {
        let agent = &self.given.agent;
        self.matches_session(Some(&pane.identity.target), &pane.identity.session_name)
            && (self.given.all || pane.state.is_some())
            && self.given.state.as_ref().is_none_or(|wanted| pane.state.is_some_and(|state| wanted.contains(state)))
            && agent.as_ref().is_none_or(|agent| pane.agent_type.as_ref().is_some_and(|a| a.as_str() == agent))
            && (!self.given.needs_action || pane.needs_action)
    }

    /// Whether the filter accepts the task of this event. A task is filtered like a pane with an agent, by its state
    /// after the event.
    pub fn accepts_task(&self, task_event: &TaskWatchEvent) -> bool {
        let state = task_event.event.state();
        self.matches_session(Some(&task_event.target), task_event.event.session.as_str())
            && self.given.state.as_ref().is_none_or(|wanted| state.is_some_and(|state| wanted.contains(state)))
            && self.given.agent.as_ref().is_none_or(|agent| agent == AgentType::TASK)
            && (!self.given.needs_action || state.is_some_and(State::needs_action))
    }

    pub fn accepts_window(&self, window: &WindowItem) -> bool {
        self.matches_session(Some(&window.identity.target), &window.identity.session_name)
            && self.matches_counts(&window.counts)
    }

    pub fn accepts_session(&self, session: &SessionItem) -> bool {
        self.matches_session(session.identity.target.as_ref(), &session.identity.session_name)
            && self.matches_counts(&session.counts)
    }

    /// Whether the filter accepts this target. Only the filter by target applies, because a target has no state and no
    /// session.
    pub fn accepts_target(&self, target: &TargetStatus) -> bool {
        self.target().is_none_or(|wanted| target.name == wanted)
    }

    pub fn target_errors(&self, errors: &[TargetError]) -> Vec<TargetError> {
        errors.iter().filter(|error| self.target().is_none_or(|target| error.target == target)).cloned().collect()
    }

    fn matches_session(&self, target: Option<&String>, session: &str) -> bool {
        self.target.as_ref().is_none_or(|wanted| target == Some(wanted))
            && self.session.as_ref().is_none_or(|wanted| session == wanted)
    }

    fn matches_counts(&self, counts: &StateTally) -> bool {
        let any = |wanted: fn(&State) -> bool| State::ALL.iter().any(|s| wanted(s) && counts.of(*s) > 0);
        self.given.state.as_ref().is_none_or(|wanted| wanted.iter().any(|state| counts.of(state) > 0))
            && (!self.given.needs_action || any(|s| s.needs_action()))
    }
}
