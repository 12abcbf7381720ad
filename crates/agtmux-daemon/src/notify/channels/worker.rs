//! One worker per channel delivers its notices in order. A channel that fails or hangs delays only its own notices.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::wire::{Notice, NoticeKind, NotifyLogEvent, NotifyLogItem};
use agtmux_core::notify::NotifyChannel;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{Channels, DeliveryResult};
use crate::background::BackgroundTasks;
use crate::clock::Clock;
use crate::notify::journal::Journal;

/// The most notices that wait for one channel. Further ones are dropped.
const MAX_WAITING: usize = 64;
/// The pauses before a notice is sent again to a server that did not take it.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(20)];

#[derive(Default)]
pub(in crate::notify) struct ChannelWorkers(BTreeMap<NotifyChannel, mpsc::Sender<Notice>>);

/// What the workers share.
#[derive(Clone)]
pub(in crate::notify) struct WorkerContext {
    pub(in crate::notify) channels: Channels,
    pub(in crate::notify) journal: Arc<Journal>,
    pub(in crate::notify) clock: Clock,
}

impl ChannelWorkers {
    pub(in crate::notify) fn start(
        used: &[NotifyChannel],
        context: &WorkerContext,
        background: &BackgroundTasks,
    ) -> Self {
        let start = |channel: NotifyChannel| {
            let (sender, waiting) = mpsc::channel(MAX_WAITING);
            let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
            let context = context.clone();
            background.keep(format!("notify_{channel}"), move || {
                let (context, waiting) = (context.clone(), waiting.clone());
                async move {
                    let context = context.clone();
                    let deliver = |notice: Notice| {
                        let channels = context.channels.clone();
                        async move { channels.deliver(channel, &notice).await }
                    };
                    let record = |event, reason, notice: &Notice| context.record(channel, event, reason, notice);
                    work(channel, &mut *waiting.lock().await, deliver, record).await;
                }
            });
            (channel, sender)
        };
        Self(used.iter().copied().map(start).collect())
    }

    /// Queues a notice. Fails if the channel has too many waiting notices.
    pub(in crate::notify) fn queue(&self, channel: NotifyChannel, notice: Notice) -> Result<(), Box<Notice>> {
        let Some(worker) = self.0.get(&channel) else { return Err(Box::new(notice)) };
        worker.try_send(notice).map_err(|error| Box::new(error.into_inner()))
    }
}

impl WorkerContext {
    pub(in crate::notify) fn record(
        &self,
        channel: NotifyChannel,
        event: NotifyLogEvent,
        reason: Option<String>,
        notice: &Notice,
    ) {
        let (at, channel) = (self.clock.now(), Some(channel));
        self.journal.add(NotifyLogItem { at, event, channel, reason, notice: notice.clone() });
    }
}

/// Delivers notices until the channel closes.
async fn work<F: Future<Output = DeliveryResult>>(
    channel: NotifyChannel,
    waiting: &mut mpsc::Receiver<Notice>,
    deliver: impl Fn(Notice) -> F,
    record: impl Fn(NotifyLogEvent, Option<String>, &Notice),
) {
    let mut queue = DeliveryQueue::default();
    loop {
        if queue.next.is_empty() {
            let Some(notice) = waiting.recv().await else { return };
            queue.push(notice, &record);
        }
        while let Ok(notice) = waiting.try_recv() {
            queue.push(notice, &record);
        }
        let Some(QueuedNotice { notice, attempt }) = queue.next.pop_front() else { continue };
        let error = match deliver(notice.clone()).await {
            Ok(()) => {
                let is_withdrawal = notice.kind == NoticeKind::Withdraw;
                record(if is_withdrawal { NotifyLogEvent::Withdrawn } else { NotifyLogEvent::Sent }, None, &notice);
                continue;
            }
            Err(error) => error,
        };
        match RETRY_DELAYS.get(attempt).filter(|_| is_remote(channel)) {
            Some(delay) => {
                let retry = format!("{error}; sent again in {} s", delay.as_secs());
                record(NotifyLogEvent::Failed, Some(retry), &notice);
                queue.next.push_front(QueuedNotice { notice, attempt: attempt + 1 });
                let until = Instant::now() + *delay;
                while let Some(notice) = receive_until(waiting, until).await {
                    queue.push(notice, &record);
                }
            }
            None => {
                record(NotifyLogEvent::Failed, Some(error), &notice);
                // A server may have taken a notice although its answer was lost, so it also gets the withdrawal.
                if notice.kind == NoticeKind::Notify && !is_remote(channel) {
                    queue.undelivered.insert(notice.notice_id);
                }
            }
        }
    }
}

/// The next notice that arrives before this time.
async fn receive_until(waiting: &mut mpsc::Receiver<Notice>, until: Instant) -> Option<Notice> {
    tokio::select! {
        notice = waiting.recv() => match notice {
            Some(notice) => Some(notice),
            None => {
                sleep_until(until).await;
                None
            }
        },
        () = sleep_until(until) => None,
    }
}

/// Whether the channel is a server that may be out of reach for a while.
fn is_remote(channel: NotifyChannel) -> bool {
    matches!(channel, NotifyChannel::Webhook | NotifyChannel::Ntfy)
}

#[derive(Default)]
struct DeliveryQueue {
    next: VecDeque<QueuedNotice>,
    /// The notices that were not delivered, so that there is nothing to withdraw.
    undelivered: BTreeSet<String>,
}

struct QueuedNotice {
    notice: Notice,
    attempt: usize,
}

impl DeliveryQueue {
    /// Adds a notice. A withdrawal removes its notice instead, if that one has not been sent.
    fn push(&mut self, notice: Notice, record: &impl Fn(NotifyLogEvent, Option<String>, &Notice)) {
        if notice.kind == NoticeKind::Withdraw && self.undelivered.remove(&notice.notice_id) {
            return;
        }
        let is_withdrawn =
            |queued: &QueuedNotice| notice.kind == NoticeKind::Withdraw && queued.notice.notice_id == notice.notice_id;
        match self.next.iter().position(is_withdrawn).and_then(|at| self.next.remove(at)) {
            Some(unsent) => {
                record(NotifyLogEvent::Dropped, Some("it was over before it was sent".into()), &unsent.notice);
            }
            None if self.next.len() >= MAX_WAITING => {
                record(NotifyLogEvent::Dropped, Some("too many notices wait for the channel".into()), &notice);
            }
            None => self.next.push_back(QueuedNotice { notice, attempt: 0 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::notify::message::{NoticeWriter, withdrawal};

    fn notice(id: &str) -> Notice {
        Notice { kind: NoticeKind::Notify, ..NoticeWriter { zone: TimeZone::UTC }.test(id, Timestamp::UNIX_EPOCH) }
    }

    /// Queues the notices, lets `time` pass and returns the deliveries and the log. A delivery fails `failures` times.
    async fn run(channel: NotifyChannel, notices: Vec<(u64, Notice)>, failures: usize, time: u64) -> Vec<String> {
        let log = Mutex::new(Vec::new());
        let left = Mutex::new(failures);
        let (sender, mut waiting) = mpsc::channel(MAX_WAITING);
        let deliver = |notice: Notice| {
            let mut left = left.lock().expect("not poisoned");
            log.lock().expect("not poisoned").push(format!("{} {}", notice.kind, notice.notice_id));
            let fails = *left > 0;
            *left = left.saturating_sub(1);
            async move { if fails { Err("down".into()) } else { Ok(()) } }
        };
        let record = |event: NotifyLogEvent, reason: Option<String>, notice: &Notice| {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            log.lock().expect("not poisoned").push(format!("[{event} {}{reason}]", notice.notice_id));
        };
        let send = async {
            for (delay, notice) in notices {
                tokio::time::sleep(Duration::from_secs(delay)).await;
                sender.send(notice).await.expect("the worker runs");
            }
            tokio::time::sleep(Duration::from_secs(time)).await;
        };
        tokio::select! {
            () = work(channel, &mut waiting, deliver, record) => unreachable!("the sender lives"),
            () = send => {}
        }
        log.into_inner().expect("not poisoned")
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_down_gets_the_notice_again() {
        let happened = run(NotifyChannel::Ntfy, vec![(0, notice("a"))], 2, 60).await;
        let expected = [
            "notify a",
            "[failed a: down; sent again in 3 s]",
            "notify a",
            "[failed a: down; sent again in 20 s]",
            "notify a",
            "[sent a]",
        ];
        assert_eq!(happened, expected);
        let happened = run(NotifyChannel::Ntfy, vec![(0, notice("a"))], 9, 60).await;
        assert_eq!(happened.last().map(String::as_str), Some("[failed a: down]"), "{happened:?}");
        let happened = run(NotifyChannel::Bell, vec![(0, notice("a"))], 9, 60).await;
        assert_eq!(happened, ["notify a", "[failed a: down]"], "a terminal is not tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_notice_that_is_over_is_not_sent_again() {
        let over = withdrawal(&notice("a"), Timestamp::UNIX_EPOCH);
        let happened = run(NotifyChannel::Ntfy, vec![(0, notice("a")), (1, over), (0, notice("b"))], 1, 60).await;
        let expected = [
            "notify a",
            "[failed a: down; sent again in 3 s]",
            "[dropped a: it was over before it was sent]",
            "notify b",
            "[sent b]",
        ];
        assert_eq!(happened, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sent_notice_is_withdrawn() {
        let over = withdrawal(&notice("a"), Timestamp::UNIX_EPOCH);
        let happened = run(NotifyChannel::Desktop, vec![(0, notice("a")), (1, over)], 0, 1).await;
        assert_eq!(happened, ["notify a", "[sent a]", "withdraw a", "[withdrawn a]"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_delivered_is_not_withdrawn() {
        let over = || withdrawal(&notice("a"), Timestamp::UNIX_EPOCH);
        let happened = run(NotifyChannel::Desktop, vec![(0, notice("a")), (1, over())], 1, 1).await;
        assert_eq!(happened, ["notify a", "[failed a: down]"]);
        // The answer of a server may have been lost.
        let happened = run(NotifyChannel::Ntfy, vec![(0, notice("a")), (60, over())], 3, 1).await;
        assert_eq!(happened.last().map(String::as_str), Some("[withdrawn a]"), "{happened:?}");
    }
}
