//! The queue that carries signals from the watches to their reader.
//!
//! Signals are hints, so a signal that is already queued is not queued again. The queue therefore cannot become longer
//! than the number of watches allows, even if the reader is slow. No signal is lost.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Identifies a watch. The caller chooses the token, and each signal contains the token of its watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchToken(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlatformSignal {
    /// The program in this terminal wrote output or read input. The watch sends this signal when a burst begins, then
    /// every 100 ms (later every 200 ms), and once more within 300 ms after the burst has ended. A reader that captures
    /// the pane after each signal sees all of the output.
    Wrote(WatchToken),
    /// A process has closed this terminal, or the terminal is gone. If the terminal is gone, the watch has ended.
    /// Otherwise the watch continues.
    TerminalGone(WatchToken),
    /// The process has ended, and so has its watch.
    Exited(WatchToken),
    /// The file was written, touched, replaced or removed, or opened if the system reports that. If the file was
    /// removed, the watch has ended.
    FileChanged(WatchToken),
    /// An entry of the directory was added, removed or renamed, or the directory itself was removed. If the directory
    /// was removed, the watch has ended.
    DirChanged(WatchToken),
    /// Some events were lost, so the receiver must check all watched objects again. All watches continue.
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
    let channel = Arc::new(SignalChannel::default());
    (SignalSender { channel: channel.clone() }, PlatformSignals { channel })
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
    channel: Arc<SignalChannel>,
}

impl SignalSender {
    pub(super) fn send(&self, signal: PlatformSignal) {
        let mut queue = self.channel.queue();
        if !queue.closed && queue.queued.insert(signal) {
            queue.order.push_back(signal);
            self.channel.arrived.notify_one();
        }
    }

    pub(super) fn send_all(&self, tokens: &[WatchToken], signal: fn(WatchToken) -> PlatformSignal) {
        for &token in tokens {
            self.send(signal(token));
        }
    }

    /// Removes all queued signals of this token.
    pub(super) fn discard(&self, token: WatchToken) {
        let mut queue = self.channel.queue();
        queue.order.retain(|signal| signal.token() != Some(token));
        queue.queued.retain(|signal| signal.token() != Some(token));
    }

    pub(super) fn close(&self) {
        self.channel.queue().closed = true;
        self.channel.arrived.notify_one();
    }
}

/// The receiving end of the queue. A queue has only one receiver. Cancelling `recv` loses no signal.
pub struct PlatformSignals {
    channel: Arc<SignalChannel>,
}

impl PlatformSignals {
    /// Returns the next signal. `None` if the watcher has ended and all signals have been read.
    pub async fn recv(&mut self) -> Option<PlatformSignal> {
        loop {
            if let Some(signal) = self.try_recv() {
                return Some(signal);
            }
            if self.channel.queue().closed {
                return None;
            }
            self.channel.arrived.notified().await;
        }
    }

    pub fn try_recv(&mut self) -> Option<PlatformSignal> {
        let mut queue = self.channel.queue();
        let signal = queue.order.pop_front()?;
        queue.queued.remove(&signal);
        Some(signal)
    }
}

impl Drop for PlatformSignals {
    fn drop(&mut self) {
        let mut queue = self.channel.queue();
        queue.closed = true;
        queue.order.clear();
        queue.queued.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_signals_are_deduplicated_in_order() {
        let (sender, mut signals) = channel();
        for signal in [
            PlatformSignal::Wrote(WatchToken(1)),
            PlatformSignal::Overflow,
            PlatformSignal::Exited(WatchToken(1)),
            PlatformSignal::Wrote(WatchToken(1)),
        ] {
            sender.send(signal);
        }
        let received: Vec<_> = std::iter::from_fn(|| signals.try_recv()).collect();
        assert_eq!(
            received,
            [PlatformSignal::Wrote(WatchToken(1)), PlatformSignal::Overflow, PlatformSignal::Exited(WatchToken(1))]
        );
        sender.send(PlatformSignal::Wrote(WatchToken(1)));
        assert_eq!(signals.try_recv(), Some(PlatformSignal::Wrote(WatchToken(1))));
    }

    #[test]
    fn discarded_signals_are_not_received() {
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
