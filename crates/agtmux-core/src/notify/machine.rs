//! The state machine of notifications.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::episode::{AgentSight, Continuation, Episode, OpenNotice, Phase, RuleProgress, Step};
use super::rule::{NotifyChannel, NotifyRule};
use crate::state::State;
use crate::wire_enum::wire_enum;

/// How long after the first sight of a host its agents settle. What they do within this time has begun before agtmux
/// looked, so no notice is sent about it.
const SETTLE_TIME: SignedDuration = SignedDuration::from_secs(3);

/// How long after the start an agent that an open notice names may take to appear.
const RESTORE_TIME: SignedDuration = SignedDuration::from_secs(60);

wire_enum!(
    /// Why a notice was not sent, or not yet.
    HeldReason {
        /// The state existed when the daemon began to watch the host.
        ExistedBefore => "existed_before",
        /// The state did not last for the dwell time.
        TooShort => "too_short",
        /// The last notice about this agent was too recent.
        Cooldown => "cooldown",
        /// The notice waits for the end of the quiet hours.
        QuietHours => "quiet_hours",
        /// A person uses a client that shows the pane.
        InView => "in_view",
    }
);

/// What the daemon must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotifyEffect {
    /// Find out when a person last used a client that shows the agent's pane, and call [`NotifyMachine::looked`].
    Look {
        runtime: String,
        notice: String,
    },
    Send {
        channel: NotifyChannel,
        runtime: String,
        notice: String,
        escalated: bool,
    },
    Withdraw {
        channel: NotifyChannel,
        runtime: String,
        notice: String,
    },
    /// Send one notice about several agents, each given as runtime and notice.
    Digest {
        channel: NotifyChannel,
        notices: Vec<(String, String)>,
    },
    /// Record why a notice is not sent, or not yet.
    Hold {
        runtime: String,
        notice: String,
        reason: HeldReason,
    },
}

#[derive(Debug)]
pub struct NotifyMachine {
    rules: Vec<NotifyRule>,
    zone: TimeZone,
    in_view: SignedDuration,
    started: Timestamp,
    /// When each host was first seen.
    targets: BTreeMap<String, Timestamp>,
    agents: BTreeMap<String, NotifiedAgent>,
    effects: Vec<NotifyEffect>,
}

#[derive(Debug, Default)]
struct NotifiedAgent {
    /// False for an agent of which only an open notice is known.
    is_seen: bool,
    episode: Option<Episode>,
    /// When each rule last sent a notice about this agent.
    last_sent: BTreeMap<usize, Timestamp>,
}

impl NotifyMachine {
    /// `in_view` is how long after a key press a person counts as present.
    pub fn new(rules: Vec<NotifyRule>, zone: TimeZone, in_view: SignedDuration, now: Timestamp) -> Self {
        let (targets, agents, effects) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { rules, zone, in_view, started: now, targets, agents, effects }
    }

    /// Continues with the notices that an earlier daemon has sent.
    pub fn restore(&mut self, open: impl IntoIterator<Item = OpenNotice>) {
        for notice in open {
            let agent = self.agents.entry(notice.runtime.clone()).or_default();
            agent.episode = Some(Episode::restored(notice));
        }
    }

    /// The notices that were sent and whose episode lasts.
    pub fn open_notices(&self) -> Vec<OpenNotice> {
        let open = |(runtime, agent): (&String, &NotifiedAgent)| {
            let Episode { notice, state, fingerprint, began, sent, in_digest, sent_at, .. } = agent.episode.clone()?;
            let (runtime, channels) = (runtime.clone(), &sent - &in_digest);
            Some(OpenNotice { notice, runtime, state, fingerprint, began, sent_at: sent_at?, channels })
        };
        self.agents.iter().filter_map(open).collect()
    }

    pub fn take_effects(&mut self) -> Vec<NotifyEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Notes that this host is watched.
    pub fn see_target(&mut self, target: &str, now: Timestamp) {
        if !self.targets.contains_key(target) {
            self.targets.insert(target.to_owned(), now);
        }
    }

    pub fn see(&mut self, runtime: &str, sight: &AgentSight, now: Timestamp) {
        self.see_target(&sight.target, now);
        let agent = self.agents.entry(runtime.to_owned()).or_default();
        agent.is_seen = true;
        match agent.episode.as_mut().map(|episode| episode.continuation(sight)) {
            Some(Continuation::Continues) => self.continue_episode(runtime, sight, now),
            Some(Continuation::Suspends) => {
                if let Some(episode) = agent.episode.as_mut() {
                    episode.suspended = true;
                }
            }
            Some(Continuation::Ends) => {
                self.end_episode(runtime);
                self.begin_episode(runtime, sight, now);
            }
            None => self.begin_episode(runtime, sight, now),
        }
    }

    /// The agent has ended, or its pane has closed.
    pub fn gone(&mut self, runtime: &str) {
        self.end_episode(runtime);
        self.agents.remove(runtime);
    }

    /// The answer to [`NotifyEffect::Look`]: when a key was last pressed in a client that shows the pane.
    pub fn looked(&mut self, runtime: &str, notice: &str, last_key: Option<Timestamp>, now: Timestamp) {
        let episode = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut());
        let Some(episode) = episode.filter(|episode| episode.notice == notice) else { return };
        let present_until = last_key.filter(|at| *at <= now).and_then(|at| at.checked_add(self.in_view).ok());
        let present_until = present_until.filter(|until| *until > now);
        let suspended = episode.suspended;
        let mut ready = Vec::new();
        for (n, progress) in episode.progress.iter_mut().enumerate().filter(|(_, p)| p.step == Step::Looking) {
            match present_until {
                Some(until) => progress.step = Step::Due(until),
                None if suspended => progress.step = Step::Due(now),
                None => ready.push(n),
            }
        }
        if present_until.is_some() {
            self.hold(runtime, HeldReason::InView);
        }
        for n in ready {
            self.send(runtime, n, now);
        }
    }

    /// Does what is due at this time.
    pub fn advance(&mut self, now: Timestamp) {
        let forgotten = |agent: &NotifiedAgent| !agent.is_seen && now >= later(self.started, RESTORE_TIME);
        let unseen: Vec<String> =
            self.agents.iter().filter(|(_, agent)| forgotten(agent)).map(|(runtime, _)| runtime.clone()).collect();
        unseen.iter().for_each(|runtime| self.gone(runtime));
        let mut digest: BTreeMap<NotifyChannel, Vec<(String, String)>> = BTreeMap::new();
        let due: Vec<String> =
            self.agents.iter().filter(|(_, agent)| agent.is_pending()).map(|(runtime, _)| runtime.clone()).collect();
        for runtime in due {
            self.advance_agent(&runtime, now, &mut digest);
        }
        let digests = digest.into_iter().map(|(channel, notices)| NotifyEffect::Digest { channel, notices });
        self.effects.extend(digests);
    }

    /// When [`Self::advance`] must be called next. `None` if nothing is pending.
    pub fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let of_step = |progress: &RuleProgress| match progress.step {
            Step::Due(at) => Some(at),
            Step::Quiet => Some(self.quiet_until(progress.rule, now).unwrap_or(now)),
            Step::Looking | Step::Done => None,
        };
        let of_agent = |agent: &NotifiedAgent| {
            let episode = agent.episode.as_ref().filter(|episode| !episode.suspended);
            let step = episode.and_then(|episode| episode.progress.iter().filter_map(of_step).min());
            step.into_iter().chain((!agent.is_seen).then(|| later(self.started, RESTORE_TIME))).min()
        };
        self.agents.values().filter_map(of_agent).min()
    }

    /// Moves all times, because the clock was set.
    pub fn shift(&mut self, by: SignedDuration) {
        self.started = later(self.started, by);
        self.targets.values_mut().for_each(|at| *at = later(*at, by));
        for agent in self.agents.values_mut() {
            agent.last_sent.values_mut().for_each(|at| *at = later(*at, by));
            if let Some(episode) = &mut agent.episode {
                episode.shift(by);
            }
        }
    }

    fn quiet_until(&self, rule: usize, now: Timestamp) -> Option<Timestamp> {
        self.rules[rule].quiet_hours.and_then(|hours| hours.end(now, &self.zone))
    }

    fn begin_episode(&mut self, runtime: &str, sight: &AgentSight, now: Timestamp) {
        let matching = |rules: &[NotifyRule]| -> Vec<usize> {
            rules.iter().enumerate().filter(|(_, rule)| rule.matches(sight)).map(|(n, _)| n).collect()
        };
        let rules = if Episode::is_worth_telling(sight) { matching(&self.rules) } else { Vec::new() };
        let settled = self.targets.get(&sight.target).is_some_and(|at| now >= later(*at, SETTLE_TIME));
        let Some(agent) = self.agents.get_mut(runtime) else { return };
        let mut episode = Episode::new(runtime, sight, now);
        let is_told = settled && !rules.is_empty();
        if is_told {
            let progress = |rule: usize| {
                let step = Step::Due(later(now, self.rules[rule].dwell));
                RuleProgress { rule, phase: Phase::First, step }
            };
            episode.progress = rules.iter().copied().map(progress).collect();
        }
        agent.episode = (sight.state != State::Unknown).then_some(episode);
        if !is_told && !rules.is_empty() {
            self.hold(runtime, HeldReason::ExistedBefore);
        }
    }

    fn continue_episode(&mut self, runtime: &str, sight: &AgentSight, now: Timestamp) {
        let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) else { return };
        if episode.fingerprint.is_none() {
            episode.fingerprint.clone_from(&sight.fingerprint);
        }
        if std::mem::take(&mut episode.suspended) {
            // The state must last again before a notice is sent.
            for progress in &mut episode.progress {
                let lasted = later(now, self.rules[progress.rule].dwell);
                match progress.step {
                    Step::Due(at) => progress.step = Step::Due(at.max(lasted)),
                    Step::Quiet => progress.step = Step::Due(lasted),
                    Step::Looking | Step::Done => {}
                }
            }
            self.resume_restored(runtime, sight, now);
        }
    }

    /// Schedules the escalation of a notice that an earlier daemon has sent.
    fn resume_restored(&mut self, runtime: &str, sight: &AgentSight, now: Timestamp) {
        let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) else { return };
        let Some(sent_at) = episode.sent_at.filter(|_| episode.progress.is_empty()) else { return };
        let escalating = self.rules.iter().enumerate().filter(|(_, rule)| rule.matches(sight));
        episode.progress = escalating
            .filter_map(|(rule, settings)| {
                let at = later(sent_at, settings.escalation.as_ref()?.after);
                let step = Step::Due(at.max(later(now, settings.dwell)));
                Some(RuleProgress { rule, phase: Phase::Escalation, step })
            })
            .collect();
    }

    fn end_episode(&mut self, runtime: &str) {
        let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) else { return };
        let is_first_pending = |progress: &RuleProgress| {
            progress.phase == Phase::First && matches!(progress.step, Step::Due(_) | Step::Looking)
        };
        let was_too_short = episode.held.is_empty() && episode.progress.iter().any(is_first_pending);
        let (notice, sent) = (episode.notice.clone(), &episode.sent - &episode.in_digest);
        if was_too_short {
            self.hold(runtime, HeldReason::TooShort);
        }
        let withdrawable = sent.into_iter().filter(|channel| channel.can_withdraw());
        let withdraw = |channel| NotifyEffect::Withdraw { channel, runtime: runtime.into(), notice: notice.clone() };
        self.effects.extend(withdrawable.map(withdraw));
        if let Some(agent) = self.agents.get_mut(runtime) {
            agent.episode = None;
        }
    }

    fn advance_agent(
        &mut self,
        runtime: &str,
        now: Timestamp,
        digest: &mut BTreeMap<NotifyChannel, Vec<(String, String)>>,
    ) {
        let count = self.agents.get(runtime).and_then(|agent| agent.episode.as_ref()).map_or(0, |e| e.progress.len());
        for n in 0..count {
            let Some(agent) = self.agents.get(runtime) else { return };
            let Some(episode) = &agent.episode else { return };
            let RuleProgress { rule, phase, step } = episode.progress[n];
            let quiet = self.quiet_until(rule, now);
            let last = agent.last_sent.get(&rule).filter(|_| phase == Phase::First);
            let cool_at = last.map(|at| later(*at, self.rules[rule].cooldown)).filter(|at| *at > now);
            match step {
                Step::Due(at) if at > now => {}
                Step::Due(_) if quiet.is_some() => {
                    self.set_step(runtime, n, Step::Quiet);
                    self.hold(runtime, HeldReason::QuietHours);
                }
                Step::Due(_) => match cool_at {
                    Some(at) => {
                        self.set_step(runtime, n, Step::Due(at));
                        self.hold(runtime, HeldReason::Cooldown);
                    }
                    None => self.look(runtime, n),
                },
                Step::Quiet if quiet.is_none() => self.add_to_digest(runtime, n, now, digest),
                Step::Quiet | Step::Looking | Step::Done => {}
            }
        }
    }

    /// Asks whether a person views the pane. One look serves all rules.
    fn look(&mut self, runtime: &str, n: usize) {
        let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) else { return };
        let is_looking = episode.is_waiting_for(Step::Looking);
        episode.progress[n].step = Step::Looking;
        if !is_looking {
            let notice = episode.notice.clone();
            self.effects.push(NotifyEffect::Look { runtime: runtime.to_owned(), notice });
        }
    }

    fn send(&mut self, runtime: &str, n: usize, now: Timestamp) {
        let Some((notice, phase, channels)) = self.mark_sent(runtime, n, now) else { return };
        let escalated = phase == Phase::Escalation;
        let send = |channel| NotifyEffect::Send { channel, runtime: runtime.into(), notice: notice.clone(), escalated };
        self.effects.extend(channels.into_iter().map(send));
    }

    fn add_to_digest(
        &mut self,
        runtime: &str,
        n: usize,
        now: Timestamp,
        digest: &mut BTreeMap<NotifyChannel, Vec<(String, String)>>,
    ) {
        let Some((notice, _, channels)) = self.mark_sent(runtime, n, now) else { return };
        for channel in channels {
            digest.entry(channel).or_default().push((runtime.to_owned(), notice.clone()));
            // A digest names several agents, so it is not withdrawn when one of them is answered.
            if let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) {
                episode.in_digest.insert(channel);
            }
        }
    }

    /// Marks the notice as sent, and plans the escalation. Returns the channels on which the person was not told yet.
    fn mark_sent(&mut self, runtime: &str, n: usize, now: Timestamp) -> Option<(String, Phase, Vec<NotifyChannel>)> {
        let agent = self.agents.get_mut(runtime)?;
        let episode = agent.episode.as_mut()?;
        let RuleProgress { rule, phase, .. } = episode.progress[n];
        let NotifyRule { channels, escalation, .. } = &self.rules[rule];
        let channels = match phase {
            Phase::First => channels.as_slice(),
            Phase::Escalation => escalation.as_ref().map(|escalation| escalation.channels.as_slice())?,
        };
        let channels: Vec<NotifyChannel> =
            channels.iter().copied().filter(|channel| episode.sent.insert(*channel)).collect();
        let next = escalation.as_ref().filter(|_| phase == Phase::First).map(|next| later(now, next.after));
        episode.progress[n] = match next {
            Some(at) => RuleProgress { rule, phase: Phase::Escalation, step: Step::Due(at) },
            None => RuleProgress { rule, phase, step: Step::Done },
        };
        episode.sent_at.get_or_insert(now);
        if phase == Phase::First {
            agent.last_sent.insert(rule, now);
        }
        Some((episode.notice.clone(), phase, channels))
    }

    fn set_step(&mut self, runtime: &str, n: usize, step: Step) {
        if let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) {
            episode.progress[n].step = step;
        }
    }

    /// Reports a reason, once per episode.
    fn hold(&mut self, runtime: &str, reason: HeldReason) {
        let Some(episode) = self.agents.get_mut(runtime).and_then(|agent| agent.episode.as_mut()) else { return };
        if !episode.held.contains(&reason) {
            episode.held.push(reason);
            let notice = episode.notice.clone();
            self.effects.push(NotifyEffect::Hold { runtime: runtime.to_owned(), notice, reason });
        }
    }
}

impl NotifiedAgent {
    /// Whether a notice about this agent may be due now or later.
    fn is_pending(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| !episode.suspended && !episode.progress.is_empty())
    }
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(at)
}
