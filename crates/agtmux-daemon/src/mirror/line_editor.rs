//! Types a line into a shell without marks, so that this line runs and nothing else.
//!
//! The person may have begun a line, with the cursor anywhere in it, and the line editor may be in a mode in which keys are
//! commands. So agtmux first types a blank and looks what it moves, and presses Enter only after the screen shows exactly
//! the prompt and the typed line.

use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_core::mirror::{MirrorShell, ScreenText};
use agtmux_tmux::{CursorScreen, PaneInput};
use tokio::time::{Instant, sleep};

use super::screen::PromptScreen;
use super::terminal::SharedTerminal;
use super::{Mirrors, errors};

/// How long a shell may take to show the effect of a key.
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
const ECHO_INTERVAL: Duration = Duration::from_millis(15);
/// How long to wait for a prompt at which the half-written line can be given back.
const RETURN_TIMEOUT: Duration = Duration::from_secs(3);

const BLANK: &[u8] = b" ";
const BACKSPACE: &[u8] = b"\x7f";
const DELETE_LINE: &[u8] = b"\x15";
/// Deletes the part to the right of the cursor and then the part to the left of it.
const DELETE_BOTH_PARTS: &[u8] = b"\x0b\x15";

impl Mirrors {
    /// Runs this line. Stores the half-written line of the person before it removes that line from the prompt. Returns the
    /// prompt, and how many prompts the shell had reported. If this returns an error, the line does not run. The caller
    /// must hold the lock of the pane.
    pub(super) async fn run_line(
        &self,
        terminal: &SharedTerminal,
        text: &str,
        deadline: Instant,
    ) -> ApiResult<(PromptScreen, usize)> {
        let run = async {
            let prompt = self.empty_prompt(terminal, deadline).await?;
            self.submit(terminal, &prompt, text).await.map(|reports| (prompt, reports))
        };
        let run = run.await;
        if run.is_err() {
            self.give_line_back(terminal).await;
        }
        run
    }

    /// Waits for the prompt, and puts the line of the person aside.
    async fn empty_prompt(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<PromptScreen> {
        let shown = self.wait_for_screen_prompt(terminal, deadline).await?;
        let (left, right) = self.edited_line(terminal, &shown).await?;
        let line = left + &right;
        if line.is_empty() {
            return Ok(shown);
        }
        terminal.files.write_stash(&line).map_err(|error| errors::not_stored(&error.to_string()))?;
        let keys = if right.is_empty() { DELETE_LINE } else { DELETE_BOTH_PARTS };
        self.type_keys(terminal, PaneInput::Bytes(keys)).await?;
        let is_empty = |screen: &CursorScreen| terminal.prompt_line(screen).is_some_and(|line| line.typed.is_empty());
        let emptied = self.wait_for_echo(terminal, |screen| is_empty(screen).then_some(())).await?;
        emptied.ok_or_else(|| errors::unreadable_line(terminal.spec.pane))?;
        let shown = self.wait_for_screen_prompt(terminal, deadline).await?;
        let (left, right) = self.edited_line(terminal, &shown).await?;
        match left.is_empty() && right.is_empty() {
            true => Ok(shown),
            false => Err(errors::unreadable_line(terminal.spec.pane)),
        }
    }

    /// The parts of the line to the left and to the right of the cursor. Types a blank to find out, and removes the blank.
    pub(super) async fn edited_line(
        &self,
        terminal: &SharedTerminal,
        shown: &PromptScreen,
    ) -> ApiResult<(String, String)> {
        let pane = terminal.spec.pane;
        // A shell with a line editor may show more rows of the line.
        if terminal.spec.shell != MirrorShell::Posix && !text_of(&shown.screen).is_blank_below() {
            return Err(errors::unreadable_line(pane));
        }
        self.type_keys(terminal, PaneInput::Bytes(BLANK)).await?;
        let parts = |screen: &CursorScreen| {
            let right = text_of(screen).line_after_inserted_blank(text_of(&shown.screen))?;
            let left = terminal.prompt_line(screen)?.typed;
            Some((left.strip_suffix(' ')?.to_owned(), right))
        };
        let parts = self.wait_for_echo(terminal, parts).await?.ok_or_else(|| errors::no_insertion(pane))?;
        self.type_keys(terminal, PaneInput::Bytes(BACKSPACE)).await?;
        let is_removed = |screen: &CursorScreen| (screen.x, screen.y) == (shown.screen.x, shown.screen.y);
        let removed = self.wait_for_echo(terminal, |screen| is_removed(screen).then_some(())).await?;
        removed.map(|()| parts).ok_or_else(|| errors::no_insertion(pane))
    }

    /// Types the text at an empty prompt, and presses Enter if the screen shows the prompt and the text. Returns how many
    /// prompts the shell had reported before Enter.
    pub(super) async fn submit(
        &self,
        terminal: &SharedTerminal,
        prompt: &PromptScreen,
        text: &str,
    ) -> ApiResult<usize> {
        self.type_keys(terminal, PaneInput::Bytes(text.as_bytes())).await?;
        let shows = |screen: &CursorScreen| text_of(screen).shows_typed(&prompt.line.prompt, text).then_some(());
        if self.wait_for_echo(terminal, shows).await?.is_none() {
            if self.is_shell_in_foreground(terminal) {
                self.type_keys(terminal, PaneInput::Bytes(DELETE_BOTH_PARTS)).await?;
            }
            return Err(errors::not_shown(terminal.spec.pane));
        }
        let reports = terminal.prompt_reports().count;
        self.type_keys(terminal, PaneInput::Bytes(b"\r")).await.map(|()| reports)
    }

    /// Waits until two screens in a row are equal and `see` returns a value for them. `None` after the time limit, or if
    /// the shell does not have the terminal.
    async fn wait_for_echo<T>(
        &self,
        terminal: &SharedTerminal,
        see: impl Fn(&CursorScreen) -> Option<T>,
    ) -> ApiResult<Option<T>> {
        let until = Instant::now() + ECHO_TIMEOUT;
        let mut last = None;
        while self.is_shell_in_foreground(terminal) {
            let screen = self.look(terminal).await?;
            if let Some(found) = see(&screen).filter(|_| last.as_ref() == Some(&screen)) {
                return Ok(Some(found));
            }
            if Instant::now() >= until {
                break;
            }
            last = Some(screen);
            sleep(ECHO_INTERVAL).await;
        }
        Ok(None)
    }

    /// Types the stored line of the person again once the shell shows its prompt. If the person has begun another line or
    /// a program, the line stays stored. The caller must hold the lock of the pane.
    pub(super) async fn give_line_back(&self, terminal: &SharedTerminal) {
        let Some(stash) = terminal.files.read_stash() else { return };
        let deadline = Instant::now() + RETURN_TIMEOUT;
        let Ok(shown) = self.wait_for_screen_prompt(terminal, deadline).await else { return };
        // After an error, a part of the line may still be there.
        let Some(missing) = stash.strip_prefix(shown.line.typed.as_str()) else { return };
        if missing.is_empty() || self.type_keys(terminal, PaneInput::Bytes(missing.as_bytes())).await.is_ok() {
            terminal.files.remove_stash();
        }
    }
}

fn text_of(screen: &CursorScreen) -> ScreenText<'_> {
    ScreenText { rows: &screen.rows, cursor_column: screen.x, cursor_row: screen.y }
}
