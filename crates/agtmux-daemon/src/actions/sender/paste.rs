//! Pastes text and waits until the input box shows it.

use std::time::Duration;

use agtmux_agents::KnownAgent;
use agtmux_api::config::TmuxBridgeConfig;
use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_core::state::State;
use agtmux_tmux::{PaneInput, TmuxKey};
use tokio::time::{Instant, sleep};

use super::{POLL_INTERVAL, TextSender, without_whitespace};
use crate::actions::pane_screen::PaneScreen;
use crate::actions::precondition;

/// How long the input box may take to show pasted text. Some agents are busy for many seconds after a large text. With
/// a shorter timeout, the text could appear after agtmux has reported a failure, and become part of the next text.
const PASTE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the input box must stay unchanged before Enter. A capture may show a half-drawn box, and an Enter that
/// comes too soon may become part of the paste. A manifest can set a longer time.
const STABLE_FOR: Duration = Duration::from_millis(60);
/// The longest delay between a paste and Enter.
const MAX_PASTE_DELAY: Duration = Duration::from_millis(500);

/// What the screen shows of the pasted text before Enter is pressed.
pub(super) enum PastedText {
    /// The input box shows this text.
    InBox(String, PaneScreen),
    /// No input box is visible: the program draws none, or the text is taller than the window.
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
    /// the dialog.
    pub(super) async fn paste_text(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> ApiResult<()>,
    ) -> ApiResult<()> {
        self.refuse_truncation(text)?;
        match self.supports_bracketed_paste() {
            // Add the brackets here, because tmux adds them only after the agent has enabled bracketed paste. Without
            // brackets each line would be a prompt, and some agents process each character separately.
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

    /// Pastes the text, then waits for the time that agents need to process a text of this length.
    pub(in crate::actions) async fn paste_and_wait(
        &self,
        text: &str,
        allows: impl FnOnce(&PaneScreen) -> ApiResult<()>,
    ) -> ApiResult<()> {
        self.paste_text(text, allows).await?;
        sleep(paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY)).await;
        Ok(())
    }

    /// Fails if the terminal would truncate a line of the text. In line mode, the terminal keeps only the start of a
    /// long line.
    fn refuse_truncation(&self, text: &str) -> ApiResult<()> {
        let Some(most) = self.pane.processes.max_line_bytes(&self.pane.located.pane.tty) else { return Ok(()) };
        if text.split('\n').all(|line| line.len() <= most) {
            return Ok(());
        }
        Err(precondition(
            format!("nothing was typed: the pane's terminal is in line mode and truncates lines after {most} bytes"),
            "write the text to a file, or wait until the program in the pane reads single keys",
        ))
    }

    /// Waits until the input box shows the text and stays unchanged. If no box is visible, waits for the time that
    /// agents need for a text of this length. Fails if a dialog opens, because Enter would answer the dialog.
    pub(super) async fn wait_until_shown(&self, before: Option<&str>, text: &str) -> ApiResult<PastedText> {
        let begun = Instant::now();
        let waits = paste_delay(&self.bridge, text.chars().count()).min(MAX_PASTE_DELAY);
        let Some(agent) = self.input_box_agent() else {
            sleep(waits).await;
            return Ok(PastedText::NotVisible(self.pane.capture().await?));
        };
        let shortest = Duration::from_millis(self.bridge.text_enter_delay_ms).min(waits);
        let delays = PasteDelays { stable_for: settle_time(&agent), with_box: shortest, without_box: waits };
        let mut watch = PasteWatch::new(before, delays, begun);
        loop {
            let (typed, capture) = self.capture_input_box(&agent).await?;
            match watch.judge(typed.as_deref(), Instant::now()) {
                PasteProgress::Shown => return Ok(PastedText::InBox(typed.unwrap_or_default(), capture)),
                PasteProgress::NoBox { .. } if self.pane.forced || shows_text_end(&capture, text) => {
                    return Ok(PastedText::NotVisible(capture));
                }
                PasteProgress::TimedOut | PasteProgress::NoBox { timed_out: true } => return Err(self.text_not_shown()),
                PasteProgress::Pending | PasteProgress::NoBox { .. } => {}
            }
            self.check_agent_alive().await?;
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Whether there is typed input that the program has not read yet.
    pub(super) fn has_unread_input(&self) -> bool {
        self.pane.processes.unread_input(&self.pane.located.pane.tty).is_some_and(|bytes| bytes > 0)
    }

    /// The error when the input box does not show the pasted text. Enter is not pressed in this case, because it could
    /// submit another text.
    fn text_not_shown(&self) -> ApiError {
        let pane = self.pane.located.reference();
        let message = "the text was typed but does not show in the input box; Enter was not pressed";
        let hint = format!("agtmux view-output {pane}; if the text shows later, agtmux send {pane} --key Enter");
        ApiError::new(ErrorCode::SendFailed, message).with_hint(hint)
    }

    /// Presses Home if the text ends with the agent's line continuation sign. If the cursor were right after the sign,
    /// Enter would insert a new line instead of submitting the text.
    pub(super) async fn move_cursor_home_if_continued(&self, text: &str) -> ApiResult<()> {
        let Some(agent) = self.input_box_agent() else { return Ok(()) };
        if agent.typing_rules().continued_by.as_deref().is_some_and(|sign| text.ends_with(sign)) {
            self.press_keys(&[TmuxKey::home()]).await?;
            sleep(Duration::from_millis(self.bridge.sequential_send_delay_ms)).await;
        }
        Ok(())
    }

    /// Presses Escape to dismiss a suggestion in the input box. A suggestion can keep Enter from submitting the text.
    ///
    /// Escape also stops a running turn, and two presses clear some input boxes. Therefore Escape is pressed once, only
    /// while the agent is at rest, and only for agents whose manifest says that Escape keeps the text.
    pub(super) async fn dismiss_suggestion(&self) -> ApiResult<()> {
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

/// The progress of a paste, as the captures after it show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PasteProgress {
    Pending,
    /// The input box shows a new text and has stopped changing.
    Shown,
    /// No input box is visible, and the time that agents need for a text of this length has passed.
    NoBox {
        timed_out: bool,
    },
    /// The timeout has passed, and the input box is empty or still shows the text from before the paste.
    TimedOut,
}

/// The shortest waits before Enter is pressed.
struct PasteDelays {
    /// How long the input box must stay unchanged.
    stable_for: Duration,
    /// How much time must pass after the paste if an input box is visible.
    with_box: Duration,
    without_box: Duration,
}

/// Follows a paste by comparing each capture with the ones before.
struct PasteWatch<'a> {
    /// The text of the input box before the paste.
    before: Option<&'a str>,
    delays: PasteDelays,
    begun: Instant,
    last: Option<Option<String>>,
    unchanged_since: Instant,
}

impl<'a> PasteWatch<'a> {
    fn new(before: Option<&'a str>, delays: PasteDelays, begun: Instant) -> Self {
        Self { before, delays, begun, last: None, unchanged_since: begun }
    }

    /// Takes the next capture into account and returns the progress of the paste. `typed` is the text in the input box,
    /// or `None` if no box is visible.
    fn judge(&mut self, typed: Option<&str>, now: Instant) -> PasteProgress {
        let timed_out = now - self.begun >= PASTE_TIMEOUT;
        if self.last.as_ref().map(Option::as_deref) != Some(typed) {
            (self.last, self.unchanged_since) = (Some(typed.map(str::to_owned)), now);
        }
        let is_stable = now - self.unchanged_since >= self.delays.stable_for;
        let is_after = |shortest: Duration| timed_out || (is_stable && now - self.begun >= shortest);
        match typed {
            Some(shown) if shown.is_empty() || Some(shown) == self.before => {
                if timed_out {
                    PasteProgress::TimedOut
                } else {
                    PasteProgress::Pending
                }
            }
            Some(_) if is_after(self.delays.with_box) => PasteProgress::Shown,
            None if is_after(self.delays.without_box) => PasteProgress::NoBox { timed_out },
            _ => PasteProgress::Pending,
        }
    }
}

fn settle_time(agent: &KnownAgent) -> Duration {
    let own = agent.typing_rules().settle_ms;
    own.map_or(STABLE_FOR, |own| Duration::from_millis(own).clamp(STABLE_FOR, MAX_PASTE_DELAY))
}

/// Whether the screen shows the end of the text. If a text is taller than the window, its input box is not recognised,
/// but the end of the text is visible.
fn shows_text_end(capture: &PaneScreen, text: &str) -> bool {
    let end = text.lines().rev().map(without_whitespace).find(|line| !line.is_empty()).unwrap_or_default();
    let shown: String = capture.screen.rows().iter().map(|row| without_whitespace(row.text())).collect();
    shown.contains(&end)
}

/// The delay between a pasted text and Enter. Agents take longer to process long texts.
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

    const MS: Duration = Duration::from_millis(1);

    /// Judges a series of captures after a paste. `before` is the text in the input box before the paste. Each capture
    /// consists of the milliseconds since the paste and the text in the box.
    fn judge_all<const N: usize>(before: &str, captures: [(u32, Option<&str>); N]) -> [PasteProgress; N] {
        let begun = Instant::now();
        let delays = PasteDelays { stable_for: 60 * MS, with_box: 120 * MS, without_box: 500 * MS };
        let mut watch = PasteWatch::new(Some(before), delays, begun);
        captures.map(|(at, typed)| watch.judge(typed, begun + at * MS))
    }

    #[test]
    fn a_text_that_does_not_show_is_given_up_after_the_timeout() {
        use PasteProgress::{Pending, TimedOut};
        for (before, shown) in [("", ""), ("draft", "draft"), ("draft", "")] {
            let captures = [0, 500, 19_999, 20_000].map(|at| (at, Some(shown)));
            assert_eq!(judge_all(before, captures), [Pending, Pending, Pending, TimedOut], "{before} {shown}");
        }
    }

    #[test]
    fn a_box_must_show_the_text_unchanged_before_enter() {
        use PasteProgress::{Pending, Shown};
        let drawn = [(10, Some("")), (30, Some("some")), (100, Some("some text")), (159, Some("some text"))];
        assert_eq!(judge_all("", drawn), [Pending; 4]);
        let captures = [(100, Some("some text")), (159, Some("some text")), (160, Some("some text"))];
        assert_eq!(judge_all("", captures), [Pending, Pending, Shown]);
        // Enter is not pressed before the configured delay.
        let captures = [(10, Some("some text")), (119, Some("some text")), (120, Some("some text"))];
        assert_eq!(judge_all("", captures), [Pending, Pending, Shown]);
        // At the timeout, a box that keeps changing counts as shown.
        let captures = [(19_990, Some("spins /")), (20_000, Some("spins -"))];
        assert_eq!(judge_all("", captures), [Pending, Shown]);
    }

    #[test]
    fn a_hidden_box_needs_the_time_of_its_text() {
        use PasteProgress::{NoBox, Pending};
        let captures = [0, 499, 500, 20_000].map(|at| (at, None));
        let expected = [Pending, Pending, NoBox { timed_out: false }, NoBox { timed_out: true }];
        assert_eq!(judge_all("", captures), expected);
    }
}
