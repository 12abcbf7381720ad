//! The terminal's second screen, which is left as it was found whatever happens.

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

/// What to put back. Global, because a panic has to find it too.
static SAVED_MODE: Mutex<Option<SavedMode>> = Mutex::new(None);

struct SavedMode {
    /// None when keys are not ours to read.
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

/// Cleared before it is written: clearing after a full line would take its last character away.
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

/// Keys are not shown, and come one by one. Ctrl-Z would leave the shell on our screen, so it does nothing.
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
    // Nothing can be done about a terminal that is gone.
    let _ = execute!(stdout(), EndSynchronizedUpdate, Show, EnableLineWrap, LeaveAlternateScreen);
    if let Some(modes) = found.modes {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
    }
}

/// What a panic says has to be readable afterwards.
fn restore_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        usual(panic);
    }));
}
