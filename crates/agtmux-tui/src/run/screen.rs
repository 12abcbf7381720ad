//! The alternate screen. The terminal is restored on exit, on errors and on panics.

use std::cell::RefCell;
use std::io::{Write, stdout};
use std::rc::Rc;
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
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;

use super::clipboard;
use crate::model::{DrawnScreen, TerminalColours, TerminalLook, TuiModel};
use crate::view;

/// Whether the terminal must be restored. Global, because the panic hook needs it.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Reports clicks and the wheel. crossterm's own sequence also reports every move, which would wake the interface.
const REPORT_CLICKS: &str = "\u{1b}[?1000h\u{1b}[?1006h";

pub(super) struct TuiScreen {
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    frame: FrameBytes,
    /// What the terminal shows. None if that is not known.
    shown: Option<Buffer>,
}

/// The bytes of one frame. A frame is written at once, so that the terminal never shows half of it.
#[derive(Default, Clone)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl TuiScreen {
    pub(super) fn enter() -> std::io::Result<Self> {
        restore_on_panic();
        open()?;
        let frame = FrameBytes::default();
        let terminal = terminal(&frame).inspect_err(|_| restore())?;
        Ok(Self { terminal, frame, shown: None })
    }

    /// Draws a frame. A frame that is the same as the one before writes nothing.
    pub(super) fn draw(&mut self, model: &TuiModel, now: Timestamp) -> std::io::Result<DrawnScreen> {
        let mut drawn = DrawnScreen::default();
        let shown = &mut self.shown;
        let mut is_same = false;
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| {
            drawn = view::render(frame, model, now);
            let buffer = frame.buffer_mut();
            is_same = shown.as_ref() == Some(buffer);
            if !is_same {
                *shown = Some(buffer.clone());
            }
        })?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        let bytes = self.frame.0.take();
        if !is_same {
            self.write(&bytes)?;
        }
        Ok(drawn)
    }

    /// Puts a text into the clipboard of the terminal.
    pub(super) fn copy(&mut self, text: &str) -> std::io::Result<()> {
        self.write(clipboard::sequence(text).as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Gives the terminal to another program.
    pub(super) fn leave(&mut self) {
        restore();
    }

    /// Takes the terminal back. The next frame draws everything, because a new `Terminal` has drawn nothing.
    pub(super) fn come_back(&mut self) -> std::io::Result<()> {
        open()?;
        self.terminal = terminal(&self.frame)?;
        self.shown = None;
        Ok(())
    }
}

fn terminal(frame: &FrameBytes) -> std::io::Result<Terminal<CrosstermBackend<FrameBytes>>> {
    Terminal::new(CrosstermBackend::new(frame.clone()))
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
    TerminalLook {
        zone: TimeZone::system(),
        ..decide_look(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }
}

fn decide_look(variable: impl Fn(&str) -> Option<String>) -> TerminalLook {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(&variable).unwrap_or_default().to_lowercase();
    let terminal = variable("TERM").unwrap_or_default();
    let colours = match variable("COLORTERM").as_deref() {
        _ if variable("NO_COLOR").is_some() => TerminalColours::None,
        Some("truecolor" | "24bit") => TerminalColours::All,
        _ if terminal.contains("256color") || terminal.contains("direct") => TerminalColours::Indexed,
        _ => TerminalColours::Sixteen,
    };
    TerminalLook {
        colours,
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
        home: variable("HOME").filter(|home| home.len() > 1),
        in_tmux: variable("TMUX").is_some(),
        ..TerminalLook::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_the_shapes_and_the_colours() {
        let look = |pairs: &[(&str, &str)]| {
            let look = decide_look(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()));
            (look.unicode, look.colours)
        };
        use TerminalColours::{All, Indexed, None, Sixteen};
        assert_eq!(look(&[("LANG", "en_US.UTF-8")]), (true, Sixteen));
        assert_eq!(look(&[("LANG", "en_US.UTF-8"), ("LC_ALL", "C")]), (false, Sixteen));
        assert_eq!(look(&[("LC_CTYPE", "C.utf8"), ("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), (true, None));
        assert_eq!(look(&[("TERM", "tmux-256color")]), (false, Indexed));
        assert_eq!(look(&[("TERM", "xterm"), ("COLORTERM", "truecolor")]), (false, All));
    }
}
