//! The way from the watches to whoever listens.
//!
//! Signals are hints, so a second one of the same kind for the same token adds nothing while the first is unread. That
//! bounds the queue by the number of watches: it neither grows with a slow reader nor loses anything.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Chosen by whoever asks for a watch; comes back with each signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The program in this terminal wrote, or read its input. A burst is reported when it begins, then every 100 ms
    /// while it lasts, every 200 ms if it lasts long, and once more at most 300 ms after it ended: whoever looks after
    /// the last signal sees all of it.
    Wrote(Token),
    /// Somebody closed this terminal, or it is gone. If it is really gone the watch has ended; if not, it goes on.
    TerminalGone(Token),
    /// The watched process ended, and with it the watch.
    Exited(Token),
    /// The watched file was opened (where the system tells), written to, touched, replaced or removed. After a removal the watch has ended.
    FileGrew(Token),
    /// An entry of the watched directory came, went or was renamed, or the directory itself went: then the watch ended.
    DirChanged(Token),
    /// Events were lost: look at everything again. All watches go on.
    Overflow,
}

impl Signal {
    pub fn token(&self) -> Option<Token> {
        match *self {
            Self::Wrote(token)
            | Self::TerminalGone(token)
            | Self::Exited(token)
            | Self::FileGrew(token)
            | Self::DirChanged(token) => Some(token),
            Self::Overflow => None,
        }
    }
}

pub(super) fn channel() -> (Sender, Signals) {
    let shared = Arc::new(Shared::default());
    (Sender { shared: shared.clone() }, Signals { shared })
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    order: VecDeque<Signal>,
    waiting: HashSet<Signal>,
    closed: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct Sender {
    shared: Arc<Shared>,
}

impl Sender {
    pub(super) fn send(&self, signal: Signal) {
        let mut queue = self.shared.queue();
        if !queue.closed && queue.waiting.insert(signal) {
            queue.order.push_back(signal);
            self.shared.arrived.notify_one();
        }
    }

    pub(super) fn send_all(&self, tokens: &[Token], signal: fn(Token) -> Signal) {
        for &token in tokens {
            self.send(signal(token));
        }
    }

    /// Takes back what was not received yet.
    pub(super) fn discard(&self, token: Token) {
        let mut queue = self.shared.queue();
        queue.order.retain(|signal| signal.token() != Some(token));
        queue.waiting.retain(|signal| signal.token() != Some(token));
    }

    pub(super) fn close(&self) {
        self.shared.queue().closed = true;
        self.shared.arrived.notify_one();
    }
}

/// The receiving end. One reader; waiting for a signal may be cancelled at any time without losing one.
pub struct Signals {
    shared: Arc<Shared>,
}

impl Signals {
    /// The next signal; `None` when the watcher is gone and all its signals were read.
    pub async fn recv(&mut self) -> Option<Signal> {
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

    pub fn try_recv(&mut self) -> Option<Signal> {
        let mut queue = self.shared.queue();
        let signal = queue.order.pop_front()?;
        queue.waiting.remove(&signal);
        Some(signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.closed = true;
        queue.order.clear();
        queue.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_twice_is_heard_once_and_in_order() {
        let (sender, mut signals) = channel();
        for signal in [Signal::Wrote(Token(1)), Signal::Overflow, Signal::Exited(Token(1)), Signal::Wrote(Token(1))] {
            sender.send(signal);
        }
        let heard: Vec<_> = std::iter::from_fn(|| signals.try_recv()).collect();
        assert_eq!(heard, [Signal::Wrote(Token(1)), Signal::Overflow, Signal::Exited(Token(1))]);
        sender.send(Signal::Wrote(Token(1)));
        assert_eq!(signals.try_recv(), Some(Signal::Wrote(Token(1))));
    }

    #[test]
    fn what_was_discarded_is_not_heard() {
        let (sender, mut signals) = channel();
        sender.send(Signal::Wrote(Token(1)));
        sender.send(Signal::Wrote(Token(2)));
        sender.discard(Token(1));
        assert_eq!(signals.try_recv(), Some(Signal::Wrote(Token(2))));
        assert_eq!(signals.try_recv(), None);
    }

    #[tokio::test]
    async fn a_closed_channel_is_read_to_its_end() {
        let (sender, mut signals) = channel();
        sender.send(Signal::Overflow);
        sender.close();
        assert_eq!(signals.recv().await, Some(Signal::Overflow));
        assert_eq!(signals.recv().await, None);
    }
}
