use std::time::Duration;

use agtmux_api::client::ClientError;
use tokio::time::{Instant, sleep};

use super::find::find;
use crate::connect::DaemonClient;
use crate::error::{CliError, CliExit};
use crate::output;

const BROKEN_RETRY_FOR: Duration = Duration::from_secs(1);
const RETRY_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run() -> Result<CliExit, CliError> {
    let daemon = DaemonClient::from_env()?;
    if answers(&daemon).await {
        output::print(&format!("the daemon already runs{}\n", pid(&daemon).await))?;
        return Ok(CliExit::Ok);
    }
    daemon.start().await?;
    output::print(&format!("the daemon runs{}\n", pid(&daemon).await))?;
    Ok(CliExit::Ok)
}

/// One that was killed a moment ago may leave its socket to a child that is about to become another program: it takes calls,
/// and answers none.
async fn answers(daemon: &DaemonClient) -> bool {
    let patience = Instant::now() + BROKEN_RETRY_FOR;
    loop {
        match daemon.client.get_bytes("/v1/health", &Vec::<(String, String)>::new()).await {
            Err(ClientError::NotRunning(_)) => return false,
            Err(ClientError::Broken(_)) if Instant::now() < patience => sleep(RETRY_PAUSE).await,
            Err(ClientError::Broken(_)) => return false,
            // Of another version, or hung: it is there.
            _ => return true,
        }
    }
}

async fn pid(daemon: &DaemonClient) -> String {
    find(daemon).await.ok().flatten().map(|pid| format!(" (pid {})", pid.as_raw_nonzero())).unwrap_or_default()
}
