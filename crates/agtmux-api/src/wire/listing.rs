use std::collections::BTreeMap;
use std::fmt;

use agtmux_core::fleet::OutageCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::items::StateTally;
use super::state_set::StateSet;

/// The response of every list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ListResponse<T> {
    pub schema_version: u32,
    pub generated_at: Timestamp,
    pub filters: ListFilters,
    pub summary: ListSummary,
    /// Whether some targets or servers could not be read. `target_errors` lists them.
    pub partial: bool,
    pub target_errors: Vec<TargetError>,
    pub items: Vec<T>,
}

/// The number of agents by state, type and target. An agent shown in several sessions counts once.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ListSummary {
    pub by_state: StateTally,
    pub by_agent: BTreeMap<String, u32>,
    pub by_target: BTreeMap<String, u32>,
}

/// A target or server that could not be read. Its last known items are still listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct TargetError {
    pub target: String,
    /// The server that could not be read; null if the whole target could not be read.
    pub server: Option<String>,
    pub code: OutageCode,
    pub message: String,
    pub hint: String,
    pub since: Timestamp,
}

/// The filters that were applied to a list.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
pub struct ListFilters {
    pub target: Option<String>,
    pub target_session: Option<String>,
    pub session: Option<String>,
    /// The states to include, separated by commas: `running,idle`.
    #[schemars(with = "Option<String>")]
    #[schema(value_type = Option<String>, example = "running,idle")]
    pub state: Option<StateSet>,
    pub agent: Option<String>,
    pub needs_action: bool,
    /// Whether panes without an agent are included.
    pub all: bool,
}

/// The query parameters of every list and of the event stream.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only this target.
    pub target: Option<String>,
    /// Only this session of this target, as `target/session`.
    pub target_session: Option<String>,
    /// Only sessions with this name.
    pub session: Option<String>,
    /// Only agents in one of these states, separated by commas: `running,idle`.
    #[param(value_type = Option<String>, example = "running,idle")]
    pub state: Option<StateSet>,
    /// Only agents of this type.
    pub agent: Option<String>,
    /// Only agents that need a person to act.
    pub needs_action: bool,
    /// Include panes without an agent.
    pub all: bool,
    /// Sessions only: how to group sessions; `session-name` merges sessions of the same name across targets.
    pub group_by: Option<SessionGrouping>,
    /// Event stream only: the type of items to report. Panes by default.
    pub scope: Option<ListScope>,
    /// Event stream only: resume after the event with this sequence number. Same as the `Last-Event-ID` header.
    pub last_event_id: Option<u64>,
}

impl ListQuery {
    pub fn filters(&self) -> ListFilters {
        ListFilters {
            target: self.target.clone(),
            target_session: self.target_session.clone(),
            session: self.session.clone(),
            state: self.state.clone(),
            agent: self.agent.clone(),
            needs_action: self.needs_action,
            all: self.all,
        }
    }
}

/// How sessions are grouped.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionGrouping {
    #[default]
    TargetSession,
    SessionName,
}

/// The type of listed items.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListScope {
    #[default]
    Panes,
    Windows,
    Sessions,
    /// Event stream only: the health of the watched hosts.
    Targets,
    /// Event stream only: items of every type.
    All,
}

impl ListScope {
    /// Whether this scope includes the items of the scope `other`.
    pub fn includes(self, other: Self) -> bool {
        self == other || self == Self::All
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Panes => "panes",
            Self::Windows => "windows",
            Self::Sessions => "sessions",
            Self::Targets => "targets",
            Self::All => "all",
        }
    }
}

impl fmt::Display for ListScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
