//! Which agent is meant. Where what was typed does not tell, and somebody is there to ask, they are asked.

use std::collections::BTreeSet;
use std::fmt;
use std::io::IsTerminal;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ActionGuards, ListQuery, ListResponse, PaneItem, SnapshotAction};
use agtmux_core::sanitize;
use inquire::{InquireError, Select};

use crate::connect::DaemonClient;
use crate::error::{CliError, CliExit};
use crate::message::CliMessage;

/// More would not be read.
const PAGE_SIZE: usize = 12;
const MAX_LABEL_WIDTH: usize = 100;

/// A reference that names exactly one agent, or one that the daemon refuses with a reason.
pub(crate) async fn resolve_reference(daemon: &DaemonClient, given: Option<&str>) -> Result<String, CliError> {
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    match given {
        Some(given) if !can_ask || is_exact(given) => Ok(given.to_owned()),
        Some(given) => match check_reference(daemon, given).await {
            Ok(()) => Ok(given.to_owned()),
            Err(error) if can_choose(given, &error) => choose(daemon, given, error).await,
            Err(error) => Err(error),
        },
        None if can_ask => choose(daemon, "", no_agent_named()).await,
        None => Err(no_agent_named()),
    }
}

/// Whoever writes one of these means just that.
fn is_exact(given: &str) -> bool {
    given.starts_with("runtime:") || given.starts_with("pane:")
}

async fn check_reference(daemon: &DaemonClient, given: &str) -> Result<(), CliError> {
    let guards = ActionGuards { r#ref: given.to_owned(), ..ActionGuards::default() };
    daemon.act("/v1/actions/snapshot", &SnapshotAction { guards }).await.map(drop)
}

/// A pane that is not there is not to be replaced by another one.
fn can_choose(given: &str, error: &CliError) -> bool {
    match error.code() {
        Some(ErrorCode::RefAmbiguous) => true,
        Some(ErrorCode::RefNotFound) => !given.starts_with('%'),
        _ => false,
    }
}

pub(crate) fn no_agent_named() -> CliError {
    let message = CliMessage::new("no agent was named").hint("agtmux list panes   (%12, or its AGENT, can be the REF)");
    CliError::new(CliExit::Usage, message)
}

struct AgentChoice {
    label: String,
    runtime_id: String,
}

impl fmt::Display for AgentChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

async fn choose(daemon: &DaemonClient, given: &str, error: CliError) -> Result<String, CliError> {
    let listing: ListResponse<PaneItem> = daemon.get("/v1/panes", &ListQuery::default()).await?;
    let choices = choices(&listing.items);
    if choices.is_empty() {
        return Err(error);
    }
    let asked = match error.code() {
        Some(ErrorCode::RefAmbiguous) => format!("'{given}' fits several agents. Which one?"),
        Some(_) => format!("no agent fits '{given}'. Which one do you mean?"),
        None => "which agent?".to_owned(),
    };
    let asked = sanitize::for_terminal(&asked);
    let answer = Select::new(&asked, choices)
        .with_page_size(PAGE_SIZE)
        .with_starting_filter_input(given)
        .with_help_message("type to filter, Enter takes it, Esc leaves")
        .prompt();
    match answer {
        Ok(choice) => Ok(format!("runtime:{}", choice.runtime_id)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
            Err(CliError::silent(CliExit::Interrupted))
        }
        Err(_) => Err(error),
    }
}

/// Each agent once, however many sessions show it.
fn choices(items: &[PaneItem]) -> Vec<AgentChoice> {
    let mut seen = BTreeSet::new();
    let choice = |item: &PaneItem| {
        let runtime_id = item.runtime_id.clone().filter(|id| seen.insert(id.clone()))?;
        let (id, agent) = (&item.identity, item.agent_type.as_ref()?);
        let state = item.state.map_or("", |state| state.as_str());
        let about = [item.title.as_deref(), item.cwd.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("  ");
        let name = item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let label = format!("{} {agent}{name}  {state}  {}@{} {}", id.pane_id, id.target, id.server, id.session_name);
        Some(AgentChoice { label: sanitize::for_column(&format!("{label}  {about}"), MAX_LABEL_WIDTH), runtime_id })
    };
    items.iter().filter_map(choice).collect()
}
