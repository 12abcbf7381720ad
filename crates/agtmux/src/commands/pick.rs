//! Resolves an agent reference. If the reference is missing or ambiguous, asks the user on the terminal.

use std::collections::BTreeSet;
use std::io::IsTerminal;

use agtmux_api::error::ErrorCode;
use agtmux_api::wire::{ActionGuards, ListQuery, ListResponse, PaneItem, SnapshotAction};
use agtmux_client::DaemonClient;
use agtmux_core::sanitize;
use inquire::{InquireError, Select};

use crate::error::{CliError, CliExit, CliResult};
use crate::terminal::StdoutTerminal;

/// How many agents the prompt shows at a time.
const PAGE_SIZE: usize = 12;
const MAX_LABEL_WIDTH: usize = 100;

/// Returns the reference that the user gave, or the agent that the user chooses at the prompt. Some given references
/// are returned unchecked; if such a reference is wrong, the daemon rejects the action and gives the reason.
pub(crate) async fn resolve_reference(daemon: &DaemonClient, given: Option<&str>) -> CliResult<String> {
    // The prompt redraws its lines, so a dumb terminal cannot show it.
    let can_ask =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !StdoutTerminal::detect().is_dumb;
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

/// Whether the reference has a form that names exactly one agent. For such a reference, the prompt never offers other
/// agents.
fn is_exact(given: &str) -> bool {
    given.starts_with("runtime:") || given.starts_with("pane:")
}

async fn check_reference(daemon: &DaemonClient, given: &str) -> CliResult {
    let guards = ActionGuards { r#ref: given.to_owned(), ..ActionGuards::default() };
    daemon.act("/v1/actions/snapshot", &SnapshotAction { guards }).await?;
    Ok(())
}

/// Whether agtmux may ask the user to choose an agent after this error. If the user named a pane or window, such as
/// %12, @3 or work:1.2, and it does not exist, agtmux offers no other pane.
fn can_choose(given: &str, error: &CliError) -> bool {
    match error.code() {
        Some(ErrorCode::RefAmbiguous) => true,
        Some(ErrorCode::RefNotFound) => !given.starts_with(['%', '@']) && !given.contains(':'),
        _ => false,
    }
}

pub(crate) fn no_agent_named() -> CliError {
    CliError::usage("no agent given")
        .hint("agtmux list panes   (use a name under AGENT, or a place under WHERE or PANE)")
}

async fn choose(daemon: &DaemonClient, given: &str, error: CliError) -> CliResult<String> {
    let listing: ListResponse<PaneItem> = daemon.get("/v1/panes", &ListQuery::default()).await?;
    let (labels, runtime_ids): (Vec<String>, Vec<String>) = choices(&listing.items).into_iter().unzip();
    if labels.is_empty() {
        return Err(error);
    }
    let question = match error.code() {
        Some(ErrorCode::RefAmbiguous) => format!("'{given}' matches several agents. Which one?"),
        Some(_) => format!("No agent matches '{given}'. Which one do you mean?"),
        None => "Which agent?".to_owned(),
    };
    let question = sanitize::for_terminal(&question);
    let answer = Select::new(&question, labels)
        .with_page_size(PAGE_SIZE)
        .with_starting_filter_input(given)
        .with_help_message("type to filter, Enter to select, Esc to cancel")
        .raw_prompt();
    match answer {
        Ok(choice) => Ok(format!("runtime:{}", runtime_ids[choice.index])),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => {
            Err(CliError::silent(CliExit::Interrupted))
        }
        Err(_) => Err(error),
    }
}

/// A label and the runtime id of each agent. Contains each agent once, even if several sessions contain its pane.
fn choices(items: &[PaneItem]) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    let choice = |item: &PaneItem| {
        let runtime_id = item.runtime_id.clone().filter(|id| seen.insert(id.clone()))?;
        let (id, agent) = (&item.identity, item.agent_type.as_ref()?);
        let state = item.state.map_or("", |state| state.as_str());
        let about = [item.title.as_deref(), item.cwd.as_deref()].into_iter().flatten().collect::<Vec<_>>().join("  ");
        let name = item.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let label = format!("{} {agent}{name}  {state}  {}@{} {}", id.pane_id, id.target, id.server, id.session_name);
        Some((sanitize::for_column(&format!("{label}  {about}"), MAX_LABEL_WIDTH), runtime_id))
    };
    items.iter().filter_map(choice).collect()
}
