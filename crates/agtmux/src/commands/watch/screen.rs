//! The alternate screen of the terminal. agtmux restores the terminal's previous state when it exits or panics.

use std::io::{Stdout, Write, stdout};
use std::sync::{Mutex, PoisonError};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::error::{CliError, stdout_failed};

/// The terminal's previous state. It is global, because the panic hook needs it.
static SAVED_MODE: Mutex<Option<SavedMode>> = Mutex::new(None);

struct SavedMode {
    /// The previous terminal settings. `None` if stdin is not a terminal.
    modes: Option<Termios>,
}

#[derive(Debug)]
pub(super) struct AlternateScreen(());

impl AlternateScreen {
    pub(super) fn enter() -> Result<Self, CliError> {
        restore_on_panic();
        *SAVED_MODE.lock().unwrap_or_else(PoisonError::into_inner) = Some(SavedMode { modes: disable_echo() });
        let screen = Self(());
        execute!(stdout(), EnterAlternateScreen, DisableLineWrap, Hide).map_err(stdout_failed)?;
        Ok(screen)
    }

    pub(super) fn draw(&self, lines: &[String]) -> Result<(), CliError> {
        paint(&mut stdout(), lines).map_err(stdout_failed)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Draws the lines. Clears each line before it is written: clearing after a full line would erase its last character.
fn paint(out: &mut Stdout, lines: &[String]) -> std::io::Result<()> {
    queue!(out, BeginSynchronizedUpdate, MoveTo(0, 0))?;
    for (i, line) in lines.iter().enumerate() {
        let is_last = i + 1 == lines.len();
        let old = if is_last { ClearType::FromCursorDown } else { ClearType::CurrentLine };
        queue!(out, Clear(old), Print(line))?;
        if !is_last {
            queue!(out, Print("\r\n"))?;
        }
    }
    queue!(out, EndSynchronizedUpdate)?;
    out.flush()
}

/// Disables echo and line buffering. Disables Ctrl-Z too, which would leave the shell on the alternate screen.
fn disable_echo() -> Option<Termios> {
    let stdin = std::io::stdin();
    let found = tcgetattr(&stdin).ok()?;
    let mut quiet = found.clone();
    quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
    quiet.special_codes[SpecialCodeIndex::VSUSP] = 0;
    tcsetattr(&stdin, OptionalActions::Now, &quiet).ok()?;
    Some(found)
}

fn restore() {
    let Some(found) = SAVED_MODE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    // Errors are ignored: the terminal may be gone.
    let _ = execute!(stdout(), EndSynchronizedUpdate, Show, EnableLineWrap, LeaveAlternateScreen);
    if let Some(modes) = found.modes {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
    }
}

/// Leaves the alternate screen before a panic message is printed, so that the message stays visible.
fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        usual(panic);
    }));
}
