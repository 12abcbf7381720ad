//! How text gets into a pane, and how it is known that it was taken. One implementation for everybody.
//!
//! The text goes in as one paste, Enter follows as a key of its own, and then the agent's own word, or its input box, tells
//! whether it was taken. Enter is pressed again only while the text is seen in the box: an Enter too many could answer a
//! dialog that has opened in the meantime.

mod snippet;
mod text;
mod verify;

use std::time::Duration;

use agtmux_api::config::TmuxBridge;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, Profile, SendAction, SendReport, Verified, VerifiedBy};
use agtmux_core::state::State;
use agtmux_tmux::{Key, Typing};
use tokio::time::{Instant, sleep};

use super::perform::Request;
use super::{Actions, Asker, Failure, Scene};
pub(super) use snippet::squashed;
pub(super) use text::checked;
pub(super) use verify::{Proof, Witness};

/// An agent that has just been started takes this long at the most to show its box.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// A large paste takes this long at the most to stand in the box.
const PASTED_WITHIN: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(40);
/// After a paste nobody has to wait longer than this.
const LONGEST_AFTER_PASTE: Duration = Duration::from_millis(500);

impl Actions {
    pub(crate) async fn send(&self, action: SendAction, asker: Asker) -> Result<ActionOutcome<SendReport>, ApiError> {
        let keys = keys(&action.keys)?;
        let text = action.text.as_deref().map(checked).transpose()?;
        if text.is_none() && keys.is_empty() {
            let error = ApiError::new(ErrorCode::BadRequest, "there is nothing to send");
            return Err(error.with_hint("give it a text, or keys to press"));
        }
        let pressed = (!keys.is_empty()).then(|| format!("keys {}", action.keys.join(" ")));
        let content = serde_json::to_string(&(ActionKind::Send, &action)).unwrap_or_default();
        let request = Request {
            kind: ActionKind::Send,
            guards: &action.guards,
            asker,
            what: pressed,
            text: text.as_deref(),
            content,
        };
        let message = Message { text: text.as_deref(), keys: &keys, enter: text.is_some() && !action.no_enter };
        self.perform(request, async |scene| Sender::of(scene, action.profile)?.send(&message).await).await
    }
}

fn keys(names: &[String]) -> Result<Vec<Key>, ApiError> {
    let key = |name: &String| {
        let bad = |error: agtmux_tmux::BadKey| ApiError::new(ErrorCode::BadRequest, error.to_string());
        name.parse::<Key>().map_err(|error| bad(error).with_hint("agtmux send --help"))
    };
    names.iter().map(key).collect()
}

/// What is to be typed.
pub(super) struct Message<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) keys: &'a [Key],
    pub(super) enter: bool,
}

pub(super) struct Sender<'a> {
    pub(super) scene: &'a Scene<'a>,
    bridge: TmuxBridge,
    profile: Profile,
}

impl<'a> Sender<'a> {
    /// Who lives there decides how it is typed, unless the caller does.
    pub(super) fn of(scene: &'a Scene<'a>, profile: Option<Profile>) -> Result<Self, Failure> {
        let bridge = scene.actions.config().tmux_bridge;
        if scene.located.pane.dead.is_some() {
            // Not even asked: a paste into a dead pane ends some tmux servers.
            let error = ApiError::new(ErrorCode::RuntimeStale, "nothing was typed: the pane's program has ended");
            return Err(Failure::refused(error.with_hint("agtmux resume starts its agent again")));
        }
        let lives = scene.located.living.is_some();
        match profile {
            Some(Profile::Tui) | None if lives => Ok(Self { scene, bridge, profile: Profile::Tui }),
            Some(Profile::Shell) => Ok(Self { scene, bridge, profile: Profile::Shell }),
            _ => {
                let pane = scene.located.key.pane;
                let message = format!("no agent lives in {pane}: what is typed there would go to its shell");
                Err(Failure::precondition(message, "agtmux send --profile shell, if that is what you want"))
            }
        }
    }

    pub(super) async fn send(&self, message: &Message<'_>) -> Result<SendReport, Failure> {
        let text = message.text.unwrap_or_default();
        let mut witness = Witness::new(self, text);
        self.refuse_while_asking()?;
        let before = self.ready().await?;
        self.leave_mode().await?;
        if message.text.is_some() {
            self.type_text(text).await?;
        }
        let in_box = self.stands(&before).await.map_err(|failure| when(failure, message.text.is_some()))?;
        self.press(message.keys).await.map_err(Failure::after_all)?;
        if !message.enter {
            return Ok(self.unsent(text, in_box.as_deref()));
        }
        let proof = self.enter(&mut witness, in_box).await.map_err(Failure::after_all)?;
        self.report(text, proof).await
    }

    /// Presses Enter until the text is seen to have been taken, or as often as is allowed.
    async fn enter(&self, witness: &mut Witness<'_>, in_box: Option<String>) -> Result<Proof, Failure> {
        let mut attempts = 0;
        loop {
            let before = self.scene.look().await?;
            self.press(&[Key::enter()]).await?;
            attempts += 1;
            if !self.bridge.verify_enter {
                return Ok(Proof {
                    verified: Verified::Inconclusive,
                    by: VerifiedBy::Nothing,
                    attempts,
                    event_ids: Vec::new(),
                });
            }
            let proof = witness.watch(&before, in_box.as_deref(), attempts).await?;
            if proof.verified != Verified::Failed || attempts > self.bridge.max_enter_retries || witness.is_unread() {
                return Ok(proof);
            }
            self.dismiss_ghost(in_box.as_deref()).await?;
        }
    }

    async fn report(&self, text: &str, proof: Proof) -> Result<SendReport, Failure> {
        let Proof { verified, by, attempts, event_ids } = proof;
        if verified == Verified::Failed {
            self.dump().await;
            let message = format!("the text stands in the input box and was not taken after {attempts} times Enter");
            let error = ApiError::new(ErrorCode::SendFailed, message);
            let hint = format!("agtmux view-output {0}; then agtmux send {0} --key Enter", self.scene.located.key.pane);
            return Err(Failure::refused(error.with_hint(hint)).after_all());
        }
        Ok(SendReport { verified, by, attempts, bytes: text.len() as u64, event_ids })
    }

    fn unsent(&self, text: &str, in_box: Option<&str>) -> SendReport {
        let stands = in_box.is_some_and(|typed| !typed.is_empty());
        let (verified, by) = match stands {
            true => (Verified::Confirmed, VerifiedBy::Box),
            false => (Verified::Inconclusive, VerifiedBy::Nothing),
        };
        SendReport { verified, by, attempts: 0, bytes: text.len() as u64, event_ids: Vec::new() }
    }

    fn refuse_while_asking(&self) -> Result<(), Failure> {
        let asks = matches!(self.scene.state(), Some(State::WaitingApproval | State::WaitingInput));
        if asks && self.profile == Profile::Tui && !self.scene.forced {
            return Err(self.asking());
        }
        Ok(())
    }

    fn asking(&self) -> Failure {
        let pane = self.scene.located.key.pane;
        Failure::precondition(
            "it asks something, and what is typed now would answer that",
            format!("agtmux respond {pane} approve|deny|N"),
        )
    }

    /// What stands in the box before anything is typed; none for what has no box.
    async fn ready(&self) -> Result<Option<String>, Failure> {
        let Some(agent_type) = self.boxed() else { return Ok(None) };
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            match self.typed(&agent_type).await? {
                Some(draft) if draft.is_empty() || self.scene.forced => return Ok(Some(draft)),
                Some(_) => {
                    let pane = self.scene.located.key.pane;
                    return Err(Failure::precondition(
                        "there is text in its input box that nobody has sent",
                        format!("agtmux view-output {pane}; --force-stale sends both as one"),
                    ));
                }
                None if self.scene.forced => return Ok(None),
                None if Instant::now() >= deadline => {
                    let pane = self.scene.located.key.pane;
                    return Err(Failure::precondition(
                        "its input box is not on its screen",
                        format!("agtmux view-output {pane}; --force-stale types all the same"),
                    ));
                }
                None => sleep(LOOK_EVERY * 2).await,
            }
        }
    }

    /// The kind of an agent whose input box can be seen.
    pub(super) fn boxed(&self) -> Option<String> {
        let living = self.scene.located.living.as_ref().filter(|_| self.profile == Profile::Tui)?;
        let agent_type = living.runtime.agent_type.as_str();
        self.scene.actions.0.discovery.registry().draws_box(agent_type).then(|| agent_type.to_owned())
    }

    /// What stands in the box. A dialog that is open is a reason to stop.
    async fn typed(&self, agent_type: &str) -> Result<Option<String>, Failure> {
        let registry = self.scene.actions.0.discovery.registry();
        let look = self.scene.look().await?;
        if look.reading(&registry, agent_type).dialog.is_some() && !self.scene.forced {
            return Err(self.asking());
        }
        Ok(registry.typed(agent_type, &look.screen))
    }

    pub(super) async fn leave_mode(&self) -> Result<(), Failure> {
        if self.bridge.leave_copy_mode {
            self.scene.tmux.type_into(self.scene.guard, Typing::LeaveMode).await?;
        }
        Ok(())
    }

    pub(super) async fn type_text(&self, text: &str) -> Result<(), Failure> {
        self.scene.tmux.type_into(self.scene.guard, Typing::Paste(text)).await?;
        sleep(delay(&self.bridge, text.chars().count()).min(LONGEST_AFTER_PASTE)).await;
        Ok(())
    }

    /// What stands in the box once it holds still. A dialog that opened meanwhile must not get our Enter.
    async fn stands(&self, before: &Option<String>) -> Result<Option<String>, Failure> {
        let Some(agent_type) = self.boxed() else { return Ok(None) };
        let deadline = Instant::now() + PASTED_WITHIN;
        let mut last = self.typed(&agent_type).await?;
        loop {
            let late = Instant::now() >= deadline;
            let arrived = last != *before && last.as_ref().is_some_and(|typed| !typed.is_empty());
            sleep(LOOK_EVERY).await;
            let typed = self.typed(&agent_type).await?;
            if late || (arrived && typed == last) {
                return Ok(typed);
            }
            last = typed;
        }
    }

    pub(super) async fn press(&self, keys: &[Key]) -> Result<(), Failure> {
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
            }
            self.scene.tmux.type_into(self.scene.guard, Typing::Keys(std::slice::from_ref(key))).await?;
        }
        Ok(())
    }

    /// Suggested text would be taken for typed. Escape puts it away, but it also stops a turn, and in some boxes it erases.
    async fn dismiss_ghost(&self, in_box: Option<&str>) -> Result<(), Failure> {
        let at_rest = !matches!(self.scene.state(), Some(State::Running));
        if !self.bridge.detect_ghost_text || !at_rest || in_box.is_none() {
            return Ok(());
        }
        let Some(agent_type) = self.boxed() else { return Ok(()) };
        let look = self.scene.look().await?;
        if self.scene.actions.0.discovery.registry().suggests(&agent_type, &look.screen) {
            self.press(&[Key::escape()]).await?;
            sleep(Duration::from_millis(self.bridge.clear_delay_ms)).await;
        }
        Ok(())
    }

    /// For whoever has to find out why.
    async fn dump(&self) {
        if let Ok(look) = self.scene.look().await {
            let shown = agtmux_core::redact::text(&String::from_utf8_lossy(&look.raw)).into_owned();
            let shown = agtmux_core::sanitize::for_terminal(&shown);
            tracing::warn!(pane = %self.scene.located.key.pane, shown, "a text was not taken");
        }
    }
}

/// Once something was typed, whatever follows is no plain refusal.
fn when(failure: Failure, typed: bool) -> Failure {
    if typed { failure.after_all() } else { failure }
}

/// Long texts take agents longer to digest.
fn delay(bridge: &TmuxBridge, characters: usize) -> Duration {
    let more = characters.saturating_sub(200) / 10;
    Duration::from_millis(bridge.text_enter_delay_ms + u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_with_the_text() {
        let bridge = agtmux_api::config::Config::default().tmux_bridge;
        let millis = |characters| delay(&bridge, characters).as_millis();
        assert_eq!([0, 200, 209, 210, 1200].map(millis), [120, 120, 120, 121, 220]);
    }
}
