//! Typing, and waiting until it is there.

use std::time::Duration;

use agtmux_api::config::TmuxBridge;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::state::State;
use agtmux_tmux::{Key, Typing};
use tokio::time::{Instant, sleep};

use super::{LOOK_EVERY, Sender, squashed};
use crate::actions::Failure;
use crate::actions::look::Look;

/// A paste takes this long at the most to stand in the box. Some agents are busy with themselves for many seconds after a
/// large text; giving up earlier would leave it to be taken for a part of the next one.
const PASTED_WITHIN: Duration = Duration::from_secs(20);
/// What is drawn must stay so for this long, unless its agent needs more: a look may come in the middle of a drawing, and an
/// Enter that follows too soon may be taken for a part of the paste.
const HOLDS_STILL: Duration = Duration::from_millis(60);
/// After a paste nobody has to wait longer than this.
const LONGEST_AFTER_PASTE: Duration = Duration::from_millis(500);

/// What is known of the text before Enter.
pub(super) enum Standing {
    /// The box shows this.
    InBox(String, Look),
    /// There is no box to see: the program draws none, or the text is higher than its window.
    Unseen(Look),
}

impl Standing {
    pub(super) fn look(&self) -> &Look {
        match self {
            Self::InBox(_, look) | Self::Unseen(look) => look,
        }
    }
}

impl Sender<'_> {
    /// If a last look allows it: what is pasted into a dialog that has just opened could answer it.
    pub(super) async fn put_text(
        &self,
        text: &str,
        allows: impl FnOnce(&Look) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.refuse_to_cut(text)?;
        match self.knows_brackets() {
            // tmux puts brackets around it only once the agent has asked for them; without, each line would be a prompt, and
            // some agents are busy with each character.
            true => {
                let bracketed = format!("\u{1b}[200~{text}\u{1b}[201~");
                self.scene.types_seeing(Typing::Bracketed(&bracketed), allows).await
            }
            false => self.scene.types_seeing(Typing::Paste(text), allows).await,
        }
    }

    fn knows_brackets(&self) -> bool {
        let registry = self.scene.actions.0.discovery.registry();
        let rules = self.boxed().and_then(|agent_type| registry.typing(&agent_type).cloned());
        rules.is_some_and(|rules| rules.knows_brackets)
    }

    /// The same, with the time that it takes to be digested.
    pub(in crate::actions) async fn type_text(
        &self,
        text: &str,
        allows: impl FnOnce(&Look) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.put_text(text, allows).await?;
        sleep(delay(&self.bridge, text.chars().count()).min(LONGEST_AFTER_PASTE)).await;
        Ok(())
    }

    /// A terminal that collects lines keeps only the start of a long one.
    fn refuse_to_cut(&self, text: &str) -> Result<(), Failure> {
        let Some(most) = self.scene.processes.longest_line(&self.scene.located.pane.tty) else { return Ok(()) };
        if text.split('\n').all(|line| line.len() <= most) {
            return Ok(());
        }
        Err(Failure::precondition(
            format!("nothing was typed: what runs there reads lines, and of a line its terminal keeps {most} bytes"),
            "put it into a file, or wait until the program there takes what is typed as it comes",
        ))
    }

    /// Returns when the text stands in the box and holds still. What is seen ends the wait; where nothing can be seen, it
    /// takes as long as texts of this length need at the most. A dialog that opened meanwhile must not get our Enter.
    pub(super) async fn stands(&self, before: Option<&str>, text: &str) -> Result<Standing, Failure> {
        let begun = Instant::now();
        let waits = delay(&self.bridge, text.chars().count()).min(LONGEST_AFTER_PASTE);
        let Some(agent_type) = self.boxed() else {
            sleep(waits).await;
            return Ok(Standing::Unseen(self.scene.look().await?));
        };
        let shortest = Duration::from_millis(self.bridge.text_enter_delay_ms).min(waits);
        let holds_still = self.settles(&agent_type);
        let (mut last, mut since) = (None, begun);
        loop {
            let (typed, look) = self.seen(&agent_type).await?;
            let late = begun.elapsed() >= PASTED_WITHIN;
            if last.as_ref() != Some(&typed) {
                (last, since) = (Some(typed.clone()), Instant::now());
            }
            let holds = since.elapsed() >= holds_still;
            let holds_for = |least: Duration| late || (holds && begun.elapsed() >= least);
            let as_before = typed.as_deref().is_some_and(|shown| shown.is_empty() || Some(shown) == before);
            match typed {
                Some(_) if as_before && late => return Err(self.nothing_came()),
                Some(shown) if !as_before && holds_for(shortest) => return Ok(Standing::InBox(shown, look)),
                None if holds_for(waits) && (self.scene.forced || shows_end(&look, text)) => {
                    return Ok(Standing::Unseen(look));
                }
                None if late => return Err(self.nothing_came()),
                _ => {}
            }
            self.still_lives().await?;
            sleep(LOOK_EVERY).await;
        }
    }

    fn settles(&self, agent_type: &str) -> Duration {
        let registry = self.scene.actions.0.discovery.registry();
        let own = registry.typing(agent_type).and_then(|typing| typing.settle_ms);
        own.map_or(HOLDS_STILL, |own| Duration::from_millis(own).clamp(HOLDS_STILL, LONGEST_AFTER_PASTE))
    }

    /// Whether the program has not even read what was typed.
    pub(super) fn is_unread(&self) -> bool {
        self.scene.processes.unread_input(&self.scene.located.pane.tty).is_some_and(|bytes| bytes > 0)
    }

    /// Enter is not pressed: nobody knows what it would be for.
    fn nothing_came(&self) -> Failure {
        let pane = self.scene.located.reference();
        let message = "the text was typed, but does not show in the input box; Enter was not pressed";
        let hint = format!("agtmux view-output {pane}; if it shows there later, agtmux send {pane} --key Enter");
        Failure::refused(ApiError::new(ErrorCode::SendFailed, message).with_hint(hint))
    }

    /// Where Enter right behind the end of the text would make a new line, the cursor goes somewhere else.
    pub(super) async fn step_aside(&self, text: &str) -> Result<(), Failure> {
        let Some(agent_type) = self.boxed() else { return Ok(()) };
        let registry = self.scene.actions.0.discovery.registry();
        let sign = registry.typing(&agent_type).and_then(|typing| typing.continued_by.as_deref());
        if sign.is_some_and(|sign| text.ends_with(sign)) {
            self.press_looking(&[Key::home()]).await?;
            sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
        }
        Ok(())
    }

    /// Suggested text may keep Enter from sending. Escape puts it away, but it also stops a turn, twice in a row it erases
    /// in some boxes, and not every agent leaves text alone at all: pressed once, at rest, where that was seen to be safe.
    pub(super) async fn dismiss_ghost(&self) -> Result<(), Failure> {
        let at_rest = !matches!(self.scene.state(), Some(State::Running));
        let Some(agent_type) = self.boxed().filter(|_| self.bridge.detect_ghost_text && at_rest) else { return Ok(()) };
        let registry = self.scene.actions.0.discovery.registry();
        let keeps = registry.typing(&agent_type).is_some_and(|typing| typing.escape_keeps);
        if keeps && registry.suggests(&agent_type, &self.scene.look().await?.screen) {
            self.press_looking(&[Key::escape()]).await?;
            sleep(Duration::from_millis(self.bridge.clear_delay_ms)).await;
        }
        Ok(())
    }
}

/// A text may be higher than the window, so that no box is seen around it. Then its end is.
fn shows_end(look: &Look, text: &str) -> bool {
    let end = text.lines().rev().map(squashed).find(|line| !line.is_empty()).unwrap_or_default();
    let shown: String = look.screen.rows().iter().map(|row| squashed(row.text())).collect();
    shown.contains(&end)
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
    fn adaptive_delay_of_send_literal_text() {
        let bridge = agtmux_api::config::Config::default().tmux_bridge;
        let millis = |characters| delay(&bridge, characters).as_millis();
        assert_eq!([0, 200, 209, 210, 1200].map(millis), [120, 120, 120, 121, 220]);
    }
}
