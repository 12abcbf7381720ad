use agtmux_client::DaemonClient;

use super::stop::stop;
use crate::error::CliResult;
use crate::output;

pub(super) async fn run() -> CliResult {
    let daemon = DaemonClient::from_env()?;
    let before = stop(&daemon).await?;
    daemon.start().await?;
    let what = if before.is_some() { "restarted" } else { "started; it was not running before" };
    output::print(&format!("the daemon was {what}\n"))
}
