//! Follows the published view, wakes the state machine when something is due, and carries out its effects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agtmux_api::config::NotifyConfig;
use agtmux_api::wire::{
    ListScope, Notice, NotifyLogEvent, NotifyLogItem, PaneIdentity, PaneItem, WatchEventKind, WatchItem,
};
use agtmux_core::notify::{HeldReason, NotifyChannel, NotifyEffect, NotifyMachine};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use uuid::Uuid;

use super::agents::AgentsInPanes;
use super::channels::ChannelWorkers;
use super::journal::Journal;
use super::message::{NoticeWriter, withdrawal};
use super::open_notices::OpenNoticeFile;
use super::viewers;
use crate::clock::Clock;
use crate::event_log::{EventLog, EventsSince};
use crate::observe::Discovery;

/// The longest sleep while a notice is pending. A machine that slept, or whose clock was set, is noticed then.
const MAX_SLEEP: Duration = Duration::from_secs(60);

pub(super) struct NoticeFollower {
    pub(super) config: NotifyConfig,
    pub(super) event_log: Arc<EventLog>,
    pub(super) discovery: Discovery,
    pub(super) clock: Clock,
    pub(super) journal: Arc<Journal>,
    pub(super) workers: ChannelWorkers,
    pub(super) open_notices: OpenNoticeFile,
}

/// The answer to the question whether a person views the pane of an agent.
struct Viewed {
    runtime: String,
    notice: String,
    last_key: Option<Timestamp>,
}

/// What the follower knows.
struct FollowState {
    machine: NotifyMachine,
    agents: AgentsInPanes,
    writer: NoticeWriter,
    /// The last text of each open notice. A withdrawal repeats it.
    sent: BTreeMap<String, Notice>,
    viewed: mpsc::UnboundedSender<Viewed>,
    clock_steps: SignedDuration,
    seq: u64,
}

impl NoticeFollower {
    /// Follows the agents until the daemon stops.
    pub(super) async fn run(&self, mut stopping: watch::Receiver<bool>) {
        let mut latest = self.event_log.subscribe();
        let (viewed, mut views) = mpsc::unbounded_channel();
        let mut state = self.initial_state(viewed);
        loop {
            self.settle(&mut state);
            let due = state.machine.next_due(self.clock.now()).map(|at| self.clock.instant(at));
            let wake_at =
                due.map(|due| tokio::time::Instant::from_std(due).min(tokio::time::Instant::now() + MAX_SLEEP));
            tokio::select! {
                changed = latest.changed() => if changed.is_err() { return },
                Some(view) = views.recv() => {
                    let now = self.now(&mut state);
                    state.machine.looked(&view.runtime, &view.notice, view.last_key, now);
                }
                () = self.open_notices.desktop_changed() => self.save(&mut state),
                () = sleep_until(wake_at.unwrap_or_else(tokio::time::Instant::now)), if wake_at.is_some() => {}
                _ = stopping.wait_for(|stop| *stop) => return,
            }
            self.read_changes(&mut state);
        }
    }

    /// The agents that exist already. Nothing is told about what they do now.
    fn initial_state(&self, viewed: mpsc::UnboundedSender<Viewed>) -> FollowState {
        let (now, zone) = (self.clock.now(), TimeZone::system());
        let in_view = SignedDuration::try_from(self.config.in_view.0).unwrap_or(SignedDuration::ZERO);
        let mut machine = NotifyMachine::new(self.config.rules(), zone.clone(), in_view, now);
        machine.see_target(agtmux_core::ids::TargetName::LOCAL, now);
        let (restored, texts) = self.open_notices.restored();
        machine.restore(restored);
        let (panes, seq) = self.all_panes();
        let mut state = FollowState {
            machine,
            agents: AgentsInPanes::default(),
            writer: NoticeWriter { zone },
            sent: texts,
            viewed,
            clock_steps: self.clock.total_step(),
            seq,
        };
        for pane in panes {
            state.update(&pane.identity.clone(), Some(pane), now);
        }
        state
    }

    fn all_panes(&self) -> (Vec<PaneItem>, u64) {
        let log = self.event_log.read();
        let panes = log.view.items(ListScope::Panes).filter_map(|item| match item {
            WatchItem::Pane(pane) => Some(*pane),
            _ => None,
        });
        (panes.collect(), log.seq())
    }

    fn read_changes(&self, state: &mut FollowState) {
        let now = self.now(state);
        let (events, seq) = {
            let log = self.event_log.read();
            (log.since(state.seq), log.seq())
        };
        match events {
            EventsSince::Events(events) => {
                state.seq = seq;
                for published in events {
                    if let Some(WatchItem::Pane(pane)) = &published.event.item {
                        let is_there = published.event.kind != WatchEventKind::Remove;
                        state.update(&pane.identity, is_there.then(|| PaneItem::clone(pane)), now);
                    }
                }
            }
            EventsSince::TooOld => {
                let (panes, seq) = self.all_panes();
                state.seq = seq;
                state.replace_all(panes, now);
            }
        }
    }

    /// The current time. Moves the times of the state machine if the clock was set.
    fn now(&self, state: &mut FollowState) -> Timestamp {
        let (now, steps) = (self.clock.now(), self.clock.total_step());
        let step = steps - std::mem::replace(&mut state.clock_steps, steps);
        if !step.is_zero() {
            state.machine.shift(step);
        }
        now
    }

    /// Does everything that is due.
    fn settle(&self, state: &mut FollowState) {
        let now = self.now(state);
        state.machine.advance(now);
        let effects = state.machine.take_effects();
        let has_sent = effects.iter().any(|effect| !matches!(effect, NotifyEffect::Look { .. }));
        for effect in effects {
            self.carry_out(state, effect, now);
        }
        if has_sent {
            self.save(state);
        }
    }

    fn save(&self, state: &mut FollowState) {
        let open = state.machine.open_notices();
        state.sent.retain(|notice, _| open.iter().any(|open| open.notice == *notice));
        self.open_notices.save(open, &state.sent);
    }

    fn carry_out(&self, state: &mut FollowState, effect: NotifyEffect, now: Timestamp) {
        match effect {
            NotifyEffect::Look { runtime, notice } => self.look(state, runtime, notice),
            NotifyEffect::Send { channel, runtime, notice, escalated } => {
                let Some(pane) = state.agents.pane(&runtime) else { return };
                let text = Notice { escalated, ..state.writer.about(pane, &notice, now) };
                state.sent.insert(notice, text.clone());
                self.queue(channel, text, now);
            }
            NotifyEffect::Withdraw { channel, notice, .. } => {
                if let Some(sent) = state.sent.get(&notice) {
                    self.queue(channel, withdrawal(sent, now), now);
                }
            }
            NotifyEffect::Digest { channel, notices } => {
                let panes: Vec<&PaneItem> =
                    notices.iter().filter_map(|(runtime, _)| state.agents.pane(runtime)).collect();
                if !panes.is_empty() {
                    let notice_id = Uuid::new_v4().simple().to_string();
                    self.queue(channel, state.writer.digest(&panes, &notice_id, now), now);
                }
            }
            NotifyEffect::Hold { runtime, notice, reason } => {
                let before = state.agents.before(&runtime).filter(|_| reason == HeldReason::TooShort);
                let Some(pane) = before.or_else(|| state.agents.pane(&runtime)) else { return };
                let text = state.writer.about(pane, &notice, now);
                self.record(None, NotifyLogEvent::Held, describe(reason), text, now);
            }
        }
    }

    /// Looks in the background, because a tmux server may take long to answer.
    fn look(&self, state: &FollowState, runtime: String, notice: String) {
        let pane = state.agents.pane(&runtime).map(|pane| pane.identity.clone());
        let (discovery, viewed) = (self.discovery.clone(), state.viewed.clone());
        tokio::spawn(async move {
            let last_key = match &pane {
                Some(pane) => viewers::last_key(&discovery, pane).await,
                None => None,
            };
            let _ = viewed.send(Viewed { runtime, notice, last_key });
        });
    }

    fn queue(&self, channel: NotifyChannel, notice: Notice, now: Timestamp) {
        if let Err(dropped) = self.workers.queue(channel, notice) {
            let reason = "too many notices wait for the channel";
            self.record(Some(channel), NotifyLogEvent::Dropped, reason, *dropped, now);
        }
    }

    fn record(
        &self,
        channel: Option<NotifyChannel>,
        event: NotifyLogEvent,
        reason: &str,
        notice: Notice,
        at: Timestamp,
    ) {
        self.journal.add(NotifyLogItem { at, event, channel, reason: Some(reason.into()), notice });
    }
}

impl FollowState {
    fn update(&mut self, identity: &PaneIdentity, pane: Option<PaneItem>, now: Timestamp) {
        self.machine.see_target(&identity.target, now);
        let changed = self.agents.update(identity, pane);
        if let Some(runtime) = changed.gone {
            self.machine.gone(&runtime);
        }
        if let Some(runtime) = changed.seen
            && let Some(sight) = self.agents.sight(&runtime)
        {
            self.machine.see(&runtime, &sight, now);
        }
    }

    /// Compares all panes with the known ones, because events were missed.
    fn replace_all(&mut self, panes: Vec<PaneItem>, now: Timestamp) {
        let removed: Vec<PaneIdentity> = self
            .agents
            .identities()
            .filter(|known| !panes.iter().any(|pane| pane.identity == **known))
            .cloned()
            .collect();
        for identity in removed {
            self.update(&identity, None, now);
        }
        for pane in panes {
            self.update(&pane.identity.clone(), Some(pane), now);
        }
    }
}

fn describe(reason: HeldReason) -> &'static str {
    match reason {
        HeldReason::ExistedBefore => "it was so when the daemon began to watch",
        HeldReason::TooShort => "it was over before the dwell time",
        HeldReason::Cooldown => "the last notice about this agent is too recent; held until the cooldown ends",
        HeldReason::QuietHours => "quiet hours; held for the digest",
        HeldReason::InView => "you use a tmux client that shows the pane",
    }
}
