//! Pastes text and waits until the input box shows it.

use std::time::Duration;

use agtmux_agents::KnownAgent;
use agtmux_api::config::TmuxBridgeConfig;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::{POLL_INTERVAL, TextSender, without_whitespace};
use crate::actions::pane_screen::PaneScreen;
use crate::actions::precondition;

/// How long a paste may take to show in the box. Some agents are busy for many seconds after a large text. Giving up
/// earlier would leave the text to become part of the next one.
const PASTE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the box must stay unchanged before Enter. A capture may show a half-drawn box, and an Enter that comes too
/// soon may become part of the paste. Manifests can ask for more.
const STABLE_FOR: Duration = Duration::from_millis(60);
/// The longest delay after a paste.
const MAX_PASTE_DELAY: Duration = Duration::from_millis(500);

/// What the screen shows of the pasted text before Enter.
pub(super) enum PastedText {
    /// The box shows this text.
    InBox(String, PaneScreen),
    /// No box is visible: the program draws none, or the text is taller than the window.
    NotVisible(PaneScreen),
}

impl PastedText {
    pub(super) fn screen(&self) -> &PaneScreen {
        match self {
            Self::InBox(_, capture) | Self::NotVisible(capture) => capture,
        }
    }
}

impl TextSender<'_> {
    /// Pastes the text if `allows` accepts the current screen. A paste into a dialog that has just opened could answer
    /// it.
    pub(super) async fn paste_text(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        self.refuse_truncation(text)?;
        match self.supports_bracketed_paste() {
            // tmux brackets a paste only after the agent has asked for it. Without brackets each line would be a
            // prompt, and some agents process each character separately.
            true => {
                let bracketed = format!("\u{1b}[200~{text}\u{1b}[201~");
                self.pane.type_if(PaneInput::Bracketed(&bracketed), allows).await
            }
            false => self.pane.type_if(PaneInput::Paste(text), allows).await,
        }
    }

    fn supports_bracketed_paste(&self) -> bool {
        self.input_box_agent().is_some_and(|agent| agent.typing_rules().knows_brackets)
    }

    /// Pastes the text and waits as long as agents need to process a text of this length.
    pub(in crate::actions) async fn paste_and_wait(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        self.paste_text(text, allows).await?;
        sleep(paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY)).await;
        Ok(())
    }

    /// Refuses a text with a line that the terminal would truncate: in line mode it keeps only the start of a long
    /// line.
    fn refuse_truncation(&self, text: &str) -> Result<(), ApiError> {
        let Some(most) = self.pane.processes.max_line_bytes(&self.pane.located.pane.tty) else { return Ok(()) };
        if text.split('\n').all(|line| line.len() <= most) {
            return Ok(());
        }
        Err(precondition(
            format!("nothing was typed: the pane's terminal is in line mode and truncates lines after {most} bytes"),
            "write the text to a file, or wait until the program in the pane reads single keys",
        ))
    }

    /// Waits until the box shows the text and stays unchanged. Without a visible box, waits as long as texts of this
    /// length need. Fails if a dialog opens: it must not receive the Enter.
    pub(super) async fn wait_until_shown(&self, before: Option<&str>, text: &str) -> Result<PastedText, ApiError> {
        let begun = Instant::now();
        let waits = paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY);
        let Some(agent) = self.input_box_agent() else {
            sleep(waits).await;
            return Ok(PastedText::NotVisible(self.pane.capture().await?));
        };
        let shortest = Duration::from_millis(self.bridge.text_enter_delay_ms).min(waits);
        let holds_still = settle_time(&agent);
        let (mut last, mut since) = (None, begun);
        loop {
            let (typed, capture) = self.capture_input_box(&agent).await?;
            let timed_out = begun.elapsed() >= PASTE_TIMEOUT;
            if last.as_ref() != Some(&typed) {
                (last, since) = (Some(typed.clone()), Instant::now());
            }
            let holds = since.elapsed() >= holds_still;
            let holds_for = |least: Duration| timed_out || (holds && begun.elapsed() >= least);
            let as_before = typed.as_deref().is_some_and(|shown| shown.is_empty() || Some(shown) == before);
            match typed {
                Some(_) if as_before && timed_out => return Err(self.text_not_shown()),
                Some(shown) if !as_before && holds_for(shortest) => return Ok(PastedText::InBox(shown, capture)),
                None if holds_for(waits) && (self.pane.forced || shows_text_end(&capture, text)) => {
                    return Ok(PastedText::NotVisible(capture));
                }
                None if timed_out => return Err(self.text_not_shown()),
                _ => {}
            }
            self.check_agent_alive().await?;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether the program has not read all typed input yet.
    pub(super) fn has_unread_input(&self) -> bool {
        self.pane.processes.unread_input(&self.pane.located.pane.tty).is_some_and(|bytes| bytes > 0)
    }

    /// The error if the text does not show. Enter is not pressed, because it could submit something else.
    fn text_not_shown(&self) -> ApiError {
        let pane = self.pane.located.reference();
        let message = "the text was typed but does not show in the input box; Enter was not pressed";
        let hint = format!("agtmux view-output {pane}; if the text shows later, agtmux send {pane} --key Enter");
        ApiError::new(ErrorCode::SendFailed, message).with_hint(hint)
    }

    /// Moves the cursor home if the text ends with the agent's line continuation sign, where Enter would insert a new
    /// line.
    pub(super) async fn move_cursor_home_if_continued(&self, text: &str) -> Result<(), ApiError> {
        let Some(agent) = self.input_box_agent() else { return Ok(()) };
        if agent.typing_rules().continued_by.as_deref().is_some_and(|sign| text.ends_with(sign)) {
            self.press_keys(&[TmuxKey::home()]).await?;
            sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
        }
        Ok(())
    }

    /// Dismisses suggested text, which can keep Enter from submitting.
    ///
    /// Escape also stops a turn, and pressed twice it clears some boxes. It is pressed once, only while the agent is
    /// at rest, and only for agents whose manifest says that Escape keeps the text.
    pub(super) async fn dismiss_suggestion(&self) -> Result<(), ApiError> {
        let at_rest = !matches!(self.pane.state(), Some(State::Running));
        let Some(agent) = self.input_box_agent().filter(|_| self.bridge.detect_ghost_text && at_rest) else {
            return Ok(());
        };
        if agent.typing_rules().escape_keeps && agent.shows_suggestion(&self.pane.capture().await?.screen) {
            self.press_keys(&[TmuxKey::escape()]).await?;
            sleep(Duration::from_millis(self.bridge.clear_delay_ms)).await;
        }
        Ok(())
    }
}

fn settle_time(agent: &KnownAgent) -> Duration {
    let own = agent.typing_rules().settle_ms;
    own.map_or(STABLE_FOR, |own| Duration::from_millis(own).clamp(STABLE_FOR, MAX_PASTE_DELAY))
}

/// Whether the screen shows the end of the text. A text taller than the window hides its box, but its end is visible.
fn shows_text_end(capture: &PaneScreen, text: &str) -> bool {
    let end = text.lines().rev().map(without_whitespace).find(|line| !line.is_empty()).unwrap_or_default();
    let shown: String = capture.screen.rows().iter().map(|row| without_whitespace(row.text())).collect();
    shown.contains(&end)
}

/// The delay between text and Enter. Agents take longer to process long texts.
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
