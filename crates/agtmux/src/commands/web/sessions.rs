//! Lists and ends the logins of browsers.

use agtmux_api::wire::{WebLoginList, WebRevokeRequest};
use agtmux_client::{DaemonClient, parse};
use jiff::Timestamp;

use crate::error::CliResult;
use crate::terminal::StdoutTerminal;
use crate::{message, output, render};

pub(super) async fn list(daemon: &DaemonClient, json: bool) -> CliResult {
    let answer = daemon.get_bytes("/v1/web/logins", &()).await?;
    if json {
        return output::json_answer(&answer);
    }
    let logins: WebLoginList = parse(&answer)?;
    if logins.items.is_empty() {
        message::line(match logins.open {
            true => "no browser is logged in; to log one in, run: agtmux web",
            false => "the web port is closed; to open it, run: agtmux web",
        });
        return Ok(());
    }
    output::styled_lines(&render::web_logins(&logins, Timestamp::now()).lines(&StdoutTerminal::detect()))
}

pub(super) async fn revoke(daemon: &DaemonClient, id: String) -> CliResult {
    daemon.act("/v1/web/revoke", &WebRevokeRequest { id: id.clone() }).await?;
    output::line(&format!("the login {id} has ended"))
}
