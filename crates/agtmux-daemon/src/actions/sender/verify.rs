//! Whether the agent took it.

use std::time::Duration;

use agtmux_agents::{Reading, Registry};
use agtmux_api::wire::VerifiedBy;
use agtmux_core::redact;
use agtmux_core::state::State;
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout_at};

use super::put::Standing;
use super::{Sender, snippet};
use crate::actions::Failure;
use crate::actions::look::Look;
use crate::engine::Submitted;

/// How long each Enter gets.
const TAKEN_WITHIN: Duration = Duration::from_millis(1500);
/// An agent that has not even read it gets longer: it may be busy, and another Enter would only queue up behind this one.
const READ_WITHIN: Duration = Duration::from_secs(20);
/// The box may be out of sight while an agent draws itself anew.
const SHOWS_BOX_WITHIN: Duration = Duration::from_secs(4);
/// Between one look and the next, at first and at the most.
const SOONEST: Duration = Duration::from_millis(20);
const RAREST: Duration = Duration::from_millis(160);
/// Once the box is empty, an agent that tells by itself gets this long to say so.
const SAYS_SO_WITHIN: Duration = Duration::from_millis(400);
/// A command that is not known may be taken out of the box, answered and put back: it counts from the answer. One that is
/// answered by nothing at all gets the longer time.
const COMMAND_PUT_BACK: Duration = Duration::from_millis(600);
const COMMAND_UNANSWERED: Duration = Duration::from_secs(2);
/// An agent's word is as good as all of its text.
const COMPARED: usize = 256;

/// What came of one Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    Taken(VerifiedBy),
    /// There is nothing to tell it by, or it does not tell.
    Unclear(VerifiedBy),
    /// The text stands where it stood.
    Kept,
    /// It stands there, but the agent did something: it knows no such command.
    Answered,
    /// It stands there, and the agent has not read the Enter.
    Unread,
}

/// What one look tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Taken,
    StillThere,
    /// Neither: there is no box to see.
    Unclear,
}

/// Watches for what tells that a text was taken. It listens from before anything was typed.
pub(super) struct Witness<'a> {
    sender: &'a Sender<'a>,
    submitted: broadcast::Receiver<Submitted>,
    text: &'a str,
    snippet: Option<String>,
    event_ids: Vec<String>,
}

impl<'a> Witness<'a> {
    pub(super) fn new(sender: &'a Sender<'a>, text: &'a str) -> Self {
        let submitted = sender.scene.actions.0.engine.submitted();
        Self { sender, submitted, text, snippet: snippet::of(text), event_ids: Vec::new() }
    }

    /// The events that told of it.
    pub(super) fn event_ids(&self) -> &[String] {
        &self.event_ids
    }

    /// Whatever was told before does not count.
    pub(super) fn forget(&mut self) {
        while !matches!(
            self.submitted.try_recv(),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed)
        ) {}
    }

    /// Returns when everybody else knows that it works, if that is seen: whoever waits for its rest now would find it at the rest
    /// from before. An agent's own word is heard by everybody at once.
    pub(super) async fn known(&self) {
        let scene = self.sender.scene;
        let Some(agent_type) = self.sender.boxed().filter(|_| self.event_ids.is_empty()) else { return };
        let Some(before) = scene.state() else { return };
        let registry = scene.actions.0.discovery.registry();
        let look = scene.look().await;
        if self.rested() && look.is_ok_and(|look| is_busy(&look.reading(&registry, &agent_type))) {
            scene.heard(|state, _| state != before).await;
        }
    }

    /// After an Enter.
    pub(super) async fn watch(&mut self, standing: &Standing) -> Result<Finding, Failure> {
        match self.sender.boxed() {
            Some(agent_type) => self.watch_box(&agent_type, standing).await,
            None => self.watch_change(standing.look()).await,
        }
    }

    async fn watch_box(&mut self, agent_type: &str, standing: &Standing) -> Result<Finding, Failure> {
        let begun = Instant::now();
        let registry = self.sender.scene.actions.0.discovery.registry();
        let (mut pause, mut taken_since) = (SOONEST, None);
        loop {
            if self.hears_by(Instant::now() + pause).await {
                return Ok(Finding::Taken(VerifiedBy::Event));
            }
            pause = (pause * 2).min(RAREST);
            let look = self.sender.scene.look().await?;
            let sight = self.judge(&registry, agent_type, &look, standing);
            let answered = self.is_answered(&registry, agent_type, &look, standing);
            if sight != Sight::Taken {
                taken_since = None;
            }
            let long_enough = match (self.is_command(), answered) {
                (false, _) => SOONEST,
                (true, true) => COMMAND_PUT_BACK,
                (true, false) => COMMAND_UNANSWERED,
            };
            // More than once, because a look may come in the middle of a drawing.
            if sight == Sight::Taken && taken_since.is_some_and(|since: Instant| since.elapsed() >= long_enough) {
                let says_so = self.tells() && self.hears_by(Instant::now() + SAYS_SO_WITHIN).await;
                return Ok(Finding::Taken(if says_so { VerifiedBy::Event } else { VerifiedBy::Box }));
            }
            let waited = begun.elapsed();
            if sight == Sight::Taken {
                (pause, taken_since) = (SOONEST, taken_since.or(Some(Instant::now())));
                continue;
            }
            if waited < TAKEN_WITHIN {
                continue;
            }
            let changed = look.raw != standing.look().raw;
            match sight {
                Sight::StillThere if self.sender.is_unread() => {
                    if waited >= READ_WITHIN {
                        return Ok(Finding::Unread);
                    }
                }
                Sight::StillThere if answered => return Ok(Finding::Answered),
                Sight::StillThere => return Ok(Finding::Kept),
                _ if waited < SHOWS_BOX_WITHIN => {}
                _ => return Ok(Finding::Unclear(if changed { VerifiedBy::Change } else { VerifiedBy::Nothing })),
            }
        }
    }

    /// For programs whose box is not known.
    async fn watch_change(&mut self, before: &Look) -> Result<Finding, Failure> {
        let deadline = Instant::now() + TAKEN_WITHIN;
        let mut pause = SOONEST;
        loop {
            if self.hears_by(Instant::now() + pause).await {
                return Ok(Finding::Taken(VerifiedBy::Event));
            }
            pause = (pause * 2).min(RAREST);
            let late = Instant::now() >= deadline;
            if self.sender.scene.look().await?.raw != before.raw {
                // Programs print for reasons of their own.
                return Ok(Finding::Unclear(VerifiedBy::Change));
            }
            if late {
                return Ok(Finding::Unclear(VerifiedBy::Nothing));
            }
        }
    }

    fn judge(&self, registry: &Registry, agent_type: &str, look: &Look, standing: &Standing) -> Sight {
        match registry.typed(agent_type, &look.screen) {
            Some(typed) => {
                let sight = match standing {
                    Standing::InBox(stood, _) => compare(&typed, stood, self.snippet.as_deref()),
                    // It was not seen, so that it is not seen now tells less. An empty box has nothing of it.
                    Standing::Unseen(_) if typed.is_empty() => Sight::Taken,
                    Standing::Unseen(_) => Sight::StillThere,
                };
                let leaves = registry.typing(agent_type).is_some_and(|typing| typing.leaves_text);
                if leaves && sight == Sight::StillThere { Sight::Unclear } else { sight }
            }
            // It works now, or asks something: it took what was typed. One that worked already may ask for something else, and
            // keep the text behind the dialog.
            None if self.rested() && is_busy(&look.reading(registry, agent_type)) => Sight::Taken,
            None => Sight::Unclear,
        }
    }

    /// Whether the agent has named the command that it was given. If the text stands in the box then, it does not know
    /// such a command, and would only say so again.
    fn is_answered(&self, registry: &Registry, agent_type: &str, look: &Look, standing: &Standing) -> bool {
        let before = registry.transcript(agent_type, &standing.look().screen);
        let now = registry.transcript(agent_type, &look.screen);
        let command = self.text.split_whitespace().next().unwrap_or_default();
        self.is_command() && now.iter().any(|row| row.contains(command) && !before.contains(row))
    }

    fn is_command(&self) -> bool {
        self.text.starts_with('/')
    }

    fn rested(&self) -> bool {
        !matches!(self.sender.scene.state(), Some(State::Running))
    }

    fn tells(&self) -> bool {
        self.sender.scene.located.living.as_ref().is_some_and(|living| living.tells)
    }

    async fn hears_by(&mut self, deadline: Instant) -> bool {
        loop {
            match timeout_at(deadline, self.submitted.recv()).await {
                Ok(Ok(heard)) if self.is_ours(&heard) => {
                    self.event_ids.push(heard.event_id);
                    return true;
                }
                Ok(Ok(_) | Err(broadcast::error::RecvError::Lagged(_))) => {}
                // The engine has ended, and with it all that could be waited for.
                Ok(Err(broadcast::error::RecvError::Closed)) | Err(_) => return false,
            }
        }
    }

    fn is_ours(&self, heard: &Submitted) -> bool {
        let lives = self.sender.scene.located.living.as_ref();
        if lives.is_none_or(|living| living.runtime.id != heard.runtime) {
            return false;
        }
        let start = |text: &str| snippet::skeleton(text).chars().take(COMPARED).collect::<String>();
        heard.text.is_empty() || start(&heard.text) == start(&redact::text(self.text))
    }
}

fn is_busy(reading: &Reading) -> bool {
    reading.dialog.is_some() || reading.stands.iter().any(|said| said.stand.state() == Some(State::Running))
}

/// Whether what is in the box now is what stood there, or a part of it.
fn compare(typed: &str, stood: &str, snippet: Option<&str>) -> Sight {
    let (typed, stood) = (snippet::squashed(typed), snippet::squashed(stood));
    if typed.is_empty() {
        return Sight::Taken;
    }
    let known = snippet.is_some_and(|snippet| typed.contains(snippet));
    match known || typed.contains(&stood) || stood.contains(&typed) {
        true => Sight::StillThere,
        false => Sight::Taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_gone_was_taken() {
        assert_eq!(compare("", "hello there", None), Sight::Taken);
        assert_eq!(compare("hello  there", "hello there", None), Sight::StillThere);
        // Half drawn, or with a new line that Enter made.
        assert_eq!(compare("hello", "hello there", None), Sight::StillThere);
        assert_eq!(compare("hello there\nmore", "hello there", None), Sight::StillThere);
        assert_eq!(compare("what comes next", "hello there", None), Sight::Taken);
        assert_eq!(compare("… the end of it all", "[Pasted text]", Some("theendofitall")), Sight::StillThere);
    }
}
