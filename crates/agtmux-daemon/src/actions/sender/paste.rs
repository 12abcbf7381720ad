//! Typing, and waiting until it is there.

use std::time::Duration;

use agtmux_api::config::TmuxBridgeConfig;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::{POLL_INTERVAL, TextSender, without_whitespace};
use crate::actions::ActionFailure;
use crate::actions::pane_screen::PaneScreen;

/// A paste takes this long at the most to stand in the box. Some agents are busy with themselves for many seconds after a
/// large text; giving up earlier would leave it to be taken for a part of the next one.
const PASTE_TIMEOUT: Duration = Duration::from_secs(20);
/// What is drawn must stay so for this long, unless its agent needs more: a look may come in the middle of a drawing, and an
/// Enter that follows too soon may be taken for a part of the paste.
const STABLE_FOR: Duration = Duration::from_millis(60);
/// After a paste nobody has to wait longer than this.
const MAX_PASTE_DELAY: Duration = Duration::from_millis(500);

/// What is known of the text before Enter.
pub(super) enum PastedText {
    /// The box shows this.
    InBox(String, PaneScreen),
    /// There is no box to see: the program draws none, or the text is higher than its window.
    NotVisible(PaneScreen),
}

impl PastedText {
    pub(super) fn screen(&self) -> &PaneScreen {
        match self {
            Self::InBox(_, look) | Self::NotVisible(look) => look,
        }
    }
}

impl TextSender<'_> {
    /// If a last look allows it: what is pasted into a dialog that has just opened could answer it.
    pub(super) async fn paste_text(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> Result<(), ActionFailure>,
    ) -> Result<(), ActionFailure> {
        self.refuse_truncation(text)?;
        match self.supports_bracketed_paste() {
            // tmux puts brackets around it only once the agent has asked for them; without, each line would be a prompt, and
            // some agents are busy with each character.
            true => {
                let bracketed = format!("\u{1b}[200~{text}\u{1b}[201~");
                self.pane.type_if(PaneInput::Bracketed(&bracketed), allows).await
            }
            false => self.pane.type_if(PaneInput::Paste(text), allows).await,
        }
    }

    fn supports_bracketed_paste(&self) -> bool {
        let registry = self.pane.actions.0.discovery.registry();
        let rules = self.input_box_agent().and_then(|agent_type| registry.typing_rules(&agent_type).cloned());
        rules.is_some_and(|rules| rules.knows_brackets)
    }

    /// The same, with the time that it takes to be digested.
    pub(in crate::actions) async fn paste_and_wait(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> Result<(), ActionFailure>,
    ) -> Result<(), ActionFailure> {
        self.paste_text(text, allows).await?;
        sleep(paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY)).await;
        Ok(())
    }

    /// A terminal that collects lines keeps only the start of a long one.
    fn refuse_truncation(&self, text: &str) -> Result<(), ActionFailure> {
        let Some(most) = self.pane.processes.max_line_bytes(&self.pane.located.pane.tty) else { return Ok(()) };
        if text.split('\n').all(|line| line.len() <= most) {
            return Ok(());
        }
        Err(ActionFailure::precondition(
            format!("nothing was typed: what runs there reads lines, and of a line its terminal keeps {most} bytes"),
            "put it into a file, or wait until the program there takes what is typed as it comes",
        ))
    }

    /// Returns when the text stands in the box and holds still. What is seen ends the wait; where nothing can be seen, it
    /// takes as long as texts of this length need at the most. A dialog that opened meanwhile must not get our Enter.
    pub(super) async fn wait_until_shown(&self, before: Option<&str>, text: &str) -> Result<PastedText, ActionFailure> {
        let begun = Instant::now();
        let waits = paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY);
        let Some(agent_type) = self.input_box_agent() else {
            sleep(waits).await;
            return Ok(PastedText::NotVisible(self.pane.capture().await?));
        };
        let shortest = Duration::from_millis(self.bridge.text_enter_delay_ms).min(waits);
        let holds_still = self.settle_time(&agent_type);
        let (mut last, mut since) = (None, begun);
        loop {
            let (typed, look) = self.capture_input_box(&agent_type).await?;
            let late = begun.elapsed() >= PASTE_TIMEOUT;
            if last.as_ref() != Some(&typed) {
                (last, since) = (Some(typed.clone()), Instant::now());
            }
            let holds = since.elapsed() >= holds_still;
            let holds_for = |least: Duration| late || (holds && begun.elapsed() >= least);
            let as_before = typed.as_deref().is_some_and(|shown| shown.is_empty() || Some(shown) == before);
            match typed {
                Some(_) if as_before && late => return Err(self.text_not_shown()),
                Some(shown) if !as_before && holds_for(shortest) => return Ok(PastedText::InBox(shown, look)),
                None if holds_for(waits) && (self.pane.forced || shows_text_end(&look, text)) => {
                    return Ok(PastedText::NotVisible(look));
                }
                None if late => return Err(self.text_not_shown()),
                _ => {}
            }
            self.check_agent_alive().await?;
            sleep(POLL_INTERVAL).await;
        }
    }

    fn settle_time(&self, agent_type: &str) -> Duration {
        let registry = self.pane.actions.0.discovery.registry();
        let own = registry.typing_rules(agent_type).and_then(|typing| typing.settle_ms);
        own.map_or(STABLE_FOR, |own| Duration::from_millis(own).clamp(STABLE_FOR, MAX_PASTE_DELAY))
    }

    /// Whether the program has not even read what was typed.
    pub(super) fn has_unread_input(&self) -> bool {
        self.pane.processes.unread_input(&self.pane.located.pane.tty).is_some_and(|bytes| bytes > 0)
    }

    /// Enter is not pressed: nobody knows what it would be for.
    fn text_not_shown(&self) -> ActionFailure {
        let pane = self.pane.located.reference();
        let message = "the text was typed, but does not show in the input box; Enter was not pressed";
        let hint = format!("agtmux view-output {pane}; if it shows there later, agtmux send {pane} --key Enter");
        ActionFailure::refused(ApiError::new(ErrorCode::SendFailed, message).with_hint(hint))
    }

    /// Where Enter right behind the end of the text would make a new line, the cursor goes somewhere else.
    pub(super) async fn move_cursor_home_if_continued(&self, text: &str) -> Result<(), ActionFailure> {
        let Some(agent_type) = self.input_box_agent() else { return Ok(()) };
        let registry = self.pane.actions.0.discovery.registry();
        let sign = registry.typing_rules(&agent_type).and_then(|typing| typing.continued_by.as_deref());
        if sign.is_some_and(|sign| text.ends_with(sign)) {
            self.press_keys(&[TmuxKey::home()]).await?;
            sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
        }
        Ok(())
    }

    /// Suggested text may keep Enter from sending. Escape puts it away, but it also stops a turn, twice in a row it erases
    /// in some boxes, and not every agent leaves text alone at all: pressed once, at rest, where that was seen to be safe.
    pub(super) async fn dismiss_suggestion(&self) -> Result<(), ActionFailure> {
        let at_rest = !matches!(self.pane.state(), Some(State::Running));
        let Some(agent_type) = self.input_box_agent().filter(|_| self.bridge.detect_ghost_text && at_rest) else {
            return Ok(());
        };
        let registry = self.pane.actions.0.discovery.registry();
        let keeps = registry.typing_rules(&agent_type).is_some_and(|typing| typing.escape_keeps);
        if keeps && registry.shows_suggestion(&agent_type, &self.pane.capture().await?.screen) {
            self.press_keys(&[TmuxKey::escape()]).await?;
            sleep(Duration::from_millis(self.bridge.clear_delay_ms)).await;
        }
        Ok(())
    }
}

/// A text may be higher than the window, so that no box is seen around it. Then its end is.
fn shows_text_end(look: &PaneScreen, text: &str) -> bool {
    let end = text.lines().rev().map(without_whitespace).find(|line| !line.is_empty()).unwrap_or_default();
    let shown: String = look.screen.rows().iter().map(|row| without_whitespace(row.text())).collect();
    shown.contains(&end)
}

/// Long texts take agents longer to digest.
fn paste_delay(bridge: &TmuxBridgeConfig, characters: usize) -> Duration {
    let more = characters.saturating_sub(200) / 10;
    Duration::from_millis(bridge.text_enter_delay_ms + u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adaptive_delay_of_send_literal_text() {
        let bridge = agtmux_api::config::Config::default().tmux_bridge;
        let millis = |characters| paste_delay(&bridge, characters).as_millis();
        assert_eq!([0, 200, 209, 210, 1200].map(millis), [120, 120, 120, 121, 220]);
    }
}
