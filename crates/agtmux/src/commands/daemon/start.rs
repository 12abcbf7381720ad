use std::time::Duration;

use agtmux_api::client::ClientError;
use tokio::time::{Instant, sleep};

use super::find::find;
use crate::connect::Daemon;
use crate::error::{CliError, Exit};
use crate::output;

const GIVEN_UP_WITHIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run() -> Result<Exit, CliError> {
    let daemon = Daemon::from_env()?;
    if answers(&daemon).await {
        output::print(&format!("the daemon already runs{}\n", pid(&daemon).await))?;
        return Ok(Exit::Ok);
    }
    daemon.start().await?;
    output::print(&format!("the daemon runs{}\n", pid(&daemon).await))?;
    Ok(Exit::Ok)
}

/// One that was killed a moment ago may leave its socket to a child that is about to become another program: it takes calls,
/// and answers none.
async fn answers(daemon: &Daemon) -> bool {
    let patience = Instant::now() + GIVEN_UP_WITHIN;
    loop {
        match daemon.client.get_bytes("/v1/health", &Vec::<(String, String)>::new()).await {
            Err(ClientError::NotRunning(_)) => return false,
            Err(ClientError::Broken(_)) if Instant::now() < patience => sleep(PAUSE).await,
            Err(ClientError::Broken(_)) => return false,
            // Of another version, or hung: it is there.
            _ => return true,
        }
    }
}

async fn pid(daemon: &Daemon) -> String {
    find(daemon).await.ok().flatten().map(|pid| format!(" (pid {})", pid.as_raw_nonzero())).unwrap_or_default()
}
