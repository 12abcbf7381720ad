use std::time::Duration;

use agtmux_client::{ClientError, DaemonClient};
use tokio::time::{Instant, sleep};

use super::find::find;
use crate::error::CliResult;
use crate::output;

const BROKEN_RETRY_FOR: Duration = Duration::from_secs(1);
const RETRY_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn run() -> CliResult {
    let daemon = DaemonClient::from_env()?;
    if answers(&daemon).await {
        return output::print(&format!("the daemon is already running{}\n", pid(&daemon).await));
    }
    daemon.start().await?;
    output::print(&format!("the daemon is running{}\n", pid(&daemon).await))
}

/// Whether a daemon answers. After a kill, a child between fork and exec can still hold the socket: it accepts
/// connections but never answers.
async fn answers(daemon: &DaemonClient) -> bool {
    let patience = Instant::now() + BROKEN_RETRY_FOR;
    loop {
        match daemon.api.get_bytes("/v1/health", &()).await {
            Err(ClientError::NotRunning(_)) => return false,
            Err(ClientError::Broken(_)) if Instant::now() < patience => sleep(RETRY_PAUSE).await,
            Err(ClientError::Broken(_)) => return false,
            // A daemon with another version, or one that hangs, is running too.
            _ => return true,
        }
    }
}

async fn pid(daemon: &DaemonClient) -> String {
    find(daemon).await.ok().flatten().map(|pid| format!(" (pid {})", pid.as_raw_nonzero())).unwrap_or_default()
}
