//! One remote target as the rest of the daemon sees it: its status, and a way to send requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agtmux_api::error::ApiError;
use agtmux_api::host_protocol::{HubRequest, ReplyOutcome};
use agtmux_api::wire::{EvidenceKind, TargetStatus};
use agtmux_core::target::{Target, TargetHealth, TargetKind};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::sanitize_reply::sanitize_message;
use super::timeouts::{ACTION_TIMEOUT, READ_TIMEOUT};

#[derive(Debug, Clone)]
pub(crate) struct TargetLink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    status: watch::Sender<LinkStatus>,
    /// Present while a connection accepts requests.
    requests: Mutex<Option<mpsc::Sender<TargetRequest>>>,
    retry: Notify,
}

/// The state of the connection to a remote target.
#[derive(Debug, Clone)]
pub(crate) struct LinkStatus {
    /// The target as clients see it.
    pub(crate) target: TargetStatus,
    pub(crate) connected: bool,
    /// How many connection attempts have finished, successfully or not.
    pub(crate) attempts: u64,
}

/// A request that waits for its reply.
#[derive(Debug)]
pub(super) struct TargetRequest {
    pub(super) action: HubRequest,
    /// True as soon as the first byte may have been sent.
    pub(super) sent: Arc<AtomicBool>,
    pub(super) reply: oneshot::Sender<ReplyOutcome>,
}

/// Why a request got no reply.
#[derive(Debug)]
pub(super) enum LinkError {
    /// Nothing was sent.
    NotConnected,
    Refused(ApiError),
    /// The request was sent, but its result is unknown.
    Lost(String),
}

impl TargetLink {
    /// The link of a target that has not answered yet.
    pub(super) fn new(target: &Target, now: Timestamp) -> Self {
        let target = TargetStatus {
            name: target.name.to_string(),
            kind: TargetKind::Ssh,
            ssh_target: Some(target.ssh.to_string()),
            health: TargetHealth::Degraded,
            evidence: EvidenceKind::Nothing,
            agtmux_version: None,
            since: now,
            fault: None,
            message: Some("no answer yet".into()),
            hint: None,
            clock_ahead_ms: None,
        };
        let status = watch::Sender::new(LinkStatus { target, connected: false, attempts: 0 });
        Self(Arc::new(Inner { status, requests: Mutex::new(None), retry: Notify::new() }))
    }

    pub(crate) fn status(&self) -> LinkStatus {
        self.0.status.borrow().clone()
    }

    /// Whether agtmux runs on the host and accepts requests.
    pub(crate) fn is_native(&self) -> bool {
        self.0.status.borrow().target.evidence == EvidenceKind::Native
    }

    /// Sets the status and wakes the requests that wait for it. The caller must publish the status first.
    pub(super) fn set_status(&self, status: LinkStatus) {
        self.0.status.send_replace(status);
    }

    pub(super) async fn wait_for(&self, is_reached: impl FnMut(&LinkStatus) -> bool) {
        let _ = self.0.status.subscribe().wait_for(is_reached).await;
    }

    /// Requests an immediate attempt to connect, or to replace a shell connection with a native one. Returns false if
    /// the target has a native connection.
    pub(super) fn request_retry(&self) -> bool {
        let status = self.0.status.borrow();
        let idle = !status.connected || status.target.evidence == EvidenceKind::Screen;
        drop(status);
        if idle {
            self.0.retry.notify_one();
        }
        idle
    }

    pub(super) async fn retry_requested(&self) {
        self.0.retry.notified().await;
    }

    pub(super) fn set_request_sender(&self, sender: Option<mpsc::Sender<TargetRequest>>) {
        *self.0.requests.lock().unwrap_or_else(PoisonError::into_inner) = sender;
    }

    /// Sends a request and waits for the reply. If the connection is lost, a read-only request is repeated once, and a
    /// request that changes something is never repeated.
    pub(super) async fn request(&self, action: HubRequest) -> Result<Value, LinkError> {
        if action.kind().is_mutating() {
            return self.request_once(action, ACTION_TIMEOUT).await;
        }
        match self.request_once(action.clone(), READ_TIMEOUT).await {
            Err(LinkError::Lost(_)) => {}
            answer => return answer,
        }
        let _ = timeout(READ_TIMEOUT, self.wait_for(|status| status.connected)).await;
        self.request_once(action, READ_TIMEOUT).await
    }

    async fn request_once(&self, action: HubRequest, within: Duration) -> Result<Value, LinkError> {
        let sender = self.0.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(sender) = sender else { return Err(LinkError::NotConnected) };
        let (reply, answer) = oneshot::channel();
        let sent = Arc::new(AtomicBool::new(false));
        // A full queue means that the connection is stuck.
        if sender.try_send(TargetRequest { action, sent: sent.clone(), reply }).is_err() {
            return Err(LinkError::NotConnected);
        }
        drop(sender);
        match timeout(within, answer).await {
            Ok(Ok(ReplyOutcome::Done(value))) => Ok(value),
            Ok(Ok(ReplyOutcome::Refused(error))) => Err(LinkError::Refused(error)),
            Ok(Ok(ReplyOutcome::Lost(why))) => Err(LinkError::Lost(sanitize_message(&why))),
            Ok(Err(_)) if !sent.load(Ordering::SeqCst) => Err(LinkError::NotConnected),
            Ok(Err(_)) => Err(LinkError::Lost("the connection was lost".into())),
            Err(_) => Err(LinkError::Lost(format!("no answer within {} s", within.as_secs()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::wire::SendAction;
    use agtmux_core::ids::TargetName;

    #[tokio::test]
    async fn the_reason_for_a_lost_request_is_sanitized_and_bounded() {
        let target = Target { name: TargetName::new("vm1"), ssh: "vm1".parse().expect("a destination") };
        let link = TargetLink::new(&target, Timestamp::UNIX_EPOCH);
        let (sender, mut requests) = mpsc::channel::<TargetRequest>(1);
        link.set_request_sender(Some(sender));
        let host = async {
            let request = requests.recv().await.expect("a request");
            let _ = request.reply.send(ReplyOutcome::Lost("\u{1b}]2;x\u{7}".repeat(9000)));
        };
        let (answer, ()) = tokio::join!(link.request(HubRequest::Send(SendAction::default())), host);
        let Err(LinkError::Lost(why)) = answer else { panic!("{answer:?}") };
        assert!(why.starts_with("\\x1b]2;x\\x07") && why.len() < 2000, "{why}");
    }
}
