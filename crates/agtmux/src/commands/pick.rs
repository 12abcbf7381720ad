//! Which agent is meant. Where what was typed does not tell, and somebody is there to ask, they are asked.

use std::collections::BTreeSet;
use std::fmt;
use std::io::IsTerminal;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{Guards, ListQuery, Listing, PaneItem, SnapshotAction};
use agtmux_core::sanitize;
use inquire::{InquireError, Select};

use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::message::Message;

/// More would not be read.
const ROWS: usize = 12;
const WIDEST: usize = 100;

/// A reference that names exactly one agent, or one that the daemon refuses with a reason.
pub(crate) async fn reference(daemon: &Daemon, given: Option<&str>) -> Result<String, CliError> {
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    match given {
        Some(given) if !can_ask || is_exact(given) => Ok(given.to_owned()),
        Some(given) => match look(daemon, given).await {
            Ok(()) => Ok(given.to_owned()),
            Err(error) if is_open(given, &error) => choose(daemon, given, error).await,
            Err(error) => Err(error),
        },
        None if can_ask => choose(daemon, "", unnamed()).await,
        None => Err(unnamed()),
    }
}

/// Whoever writes one of these means just that.
fn is_exact(given: &str) -> bool {
    given.starts_with("runtime:") || given.starts_with("pane:")
}

async fn look(daemon: &Daemon, given: &str) -> Result<(), CliError> {
    let guards = Guards { r#ref: given.to_owned(), ..Guards::default() };
    daemon.act("/v1/actions/snapshot", &SnapshotAction { guards }).await.map(drop)
}

/// A pane that is not there is not to be replaced by another one.
fn is_open(given: &str, error: &CliError) -> bool {
    match error.code() {
        Some(ErrorCode::RefAmbiguous) => true,
        Some(ErrorCode::RefNotFound) => !given.starts_with('%'),
        _ => false,
    }
}

pub(crate) fn unnamed() -> CliError {
    let message = Message::new("no agent was named").hint("agtmux list panes   (%12, or its AGENT, can be the REF)");
    CliError::new(Exit::Usage, message)
}

struct Choice {
    label: String,
    runtime_id: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

async fn choose(daemon: &Daemon, given: &str, error: CliError) -> Result<String, CliError> {
    let listing: Listing<PaneItem> = daemon.get("/v1/panes", &ListQuery::default()).await?;
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
        .with_page_size(ROWS)
        .with_starting_filter_input(given)
        .with_help_message("type to filter, Enter takes it, Esc leaves")
        .prompt();
    match answer {
        Ok(choice) => Ok(format!("runtime:{}", choice.runtime_id)),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
            Err(CliError::silent(Exit::Interrupted))
        }
        Err(_) => Err(error),
    }
}

/// Each agent once, however many sessions show it.
fn choices(items: &[PaneItem]) -> Vec<Choice> {
    let mut seen = BTreeSet::new();
    let choice = |item: &PaneItem| {
        let runtime_id = item.runtime_id.clone().filter(|id| seen.insert(id.clone()))?;
        let (id, agent) = (&item.identity, item.agent_type.as_ref()?);
        let state = item.state.map_or("", |state| state.as_str());
        let about = [item.title.as_deref(), item.cwd.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("  ");
        let name = item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let label = format!("{} {agent}{name}  {state}  {}@{} {}", id.pane_id, id.target, id.server, id.session_name);
        Some(Choice { label: sanitize::for_column(&format!("{label}  {about}"), WIDEST), runtime_id })
    };
    items.iter().filter_map(choice).collect()
}
