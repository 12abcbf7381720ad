//! The way from the watches to whoever listens.
//!
//! Signals are hints, so a second one of the same kind for the same token adds nothing while the first is unread. That
//! bounds the queue by the number of watches: it neither grows with a slow reader nor loses anything.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Chosen by whoever asks for a watch; comes back with each signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchToken(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlatformSignal {
    /// The program in this terminal wrote, or read its input. A burst is reported when it begins, then every 100 ms
    /// while it lasts, every 200 ms if it lasts long, and once more at most 300 ms after it ended: whoever looks after
    /// the last signal sees all of it.
    Wrote(WatchToken),
    /// Somebody closed this terminal, or it is gone. If it is really gone the watch has ended; if not, it goes on.
    TerminalGone(WatchToken),
    /// The watched process ended, and with it the watch.
    Exited(WatchToken),
    /// The watched file was opened (where the system tells), written to, touched, replaced or removed. After a removal the watch has ended.
    FileChanged(WatchToken),
    /// An entry of the watched directory came, went or was renamed, or the directory itself went: then the watch ended.
    DirChanged(WatchToken),
    /// Events were lost: look at everything again. All watches go on.
    Overflow,
}

impl PlatformSignal {
    pub fn token(&self) -> Option<WatchToken> {
        match *self {
            Self::Wrote(token)
            | Self::TerminalGone(token)
            | Self::Exited(token)
            | Self::FileChanged(token)
            | Self::DirChanged(token) => Some(token),
            Self::Overflow => None,
        }
    }
}

pub(super) fn channel() -> (SignalSender, PlatformSignals) {
    let shared = Arc::new(SignalChannel::default());
    (SignalSender { shared: shared.clone() }, PlatformSignals { shared })
}

#[derive(Default)]
struct SignalChannel {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    order: VecDeque<PlatformSignal>,
    queued: HashSet<PlatformSignal>,
    closed: bool,
}

impl SignalChannel {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct SignalSender {
    shared: Arc<SignalChannel>,
}

impl SignalSender {
    pub(super) fn send(&self, signal: PlatformSignal) {
        let mut queue = self.shared.queue();
        if !queue.closed && queue.queued.insert(signal) {
            queue.order.push_back(signal);
            self.shared.arrived.notify_one();
        }
    }

    pub(super) fn send_all(&self, tokens: &[WatchToken], signal: fn(WatchToken) -> PlatformSignal) {
        for &token in tokens {
            self.send(signal(token));
        }
    }

    /// Takes back what was not received yet.
    pub(super) fn discard(&self, token: WatchToken) {
        let mut queue = self.shared.queue();
        queue.order.retain(|signal| signal.token() != Some(token));
        queue.queued.retain(|signal| signal.token() != Some(token));
    }

    pub(super) fn close(&self) {
        self.shared.queue().closed = true;
        self.shared.arrived.notify_one();
    }
}

/// The receiving end. One reader; waiting for a signal may be cancelled at any time without losing one.
pub struct PlatformSignals {
    shared: Arc<SignalChannel>,
}

impl PlatformSignals {
    /// The next signal; `None` when the watcher is gone and all its signals were read.
    pub async fn recv(&mut self) -> Option<PlatformSignal> {
        loop {
            if let Some(signal) = self.try_recv() {
                return Some(signal);
            }
            if self.shared.queue().closed {
                return None;
            }
            self.shared.arrived.notified().await;
        }
    }

    pub fn try_recv(&mut self) -> Option<PlatformSignal> {
        let mut queue = self.shared.queue();
        let signal = queue.order.pop_front()?;
        queue.queued.remove(&signal);
        Some(signal)
    }
}

impl Drop for PlatformSignals {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.closed = true;
        queue.order.clear();
        queue.queued.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_is_heard_once_and_in_order() {
        let (sender, mut signals) = channel();
        for signal in [
            PlatformSignal::Wrote(WatchToken(1)),
            PlatformSignal::Overflow,
            PlatformSignal::Exited(WatchToken(1)),
            PlatformSignal::Wrote(WatchToken(1)),
        ] {
            sender.send(signal);
        }
        let heard: Vec<_> = std::iter::from_fn(|| signals.try_recv()).collect();
        assert_eq!(
            heard,
            [PlatformSignal::Wrote(WatchToken(1)), PlatformSignal::Overflow, PlatformSignal::Exited(WatchToken(1))]
        );
        sender.send(PlatformSignal::Wrote(WatchToken(1)));
        assert_eq!(signals.try_recv(), Some(PlatformSignal::Wrote(WatchToken(1))));
    }

    #[test]
    fn what_was_discarded_is_not_heard() {
        let (sender, mut signals) = channel();
        sender.send(PlatformSignal::Wrote(WatchToken(1)));
        sender.send(PlatformSignal::Wrote(WatchToken(2)));
        sender.discard(WatchToken(1));
        assert_eq!(signals.try_recv(), Some(PlatformSignal::Wrote(WatchToken(2))));
        assert_eq!(signals.try_recv(), None);
    }

    #[tokio::test]
    async fn a_closed_channel_is_read_to_its_end() {
        let (sender, mut signals) = channel();
        sender.send(PlatformSignal::Overflow);
        sender.close();
        assert_eq!(signals.recv().await, Some(PlatformSignal::Overflow));
        assert_eq!(signals.recv().await, None);
    }
}
