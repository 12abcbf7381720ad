//! Streams this host's evidence to `agtmux collect`.

use agtmux_api::VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::host_protocol::{HEARTBEAT_INTERVAL, HostHello, HostLine, PROTOCOL_VERSIONS};
use axum::response::Response;
use bytes::Bytes;
use jiff::SignedDuration;
use tokio::sync::watch;

use super::extract::ErrorResponse;
use super::{ServeContext, sse};
use crate::actions::{Actions, RequestCaller};
use crate::engine::EvidenceSubscription;

/// Streams lines of JSON: first a hello, then a batch with all evidence, then batches with changes. Available on the
/// unix socket only.
pub(super) async fn get_evidence(context: ServeContext, caller: RequestCaller) -> Result<Response, ErrorResponse> {
    if caller.via != "unix" {
        let error = ApiError::new(ErrorCode::Forbidden, "evidence is available on the unix socket only");
        return Err(error.with_hint("agtmux collect --stdio").into());
    }
    let Some(subscription) = context.engine.subscribe_evidence().await else {
        return Err(ApiError::new(ErrorCode::Internal, "the daemon is stopping").into());
    };
    let clock_steps = context.actions.clock_steps();
    let hello = HostLine::Hello(hello(&context));
    let (actions, stopping) = (context.actions.clone(), context.stopping.clone());
    let lines = EvidenceLines { first: Some(hello), subscription, actions, clock_steps, stopping };
    Ok(sse::respond("application/x-ndjson", lines))
}

fn hello(context: &ServeContext) -> HostHello {
    let mut tmux_versions: Vec<String> = context.discovery.servers().into_iter().map(|s| s.tmux_version).collect();
    tmux_versions.dedup();
    HostHello { protocol: PROTOCOL_VERSIONS, version: VERSION.into(), now: context.actions.now(), tmux_versions }
}

struct EvidenceLines {
    first: Option<HostLine>,
    subscription: EvidenceSubscription,
    /// Provides the clock by which requests expire.
    actions: Actions,
    /// How far the system clock had been set forward or back, in total, when the stream began.
    clock_steps: SignedDuration,
    stopping: watch::Receiver<bool>,
}

impl sse::ChunkReader for EvidenceLines {
    /// The next line, or `None` when the daemon stops. Also returns `None` after the clock was set, because the hub
    /// converts times with the clock difference that it found when the stream began. The hub then connects again at
    /// once.
    async fn next(&mut self) -> Option<Bytes> {
        let line = match self.first.take() {
            Some(hello) => hello,
            None => tokio::select! {
                batch = self.subscription.next() => HostLine::Batch(batch?),
                _ = self.stopping.wait_for(|stop| *stop) => return None,
                () = tokio::time::sleep(HEARTBEAT_INTERVAL) => HostLine::Heartbeat { now: self.actions.now() },
            },
        };
        if self.actions.clock_steps() != self.clock_steps {
            return None;
        }
        let mut bytes = serde_json::to_vec(&line).ok()?;
        bytes.push(b'\n');
        Some(Bytes::from(bytes))
    }
}
