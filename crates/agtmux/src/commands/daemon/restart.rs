use agtmux_client::DaemonClient;

use super::stop::stop;
use crate::error::{CliError, CliExit};
use crate::output;

pub(super) async fn run() -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    let before = stop(&daemon).await?;
    daemon.start().await?;
    let what = if before.is_some() { "restarted" } else { "started; it was not running before" };
    output::print(&format!("the daemon was {what}\n"))?;
    Ok(CliExit::Ok)
}
