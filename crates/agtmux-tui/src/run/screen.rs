//! The alternate screen. The terminal is restored on exit, on errors and on panics.

use std::io::{BufWriter, Stdout, Write, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{execute, queue};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::model::{DrawnScreen, TerminalLook, TuiModel};
use crate::view;

/// Whether the terminal must be restored. Global, because the panic hook needs it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Reports clicks and the wheel. crossterm's own sequence also reports every move, which would wake the interface.
const REPORT_CLICKS: &str = "\u{1b}[?1000h\u{1b}[?1006h";
/// A frame is written at once, so that the terminal never shows half of it.
const FRAME_BYTES: usize = 64 * 1024;

pub(super) struct TuiScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl TuiScreen {
    pub(super) fn enter() -> std::io::Result<Self> {
        restore_on_panic();
        open()?;
        terminal().map(|terminal| Self { terminal }).inspect_err(|_| restore())
    }

    pub(super) fn draw(&mut self, model: &TuiModel, now: Timestamp) -> std::io::Result<DrawnScreen> {
        let mut drawn = DrawnScreen::default();
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| drawn = view::render(frame, model, now))?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Write::flush(self.terminal.backend_mut())?;
        Ok(drawn)
    }

    /// Gives the terminal to another program.
    pub(super) fn leave(&mut self) {
        restore();
    }

    /// Takes the terminal back. The next frame draws everything, because a new `Terminal` has drawn nothing.
    pub(super) fn come_back(&mut self) -> std::io::Result<()> {
        open()?;
        self.terminal = terminal()?;
        Ok(())
    }
}

fn terminal() -> std::io::Result<Terminal<CrosstermBackend<BufWriter<Stdout>>>> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(FRAME_BYTES, stdout())))
}

impl Drop for TuiScreen {
    fn drop(&mut self) {
        restore();
    }
}

fn open() -> std::io::Result<()> {
    enable_raw_mode()?;
    IS_OPEN.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All), Print(REPORT_CLICKS), EnableBracketedPaste)
        .inspect_err(|_| restore())
}

fn restore() {
    if !IS_OPEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Errors are ignored: the terminal may be gone.
    let end = (EndSynchronizedUpdate, DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = execute!(stdout(), end.0, end.1, end.2, end.3, end.4);
    let _ = disable_raw_mode();
}

/// Leaves the alternate screen before a panic message is printed, so that the message stays visible.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            usual(panic);
        }));
    });
}

/// What this terminal can show, by the environment of the program.
pub fn look_from_environment() -> TerminalLook {
    decide_look(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

fn decide_look(variable: impl Fn(&str) -> Option<String>) -> TerminalLook {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(&variable).unwrap_or_default().to_lowercase();
    TerminalLook {
        colour: variable("NO_COLOR").is_none(),
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
        home: variable("HOME").filter(|home| home.len() > 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_the_shapes_and_no_color_the_colours() {
        let look = |pairs: &[(&str, &str)]| {
            let look = decide_look(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()));
            (look.unicode, look.colour)
        };
        assert_eq!(look(&[("LANG", "en_US.UTF-8")]), (true, true));
        assert_eq!(look(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]), (false, true));
        assert_eq!(look(&[("LC_CTYPE", "C.utf8"), ("NO_COLOR", "1")]), (true, false));
        assert_eq!(look(&[]), (false, true));
    }
}
