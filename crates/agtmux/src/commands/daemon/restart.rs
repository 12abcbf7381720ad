use super::stop::stop;
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::output;

pub(super) async fn run() -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    let before = stop(&daemon).await?;
    daemon.start().await?;
    let what = if before.is_some() { "restarted" } else { "started; none ran before" };
    output::print(&format!("the daemon was {what}\n"))?;
    Ok(Exit::Ok)
}
