use agtmux_api::wire::{ListQuery, Listing, Scope};
use serde::de::DeserializeOwned;

use super::empty;
use crate::connect::{Daemon, parse};
use crate::error::{CliError, Exit};
use crate::output;
use crate::render::{self, Table};
use crate::terminal::Terminal;

pub(super) struct Request {
    pub(super) scope: Scope,
    pub(super) query: ListQuery,
    pub(super) json: bool,
}

/// Asks the daemon and prints its answer: as it came for programs, as a table for people.
pub(super) async fn show<T: DeserializeOwned>(
    request: Request,
    table: impl FnOnce(&Listing<T>) -> Table,
) -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let bytes = daemon.bytes(&format!("/v1/{}", request.scope), &request.query).await?;
    if request.json {
        output::line(&bytes)?;
        return Ok(Exit::Ok);
    }
    let listing: Listing<T> = parse(&bytes)?;
    listing.target_errors.iter().for_each(|error| render::target_error(error).tell());
    if listing.items.is_empty() {
        let health = daemon.get("/v1/health", &ListQuery::default()).await?;
        empty::explain(request.scope, &listing.filters, &health).tell();
        return Ok(Exit::Ok);
    }
    let terminal = Terminal::of_stdout();
    let mut lines = table(&listing).lines(&terminal);
    if terminal.is_tty {
        lines.push(String::new());
        lines.push(render::summary_line(&listing.summary, terminal.colour));
    }
    output::lines(&lines)?;
    Ok(Exit::Ok)
}
