//! Tells the client that a call is still running. Clients end calls that are silent for too long.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::ProgressToken};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

const INTERVAL: Duration = Duration::from_secs(5);

/// Waits for `work`, and tells the client every few seconds that it still runs.
pub(crate) async fn with_progress<T>(
    context: &RequestContext<RoleServer>,
    tool: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return work.await };
    let mut work = std::pin::pin!(work);
    let started = Instant::now();
    let mut ticks = interval_at(started + INTERVAL, INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => report(context, token.clone(), tool, started.elapsed()).await,
        }
    }
}

async fn report(context: &RequestContext<RoleServer>, token: ProgressToken, tool: &str, elapsed: Duration) {
    let progress = ProgressNotificationParam::new(token, elapsed.as_secs_f64().round())
        .with_message(format!("{tool} has been running for {} s", elapsed.as_secs()));
    // A client that has gone away does not need it.
    let _ = context.peer.notify_progress(progress).await;
}
