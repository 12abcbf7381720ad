use super::find::find;
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::output;

pub(super) async fn run() -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    if daemon.client.connect().await.is_ok() {
        output::print(&format!("the daemon already runs{}\n", pid(&daemon).await))?;
        return Ok(Exit::Ok);
    }
    daemon.start().await?;
    output::print(&format!("the daemon runs{}\n", pid(&daemon).await))?;
    Ok(Exit::Ok)
}

async fn pid(daemon: &Daemon) -> String {
    find(daemon).await.ok().flatten().map(|pid| format!(" (pid {})", pid.as_raw_nonzero())).unwrap_or_default()
}
