use agtmux_api::wire::{ListQuery, ListResponse, ListScope};
use agtmux_client::{DaemonClient, parse};
use serde::de::DeserializeOwned;

use super::empty;
use crate::error::{CliError, CliExit};
use crate::output;
use crate::render::{self, TextTable};
use crate::terminal::StdoutTerminal;

pub(super) struct ListRequest {
    pub(super) scope: ListScope,
    pub(super) query: ListQuery,
    pub(super) json: bool,
}

/// Requests the list and prints it as JSON or as a table.
pub(super) async fn show<T: DeserializeOwned>(
    request: ListRequest,
    table: impl FnOnce(&ListResponse<T>) -> TextTable,
) -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let bytes = daemon.get_bytes(&format!("/v1/{}", request.scope), &request.query).await?;
    if request.json {
        output::line(&bytes)?;
        return Ok(CliExit::Ok);
    }
    let listing: ListResponse<T> = parse(&bytes)?;
    listing.target_errors.iter().for_each(|error| render::target_error(error).print_stderr());
    if listing.items.is_empty() {
        let health = daemon.get("/v1/health", &ListQuery::default()).await?;
        empty::explain(request.scope, &listing.filters, &health).print_stderr();
        return Ok(CliExit::Ok);
    }
    let terminal = StdoutTerminal::detect();
    let mut lines = table(&listing).lines(&terminal);
    if terminal.is_tty {
        lines.push(String::new());
        lines.push(render::summary_line(&listing.summary, terminal.colour));
    }
    output::lines(&lines)?;
    Ok(CliExit::Ok)
}
