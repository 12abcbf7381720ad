//! Which panes, windows or sessions are meant.

use agtmux_api::wire::ListQuery;
use agtmux_core::state::State;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

#[derive(Debug, Default, Clone, Args)]
pub(crate) struct FilterArgs {
    /// Only this target: the host whose tmux is watched
    #[arg(long, value_name = "NAME", conflicts_with = "all_targets")]
    target: Option<String>,
    /// Every target, which is the default
    #[arg(long)]
    all_targets: bool,
    /// Only this session of this target
    #[arg(long, value_name = "TARGET/SESSION", value_parser = target_session)]
    target_session: Option<String>,
    /// Only sessions of this name, on every target
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only agents in this state
    #[arg(long, value_parser = states())]
    state: Option<State>,
    /// Only agents of this kind: claude, codex, gemini, …
    #[arg(long, value_name = "TYPE")]
    agent: Option<String>,
    /// Only agents that wait for a person
    #[arg(long)]
    needs_action: bool,
    /// Also panes in which no agent runs. Windows and sessions are always all listed
    #[arg(long)]
    all: bool,
}

impl FilterArgs {
    pub(crate) fn query(&self) -> ListQuery {
        ListQuery {
            target: self.target.clone(),
            target_session: self.target_session.clone(),
            session: self.session.clone(),
            state: self.state,
            agent: self.agent.clone(),
            needs_action: self.needs_action,
            all: self.all,
            ..ListQuery::default()
        }
    }
}

fn states() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.iter().map(|state| state.as_str())).try_map(|word| word.parse::<State>())
}

fn target_session(given: &str) -> Result<String, String> {
    match given.split_once('/') {
        Some((target, session)) if !target.is_empty() && !session.is_empty() => Ok(given.to_owned()),
        _ => Err("write it as TARGET/SESSION, for example host/work".to_owned()),
    }
}
