//! One host as the rest of the daemon sees it: how it fares, and the way to ask something of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agtmux_api::collect::{HubRequest, ReplyOutcome};
use agtmux_api::error::ApiError;
use agtmux_api::wire::EvidenceKind;
use agtmux_core::target::{TargetFault, TargetHealth};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};

#[derive(Debug, Clone)]
pub(crate) struct TargetLink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    status: watch::Sender<LinkStatus>,
    /// There while somebody listens at the other end.
    requests: Mutex<Option<mpsc::Sender<TargetRequest>>>,
    retry: Notify,
}

/// How a host fares.
#[derive(Debug, Clone)]
pub(crate) struct LinkStatus {
    pub(crate) health: TargetHealth,
    pub(crate) connected: bool,
    pub(crate) evidence: EvidenceKind,
    pub(crate) version: Option<String>,
    pub(crate) since: Timestamp,
    pub(crate) fault: Option<TargetFault>,
    pub(crate) message: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) clock_ahead_ms: Option<i64>,
    /// How many attempts to reach it have come to something, good or bad.
    pub(crate) attempts: u64,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct TargetRequest {
    pub(super) ask: HubRequest,
    /// From the moment on in which the first byte of it may have left.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<ReplyOutcome>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// Nothing was sent.
    NotConnected,
    Refused(ApiError),
    /// It was sent, and nobody knows what came of it.
    Lost(String),
}

impl TargetLink {
    pub(super) fn new(now: Timestamp) -> Self {
        let status = LinkStatus {
            health: TargetHealth::Degraded,
            connected: false,
            evidence: EvidenceKind::Nothing,
            version: None,
            since: now,
            fault: None,
            message: Some("it has not answered yet".into()),
            hint: None,
            clock_ahead_ms: None,
            attempts: 0,
        };
        let (status, asks, nudge) = (watch::Sender::new(status), Mutex::new(None), Notify::new());
        Self(Arc::new(Inner { status, requests: asks, retry: nudge }))
    }

    pub(crate) fn status(&self) -> LinkStatus {
        self.0.status.borrow().clone()
    }

    /// Whether agtmux runs there and can be asked.
    pub(crate) fn is_native(&self) -> bool {
        self.0.status.borrow().evidence == EvidenceKind::Native
    }

    pub(super) fn update_status(&self, change: impl FnOnce(&mut LinkStatus)) {
        self.0.status.send_modify(change);
    }

    /// Returns when it is connected, or when an attempt after the first `before` ones has failed.
    pub(super) async fn wait_for_attempt(&self, before: u64) {
        let mut status = self.0.status.subscribe();
        let _ = status.wait_for(|status| status.connected || status.attempts > before).await;
    }

    /// Returns when an attempt after the first `before` ones has come to something, also where it was connected all the while.
    pub(super) async fn wait_for_new_attempt(&self, before: u64) {
        let mut status = self.0.status.subscribe();
        let _ = status.wait_for(|status| status.attempts > before).await;
    }

    pub(super) async fn wait_until_connected(&self) {
        let mut status = self.0.status.subscribe();
        let _ = status.wait_for(|status| status.connected).await;
    }

    /// Has it tried again at once, also where there may be a better way by now. Says whether it is tried.
    pub(super) fn request_retry(&self) -> bool {
        let status = self.0.status.borrow();
        let idle = !status.connected || status.evidence == EvidenceKind::Screen;
        drop(status);
        if idle {
            self.0.retry.notify_one();
        }
        idle
    }

    pub(super) async fn retry_requested(&self) {
        self.0.retry.notified().await;
    }

    pub(super) fn set_request_sender(&self, asks: Option<mpsc::Sender<TargetRequest>>) {
        *self.0.requests.lock().unwrap_or_else(PoisonError::into_inner) = asks;
    }

    /// Asks once. What was sent is never sent again.
    pub(crate) async fn request(&self, ask: HubRequest, within: Duration) -> Result<Value, LinkError> {
        let asks = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(asks) = asks else { return Err(LinkError::NotConnected) };
        let (reply, answer) = oneshot::channel();
        let sent = Arc::new(AtomicBool::new(false));
        // One that is full is stuck: nobody waits for it.
        if asks.try_send(TargetRequest { ask, sent: sent.clone(), reply }).is_err() {
            return Err(LinkError::NotConnected);
        }
        drop(asks);
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(ReplyOutcome::Done(value))) => Ok(value),
            Ok(Ok(ReplyOutcome::Refused(error))) => Err(LinkError::Refused(error)),
            Ok(Ok(ReplyOutcome::Lost(why))) => Err(LinkError::Lost(why)),
            Ok(Err(_)) if !sent.load(Ordering::SeqCst) => Err(LinkError::NotConnected),
            Ok(Err(_)) => Err(LinkError::Lost("the connection broke".into())),
            Err(_) => Err(LinkError::Lost(format!("there was no answer within {} s", within.as_secs()))),
        }
    }

    /// Asks again, once it is connected again, if the line broke. Only for what changes nothing.
    pub(crate) async fn request_read_only(&self, ask: HubRequest, within: Duration) -> Result<Value, LinkError> {
        match self.request(ask.clone(), within).await {
            Err(LinkError::Lost(_)) => {}
            answer => return answer,
        }
        let _ = tokio::time::timeout(within, self.wait_until_connected()).await;
        self.request(ask, within).await
    }
}
