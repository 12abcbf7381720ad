//! Terminals have one-shot watches: an event disarms the watch, and a timer arms it again. Watching a program that
//! writes all the time therefore costs no more than watching one that writes ten times a second, and does not slow the
//! program down.
//!
//! The watch of a quiet terminal is armed on the immediate queue, which wakes the watcher. The watch of a terminal that
//! just wrote is armed on the deferred queue, which is read only when the timer fires. The number of wake-ups therefore
//! does not grow with the number of busy terminals. One round lasts until the timer fires. The watch returns to the
//! immediate queue after one round without output, or after a few such rounds if the terminal was busy for longer.
//!
//! The watcher does not see output while a watch is disarmed. After it arms the watch again, it therefore sends one
//! more [`PlatformSignal::Wrote`]. A reader that captures the pane after this signal sees all earlier output, and later
//! output causes an event.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{ReadFlags, WatchFlags};

use super::inotify::{Inotify, InotifyEvent, Wd};
use crate::platform::signals::{PlatformSignal, SignalSender, WatchToken};
use crate::platform::tty::TerminalIdentity;

/// A terminal sends at most one [`PlatformSignal::Wrote`] in this time.
pub(super) const REARM_INTERVAL: Duration = Duration::from_millis(100);

/// Replaces [`REARM_INTERVAL`] for a terminal whose busy score is at its maximum.
pub(super) const BUSY_REARM_INTERVAL: Duration = Duration::from_millis(200);

/// The times of timers are rounded up to a multiple of this step, so that several busy terminals share one wake-up.
const TIMER_STEP: Duration = Duration::from_millis(50);

/// The maximum busy score of a terminal. A round with output raises the score by one, and a round without output lowers
/// it by one. At zero, the watch of the terminal returns to the immediate queue.
pub(super) const MAX_BUSY_SCORE: u8 = 3;

/// How long to wait before trying again if the kernel refuses to arm a watch.
const RETRY_DELAY: Duration = Duration::from_secs(1);

const OUTPUT: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ACCESS);
const END: WatchFlags = WatchFlags::CLOSE_WRITE.union(WatchFlags::DELETE_SELF).union(WatchFlags::ONESHOT);

type TerminalId = u64;

struct WatchedTerminal {
    path: PathBuf,
    terminal: TerminalIdentity,
    tokens: Vec<WatchToken>,
    immediate_wd: Option<Wd>,
    deferred_wd: Option<Wd>,
    /// When the timer fires. `None` while the watch is armed on the immediate queue.
    due: Option<Instant>,
    /// Whether there was output since the timer last fired.
    wrote: bool,
    /// Raised by each round with output and lowered by each round without. From 0 to [`MAX_BUSY_SCORE`].
    busy_score: u8,
    last_wrote: Option<Instant>,
}

pub(super) struct TerminalWatches {
    report_output: bool,
    deferred: Inotify,
    watched: HashMap<TerminalId, WatchedTerminal>,
    by_immediate_wd: HashMap<Wd, TerminalId>,
    by_deferred_wd: HashMap<Wd, TerminalId>,
    by_token: HashMap<WatchToken, TerminalId>,
    due: BTreeSet<(Instant, TerminalId)>,
    next_id: TerminalId,
    epoch: Instant,
}

impl TerminalWatches {
    pub(super) fn new(report_output: bool, epoch: Instant) -> io::Result<Self> {
        Ok(Self {
            report_output,
            deferred: Inotify::new()?,
            watched: HashMap::new(),
            by_immediate_wd: HashMap::new(),
            by_deferred_wd: HashMap::new(),
            by_token: HashMap::new(),
            due: BTreeSet::new(),
            next_id: 0,
            epoch,
        })
    }

    pub(super) fn watch(&mut self, inotify: &Inotify, token: WatchToken, path: &Path) -> io::Result<()> {
        let terminal = TerminalIdentity::at(path)?;
        let known = self.watched.iter().find(|(_, watched)| watched.terminal.is_same(&terminal)).map(|(&id, _)| id);
        if known.is_some() && known == self.by_token.get(&token).copied() {
            return Ok(());
        }
        self.unwatch(inotify, token);
        let id = match known {
            Some(id) => id,
            None => self.watch_new(inotify, terminal, path)?,
        };
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.tokens.push(token);
            self.by_token.insert(token, id);
        }
        Ok(())
    }

    fn watch_new(&mut self, inotify: &Inotify, terminal: TerminalIdentity, path: &Path) -> io::Result<TerminalId> {
        let wd = inotify.add(path, self.flags())?;
        if let Some(&id) = self.by_immediate_wd.get(&wd) {
            return Ok(id);
        }
        let id = self.next_id;
        self.next_id += 1;
        let watched = WatchedTerminal {
            path: path.into(),
            terminal,
            tokens: Vec::new(),
            immediate_wd: Some(wd),
            deferred_wd: None,
            due: None,
            wrote: false,
            busy_score: 0,
            last_wrote: None,
        };
        self.watched.insert(id, watched);
        self.by_immediate_wd.insert(wd, id);
        Ok(id)
    }

    pub(super) fn unwatch(&mut self, inotify: &Inotify, token: WatchToken) {
        let Some(id) = self.by_token.remove(&token) else { return };
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.tokens.retain(|&other| other != token);
        if watched.tokens.is_empty() {
            self.drop_watch(inotify, id);
        }
    }

    fn drop_watch(&mut self, inotify: &Inotify, id: TerminalId) -> Option<WatchedTerminal> {
        self.disarm_deferred(id);
        let watched = self.watched.remove(&id)?;
        if let Some(wd) = watched.immediate_wd {
            self.by_immediate_wd.remove(&wd);
            inotify.remove(wd);
        }
        if let Some(due) = watched.due {
            self.due.remove(&(due, id));
        }
        for token in &watched.tokens {
            self.by_token.remove(token);
        }
        Some(watched)
    }

    /// Handles an event of a terminal. Ignores other events: those of removed watches, and those of files and
    /// directories.
    pub(super) fn on_event(&mut self, inotify: &Inotify, event: InotifyEvent, now: Instant, signals: &SignalSender) {
        let Some(id) = self.by_immediate_wd.remove(&event.wd) else { return };
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.immediate_wd = None;
        }
        if is_end(event) {
            self.end_watch(inotify, id, signals);
            return;
        }
        // If arming fails, the deferred queue reports no output, so the terminal returns to the immediate queue after
        // this round.
        let _ = self.arm(inotify, id, true);
        let Some(watched) = self.watched.get_mut(&id) else { return };
        let mut due = now + REARM_INTERVAL;
        if event.flags.contains(ReadFlags::CLOSE_WRITE) {
            signals.send_all(&watched.tokens, PlatformSignal::TerminalGone);
        } else if event.flags.intersects(ReadFlags::MODIFY | ReadFlags::ACCESS) {
            match watched.last_wrote.map(|last| last + REARM_INTERVAL).filter(|&free| now < free) {
                // Too soon after the last signal: the next round reports the output.
                Some(free) => (due, watched.wrote) = (free, true),
                None => watched.send_output_signal(now, signals),
            }
        }
        self.schedule(id, due);
    }

    /// When [`rearm_due`](Self::rearm_due) is due; `None` while all terminals are quiet.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|&(due, _)| due)
    }

    pub(super) fn rearm_due(&mut self, inotify: &Inotify, now: Instant, signals: &SignalSender) {
        self.read_deferred(inotify, signals);
        while let Some(&(due, id)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            // A slightly late timer counts as on time, otherwise each round would grow by one step.
            let on_time = if now - due < TIMER_STEP { due } else { now };
            self.rearm(inotify, id, on_time, signals);
        }
    }

    fn read_deferred(&mut self, inotify: &Inotify, signals: &SignalSender) {
        while let Ok(events) = self.deferred.read() {
            for event in events {
                self.on_deferred_event(inotify, event, signals);
            }
        }
    }

    fn on_deferred_event(&mut self, inotify: &Inotify, event: InotifyEvent, signals: &SignalSender) {
        if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.by_deferred_wd.clear();
            for watched in self.watched.values_mut().filter(|watched| watched.due.is_some()) {
                (watched.deferred_wd, watched.wrote) = (None, true);
            }
            return;
        }
        let Some(id) = self.by_deferred_wd.remove(&event.wd) else { return };
        let Some(watched) = self.watched.get_mut(&id) else { return };
        watched.deferred_wd = None;
        watched.wrote = true;
        if is_end(event) {
            self.end_watch(inotify, id, signals);
        } else if event.flags.contains(ReadFlags::CLOSE_WRITE) {
            signals.send_all(&watched.tokens, PlatformSignal::TerminalGone);
        }
    }

    /// Arms all watches on the immediate queue again after events were lost. Each lost event has disarmed one watch,
    /// but it is unknown which watches these are.
    pub(super) fn rearm_all(&mut self, inotify: &Inotify, now: Instant, signals: &SignalSender) {
        for id in std::mem::take(&mut self.by_immediate_wd).into_values() {
            self.rearm(inotify, id, now, signals);
        }
    }

    fn rearm(&mut self, inotify: &Inotify, id: TerminalId, now: Instant, signals: &SignalSender) {
        let Some(watched) = self.watched.get_mut(&id) else { return };
        let wrote = watched.wrote;
        let is_busy = watched.end_round();
        (watched.immediate_wd, watched.due) = (None, None);
        let armed = self.arm(inotify, id, is_busy);
        let Some(watched) = self.watched.get_mut(&id) else { return };
        // Check the identity after arming: if it still matches, the watch is on the right terminal.
        if !TerminalIdentity::at(&watched.path).is_ok_and(|terminal| terminal.is_same(&watched.terminal)) {
            self.end_watch(inotify, id, signals);
            return;
        }
        // The watch of a terminal that stayed on the deferred queue was armed all the time. If there was no event, the
        // terminal wrote nothing, so no signal is needed.
        if self.report_output && (wrote || !is_busy) {
            watched.send_output_signal(now, signals);
        }
        match armed {
            Ok(()) if is_busy => {
                let round = if watched.busy_score == MAX_BUSY_SCORE { BUSY_REARM_INTERVAL } else { REARM_INTERVAL };
                self.schedule(id, now + round);
            }
            Ok(()) => self.disarm_deferred(id),
            Err(error) => {
                tracing::warn!(%error, tty = %watched.path.display(), "cannot watch a terminal again; will retry");
                self.schedule(id, now + RETRY_DELAY);
            }
        }
    }

    fn arm(&mut self, inotify: &Inotify, id: TerminalId, patiently: bool) -> io::Result<()> {
        let flags = self.flags();
        let Some(watched) = self.watched.get_mut(&id) else { return Ok(()) };
        let (queue, by_wd, slot) = if patiently {
            (&self.deferred, &mut self.by_deferred_wd, &mut watched.deferred_wd)
        } else {
            (inotify, &mut self.by_immediate_wd, &mut watched.immediate_wd)
        };
        let wd = queue.add(&watched.path, flags)?;
        // If the path names another terminal by now, that other terminal may already have this watch descriptor.
        if *by_wd.entry(wd).or_insert(id) == id {
            *slot = Some(wd);
        }
        Ok(())
    }

    fn disarm_deferred(&mut self, id: TerminalId) {
        if let Some(wd) = self.watched.get_mut(&id).and_then(|watched| watched.deferred_wd.take()) {
            self.by_deferred_wd.remove(&wd);
            self.deferred.remove(wd);
        }
    }

    fn schedule(&mut self, id: TerminalId, at: Instant) {
        let since_step = at.saturating_duration_since(self.epoch).as_nanos() % TIMER_STEP.as_nanos();
        let due = match u64::try_from(since_step) {
            Ok(nanos) if nanos > 0 => at + TIMER_STEP - Duration::from_nanos(nanos),
            _ => at,
        };
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.due = Some(due);
            self.due.insert((due, id));
        }
    }

    fn end_watch(&mut self, inotify: &Inotify, id: TerminalId, signals: &SignalSender) {
        if let Some(watched) = self.drop_watch(inotify, id) {
            signals.send_all(&watched.tokens, PlatformSignal::TerminalGone);
        }
    }

    fn flags(&self) -> WatchFlags {
        if self.report_output { OUTPUT | END } else { END }
    }
}

impl WatchedTerminal {
    /// Ends a round and updates the busy score. Returns whether more output is expected soon.
    fn end_round(&mut self) -> bool {
        self.busy_score = match std::mem::take(&mut self.wrote) {
            true => (self.busy_score + 1).min(MAX_BUSY_SCORE),
            false => self.busy_score.saturating_sub(1),
        };
        self.busy_score > 0
    }

    fn send_output_signal(&mut self, now: Instant, signals: &SignalSender) {
        self.last_wrote = Some(now);
        signals.send_all(&self.tokens, PlatformSignal::Wrote);
    }
}

fn is_end(event: InotifyEvent) -> bool {
    event.flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT)
}
