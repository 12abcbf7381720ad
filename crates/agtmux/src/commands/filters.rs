//! The filter options of `list` and `watch`.

use agtmux_api::wire::{ListQuery, StateSet};
use agtmux_core::state::State;
use clap::Args;
use clap::builder::TypedValueParser;

use crate::choices::one_of;

/// Filters by place.
#[derive(Debug, Default, Clone, Args)]
struct PlaceFilterArgs {
    /// Show only this target (host)
    #[arg(long, value_name = "NAME", conflicts_with = "all_targets")]
    target: Option<String>,
    /// Show every target (default)
    #[arg(long)]
    all_targets: bool,
    /// Show only this session of this target
    #[arg(long, value_name = "TARGET/SESSION", value_parser = target_session)]
    target_session: Option<String>,
    /// Show only sessions with this name, on every target
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl PlaceFilterArgs {
    fn query(&self) -> ListQuery {
        ListQuery {
            target: self.target.clone(),
            target_session: self.target_session.clone(),
            session: self.session.clone(),
            ..ListQuery::default()
        }
    }
}

/// Filters of panes.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    place: PlaceFilterArgs,
    /// Show only agents in this state. Several states: `--state running,idle`, or repeat the option
    #[arg(long, value_delimiter = ',', value_parser = states())]
    state: Vec<State>,
    /// Show only agents of this type: claude, codex, gemini, …
    #[arg(long, value_name = "TYPE")]
    agent: Option<String>,
    /// Show only agents that wait for input or approval
    #[arg(long)]
    needs_action: bool,
    /// Also list panes without an agent
    #[arg(long)]
    all: bool,
}

impl FilterArgs {
    pub(crate) fn query(&self) -> ListQuery {
        ListQuery {
            state: StateSet::new(self.state.iter().copied()),
            agent: self.agent.clone(),
            needs_action: self.needs_action,
            all: self.all,
            ..self.place.query()
        }
    }
}

/// Filters of windows and sessions.
#[derive(Debug, Args)]
pub(crate) struct GroupFilterArgs {
    #[command(flatten)]
    place: PlaceFilterArgs,
    /// List only windows or sessions that have an agent in this state. Several states: `--state running,idle`, or
    /// repeat the option
    #[arg(long, value_delimiter = ',', value_parser = states())]
    state: Vec<State>,
    /// List only windows or sessions that have an agent that waits for input or approval
    #[arg(long)]
    needs_action: bool,
    /// Accepted for compatibility: windows and sessions without an agent are always listed
    #[arg(long = "all", hide = true)]
    _all: bool,
}

impl GroupFilterArgs {
    pub(crate) fn query(&self) -> ListQuery {
        ListQuery {
            state: StateSet::new(self.state.iter().copied()),
            needs_action: self.needs_action,
            ..self.place.query()
        }
    }
}

fn states() -> impl TypedValueParser<Value = State> {
    one_of(State::ALL.iter().map(|state| (state.as_str(), *state)))
}

fn target_session(given: &str) -> Result<String, String> {
    match given.split_once('/') {
        Some((target, session)) if !target.is_empty() && !session.is_empty() => Ok(given.to_owned()),
        _ => Err("expected TARGET/SESSION, for example host/work".to_owned()),
    }
}
