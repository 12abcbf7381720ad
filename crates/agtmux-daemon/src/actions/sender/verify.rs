//! Whether the agent took it.

use std::path::Path;
use std::time::Duration;

use agtmux_api::wire::{Verified, VerifiedBy};
use agtmux_core::redact;
use agtmux_tmux::platform;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Sender, snippet};
use crate::actions::Failure;
use crate::actions::look::Look;
use crate::engine::Submitted;

/// How long each Enter gets.
const TAKEN_WITHIN: Duration = Duration::from_millis(1500);
/// Between one look and the next, at first and at the most.
const SOONEST: Duration = Duration::from_millis(25);
const RAREST: Duration = Duration::from_millis(200);
/// An agent's word is as good as all of its text.
const COMPARED: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Proof {
    pub(crate) verified: Verified,
    pub(crate) by: VerifiedBy,
    pub(crate) attempts: u32,
    pub(crate) event_ids: Vec<String>,
}

/// Watches for what tells that a text was taken. It listens from before anything was typed.
pub(crate) struct Witness<'a> {
    sender: &'a Sender<'a>,
    submitted: broadcast::Receiver<Submitted>,
    text: &'a str,
    snippet: Option<String>,
    event_ids: Vec<String>,
}

/// What one look tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Taken,
    StillThere,
    /// Neither: there is no box to see.
    Unclear,
}

impl<'a> Witness<'a> {
    pub(crate) fn new(sender: &'a Sender<'a>, text: &'a str) -> Self {
        let submitted = sender.scene.actions.0.engine.submitted();
        Self { sender, submitted, text, snippet: snippet::of(text), event_ids: Vec::new() }
    }

    /// After an Enter. `in_box` is what stood in the box before it; none for what has no box.
    pub(crate) async fn watch(&mut self, before: &Look, in_box: Option<&str>, attempts: u32) -> Result<Proof, Failure> {
        let proof =
            |verified, by, event_ids: &[String]| Proof { verified, by, attempts, event_ids: event_ids.to_vec() };
        let deadline = Instant::now() + TAKEN_WITHIN;
        let (mut pause, mut sight, mut changed) = (SOONEST, Sight::Unclear, false);
        loop {
            let next = (Instant::now() + pause).min(deadline);
            pause = (pause * 2).min(RAREST);
            if self.hears_by(next).await {
                return Ok(proof(Verified::Confirmed, VerifiedBy::Event, &self.event_ids));
            }
            sleep_until(next).await;
            let look = self.sender.scene.look().await?;
            changed |= look.raw != before.raw;
            if let (Some(agent_type), Some(in_box)) = (self.sender.boxed(), in_box) {
                let registry = self.sender.scene.actions.0.discovery.registry();
                let typed = registry.typed(&agent_type, &look.screen);
                sight = match typed {
                    Some(typed) => self.judge(&typed, in_box),
                    // It asks something now: it took what was typed, and needs something for it.
                    None if look.reading(&registry, &agent_type).dialog.is_some() => Sight::Taken,
                    None => Sight::Unclear,
                };
                if sight == Sight::Taken {
                    self.drain();
                    return Ok(proof(Verified::Confirmed, VerifiedBy::Box, &self.event_ids));
                }
            } else if changed {
                return Ok(proof(Verified::Confirmed, VerifiedBy::Change, &self.event_ids));
            }
            if Instant::now() >= deadline {
                return Ok(match sight {
                    Sight::StillThere => proof(Verified::Failed, VerifiedBy::Box, &[]),
                    _ if changed => proof(Verified::Inconclusive, VerifiedBy::Change, &[]),
                    _ => proof(Verified::Inconclusive, VerifiedBy::Nothing, &[]),
                });
            }
        }
    }

    fn judge(&self, typed: &str, in_box: &str) -> Sight {
        let (typed, stood) = (snippet::squashed(typed), snippet::squashed(in_box));
        if typed.is_empty() {
            return Sight::Taken;
        }
        let known = self.snippet.as_ref().is_some_and(|snippet| typed.contains(snippet.as_str()));
        if known || typed == stood || typed.contains(&stood) || stood.contains(&typed) {
            return Sight::StillThere;
        }
        Sight::Taken
    }

    /// Whether the program has not even read what was typed. Another Enter would only queue up behind it.
    pub(crate) fn is_unread(&self) -> bool {
        let tty = Path::new(&self.sender.scene.located.pane.tty);
        platform::unread_input(tty).is_some_and(|bytes| bytes > 0)
    }

    async fn hears_by(&mut self, deadline: Instant) -> bool {
        while let Ok(Ok(heard)) = timeout_at(deadline, self.submitted.recv()).await {
            if self.is_ours(&heard) {
                self.event_ids.push(heard.event_id);
                return true;
            }
        }
        false
    }

    fn drain(&mut self) {
        while let Ok(heard) = self.submitted.try_recv() {
            if self.is_ours(&heard) {
                self.event_ids.push(heard.event_id);
            }
        }
    }

    fn is_ours(&self, heard: &Submitted) -> bool {
        let lives = self.sender.scene.located.living.as_ref();
        if lives.is_none_or(|living| living.runtime.id != heard.runtime) {
            return false;
        }
        let start = |text: &str| snippet::squashed(text).chars().take(COMPARED).collect::<String>();
        heard.text.is_empty() || start(&heard.text) == start(&redact::text(self.text))
    }
}
