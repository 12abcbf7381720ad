//! How text gets into a pane, and how it is known that it was taken. One implementation for everybody.
//!
//! The text goes in as one paste. Once it is seen to stand in the input box, Enter follows as a key of its own, and then the
//! agent's own word, or its input box, tells whether it was taken. Enter is pressed again only while the text is seen in the
//! box: an Enter too many could answer a dialog that has opened in the meantime.

mod put;
mod snippet;
mod text;
mod verify;

use std::borrow::Cow;
use std::time::Duration;

use agtmux_api::collect::Ask;
use agtmux_api::config::TmuxBridge;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, Profile, SendAction, SendReport, Verified, VerifiedBy};
use agtmux_core::state::State;
use agtmux_tmux::{Key, Typing};
use tokio::time::{Instant, sleep};

use super::look::Look;
use super::perform::Request;
use super::repeated::content;
use super::{Actions, Asker, Failure, Scene, audit, guards};
use put::Standing;
pub(super) use snippet::squashed;
pub(super) use text::checked;
use verify::{Finding, Witness};

/// An agent that has just been started takes this long at the most to show its box.
const READY_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Each takes its time, and others wait.
const MOST_KEYS: usize = 256;

impl Actions {
    pub(crate) async fn send(&self, action: SendAction, asker: Asker) -> Result<ActionOutcome<SendReport>, ApiError> {
        let (guards, content) = (&action.guards, content(ActionKind::Send, &action));
        let ask = |guards| Ask::Send(SendAction { guards, ..action.clone() });
        let request = Request { kind: ActionKind::Send, guards, asker, what: None, text: None, content, ask: &ask };
        let (keys, text) = match typed(&action) {
            Ok(typed) => typed,
            Err(error) => return Err(self.turn_down(request, error).await),
        };
        let request = Request { what: audit::pressed(self.config(), &keys), text: text.as_deref(), ..request };
        let message = Message { text: text.as_deref(), keys: &keys, enter: text.is_some() && !action.no_enter };
        self.perform(request, async |scene| Sender::of(scene, action.profile)?.send(&message).await).await
    }
}

/// What there is to type, if all of it may be typed.
fn typed(action: &SendAction) -> Result<(Vec<Key>, Option<Cow<'_, str>>), ApiError> {
    let keys = keys(&action.keys)?;
    let text = action.text.as_deref().map(checked).transpose()?;
    if text.is_none() && keys.is_empty() {
        let error = ApiError::new(ErrorCode::BadRequest, "there is nothing to send");
        return Err(error.with_hint("give it a text, or keys to press"));
    }
    if text.is_none() && action.no_enter {
        let error = ApiError::new(ErrorCode::BadRequest, "there is no text that could be left in the input box");
        return Err(error.with_hint("leave out no_enter: after keys alone Enter is not pressed"));
    }
    Ok((keys, text))
}

fn keys(names: &[String]) -> Result<Vec<Key>, ApiError> {
    if names.len() > MOST_KEYS {
        let error = ApiError::new(ErrorCode::BadRequest, format!("{MOST_KEYS} keys are the most"));
        return Err(error.with_hint("send text as text"));
    }
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
            return Err(Failure::refused(error.with_hint("agtmux resume REF   (starts its agent again)")));
        }
        let living = scene.located.living.as_ref();
        let is_task = living.is_some_and(|living| living.runtime.agent_type.is_task());
        let lives = living.is_some() && !is_task;
        match profile {
            None if is_task => Ok(Self { scene, bridge, profile: Profile::Shell }),
            Some(Profile::Tui) | None if lives => Ok(Self { scene, bridge, profile: Profile::Tui }),
            Some(Profile::Shell) if lives && !scene.forced => Err(Failure::precondition(
                "an agent lives there, and no shell waits for what is typed",
                "leave out --profile shell",
            )),
            Some(Profile::Shell) => Ok(Self { scene, bridge, profile: Profile::Shell }),
            _ => {
                let pane = scene.located.key.pane;
                let message = format!("no agent lives in {pane}: what is typed there would go to its shell");
                Err(Failure::precondition(message, "agtmux send REF --profile shell …   (if that is what you want)"))
            }
        }
    }

    pub(super) async fn send(&self, message: &Message<'_>) -> Result<SendReport, Failure> {
        self.refuse_while_asking()?;
        let Some(text) = message.text else {
            self.press_looking(message.keys).await?;
            return Ok(unverified(0, 0));
        };
        let mut witness = Witness::new(self, text);
        let before = self.ready().await?;
        let boxed = self.boxed();
        self.put_text(text, |look| boxed.map_or(Ok(()), |agent_type| self.asks_nothing(&agent_type, look))).await?;
        // From here on something was typed, whatever becomes of it.
        self.deliver(&mut witness, before.as_deref(), text, message).await.map_err(Failure::after_all)
    }

    async fn deliver(
        &self,
        witness: &mut Witness<'_>,
        before: Option<&str>,
        text: &str,
        message: &Message<'_>,
    ) -> Result<SendReport, Failure> {
        let standing = self.stands(before, text).await?;
        self.press_looking(message.keys).await?;
        if !message.enter {
            let seen = matches!(standing, Standing::InBox(..));
            let report = unverified(text.len(), 0);
            return Ok(if seen {
                SendReport { verified: Verified::Confirmed, by: VerifiedBy::Box, ..report }
            } else {
                report
            });
        }
        self.enter(witness, &standing, text).await
    }

    /// Presses Enter until the text is seen to have been taken, or as often as is allowed.
    async fn enter(&self, witness: &mut Witness<'_>, standing: &Standing, text: &str) -> Result<SendReport, Failure> {
        self.step_aside(text).await?;
        // What was heard up to now is not about this text.
        witness.forget();
        let mut attempts = 0;
        loop {
            self.still_lives().await?;
            self.press_looking(&[Key::enter()]).await?;
            attempts += 1;
            if !self.bridge.verify_enter {
                return Ok(unverified(text.len(), attempts));
            }
            let finding = witness.watch(standing).await?;
            let again = finding == Finding::Kept && attempts <= self.bridge.max_enter_retries;
            if !again {
                return self.report(witness, finding, text, attempts).await;
            }
            if attempts == 1 {
                self.dismiss_ghost().await?;
            }
        }
    }

    async fn report(
        &self,
        witness: &Witness<'_>,
        finding: Finding,
        text: &str,
        attempts: u32,
    ) -> Result<SendReport, Failure> {
        let event_ids = witness.event_ids().to_vec();
        let report = |verified, by| SendReport { verified, by, attempts, bytes: text.len() as u64, event_ids };
        let why = match finding {
            Finding::Taken(by) => {
                witness.known().await;
                return Ok(report(Verified::Confirmed, by));
            }
            Finding::Unclear(by) => return Ok(report(Verified::Inconclusive, by)),
            Finding::Kept => format!("the text stands in the input box and was not taken after {attempts} times Enter"),
            Finding::Answered => "it answered, and left the text in its input box".to_owned(),
            Finding::Unread => "it reads nothing at the moment: the text and Enter wait until it does".to_owned(),
        };
        self.dump().await;
        let pane = self.scene.located.reference();
        let hint = match finding {
            Finding::Unread => format!("agtmux view-output {pane}; do not send it again"),
            _ => format!("agtmux view-output {pane}; then agtmux send {pane} --key Enter"),
        };
        Err(Failure::refused(ApiError::new(ErrorCode::SendFailed, why).with_hint(hint)))
    }

    /// Looks before each key: one that meets a dialog which has just opened would answer it.
    async fn press_looking(&self, keys: &[Key]) -> Result<(), Failure> {
        let boxed = self.boxed();
        for (n, key) in keys.iter().enumerate() {
            if n > 0 {
                sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
            }
            let pressed = async {
                let typing = Typing::Keys(std::slice::from_ref(key));
                match &boxed {
                    Some(agent_type) => {
                        self.scene.types_seeing(typing, |look| self.asks_nothing(agent_type, look)).await
                    }
                    None => self.scene.types(typing).await,
                }
            };
            pressed.await.map_err(|failure| if n > 0 { failure.after_all() } else { failure })?;
        }
        Ok(())
    }

    fn refuse_while_asking(&self) -> Result<(), Failure> {
        let asks = matches!(self.scene.state(), Some(State::WaitingApproval | State::WaitingInput));
        if asks && self.profile == Profile::Tui && !self.scene.forced {
            return Err(self.asking());
        }
        Ok(())
    }

    fn asking(&self) -> Failure {
        let pane = self.scene.located.reference();
        Failure::precondition(
            "it asks something, and what is typed now would answer that",
            format!("agtmux respond {pane} approve|deny|N"),
        )
    }

    /// What stands in the box before anything is typed; none for what has no box.
    async fn ready(&self) -> Result<Option<String>, Failure> {
        let Some(agent_type) = self.boxed() else { return Ok(None) };
        let deadline = Instant::now() + READY_WITHIN;
        let pane = self.scene.located.reference();
        loop {
            let late = Instant::now() >= deadline;
            self.scene.same_resident().await?;
            match self.typed(&agent_type).await? {
                Some(draft) if draft.is_empty() || self.scene.forced => return Ok(Some(draft)),
                // Twice, because a look may come in the middle of a drawing.
                Some(_) if late || self.typed_again(&agent_type).await? => {
                    return Err(Failure::precondition(
                        "there is text in its input box that nobody has sent",
                        format!("agtmux view-output {pane}; --force-stale sends both as one"),
                    ));
                }
                None if self.scene.forced => return Ok(None),
                None if late => {
                    return Err(Failure::precondition(
                        "its input box is not on its screen",
                        format!("agtmux view-output {pane}; --force-stale types all the same"),
                    ));
                }
                _ => sleep(LOOK_EVERY).await,
            }
        }
    }

    async fn typed_again(&self, agent_type: &str) -> Result<bool, Failure> {
        sleep(LOOK_EVERY).await;
        Ok(self.typed(agent_type).await?.is_some_and(|draft| !draft.is_empty()))
    }

    /// The kind of an agent whose input box can be seen.
    pub(super) fn boxed(&self) -> Option<String> {
        let living = self.scene.located.living.as_ref().filter(|_| self.profile == Profile::Tui)?;
        let agent_type = living.runtime.agent_type.as_str();
        self.scene.actions.0.discovery.registry().draws_box(agent_type).then(|| agent_type.to_owned())
    }

    async fn typed(&self, agent_type: &str) -> Result<Option<String>, Failure> {
        self.seen(agent_type).await.map(|(typed, _)| typed)
    }

    /// What stands in the box, and the look that told. A dialog that is open is a reason to stop.
    async fn seen(&self, agent_type: &str) -> Result<(Option<String>, Look), Failure> {
        let look = self.scene.look().await?;
        self.asks_nothing(agent_type, &look)?;
        Ok((self.scene.actions.0.discovery.registry().typed(agent_type, &look.screen), look))
    }

    fn asks_nothing(&self, agent_type: &str, look: &Look) -> Result<(), Failure> {
        let registry = self.scene.actions.0.discovery.registry();
        match look.reading(&registry, agent_type).dialog {
            Some(_) if !self.scene.forced => Err(self.asking()),
            _ => Ok(()),
        }
    }

    /// What waits in the box of an agent that has ended meanwhile would be a command to its shell, and one that is stopped
    /// takes nothing.
    pub(super) async fn still_lives(&self) -> Result<(), Failure> {
        let Some(living) = self.scene.located.living.as_ref().filter(|_| self.profile == Profile::Tui) else {
            return Ok(());
        };
        let agent = living.runtime.process;
        let found = self.scene.processes.try_process(agent.pid).await.map_err(|untold| self.scene.unseen(&untold))?;
        match found.filter(|process| process.start == agent.start && !process.zombie) {
            None => Err(Failure::refused(guards::stale("the agent ended before Enter was pressed".into()))),
            Some(process) if process.stopped => {
                let pane = self.scene.located.reference();
                let message = "the text was typed, but the agent is stopped; Enter was not pressed";
                let hint = format!("wake it up with fg or SIGCONT; then agtmux send {pane} --key Enter");
                Err(Failure::refused(ApiError::new(ErrorCode::SendFailed, message).with_hint(hint)))
            }
            Some(_) => Ok(()),
        }
    }

    /// For whoever has to find out why.
    async fn dump(&self) {
        if !self.scene.actions.keeps_texts() {
            return;
        }
        if let Ok(look) = self.scene.look().await {
            // Without colours, which could part a secret in two.
            let rows: Vec<&str> = look.screen.rows().iter().map(|row| row.text()).collect();
            let shown = agtmux_core::sanitize::for_terminal(&agtmux_core::redact::text(&rows.join("\n")));
            tracing::warn!(pane = %self.scene.located.key.pane, shown, "a text was not taken");
        }
    }
}

fn unverified(bytes: usize, attempts: u32) -> SendReport {
    let (verified, by) = (Verified::Inconclusive, VerifiedBy::Nothing);
    SendReport { verified, by, attempts, bytes: bytes as u64, event_ids: Vec::new() }
}
