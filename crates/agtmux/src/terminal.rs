//! Properties of stdout: is it a terminal, how wide is it, does it show colours.

use std::io::IsTerminal;

/// The columns and lines to assume for a terminal that does not report its size.
const DEFAULT_SIZE: (usize, usize) = (80, 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StdoutTerminal {
    pub(crate) is_tty: bool,
    /// The width of the terminal in columns. `None` if lines may have any length.
    pub(crate) width: Option<usize>,
    pub(crate) height: usize,
    pub(crate) colour: bool,
    /// Whether the terminal understands no control sequences (`TERM=dumb`).
    pub(crate) is_dumb: bool,
}

impl StdoutTerminal {
    pub(crate) fn detect() -> Self {
        let stdout = std::io::stdout();
        let is_tty = stdout.is_terminal();
        let size = rustix::termios::tcgetwinsize(&stdout)
            .ok()
            .filter(|size| is_tty && size.ws_col > 0 && size.ws_row > 0)
            .map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        Self::decide(is_tty, size, |name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    /// Whether agtmux can overwrite lines that it has already printed on the terminal.
    pub(crate) fn can_redraw(&self) -> bool {
        self.is_tty && !self.is_dumb
    }

    fn decide(is_tty: bool, size: Option<(usize, usize)>, var: impl Fn(&str) -> Option<String>) -> Self {
        let (width, height) = size.unwrap_or(DEFAULT_SIZE);
        // Shells set COLUMNS without exporting it. If COLUMNS is in the environment, the user exported it on purpose.
        let exported_columns = var("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
        let is_dumb = var("TERM").is_some_and(|term| term == "dumb");
        Self {
            is_tty,
            width: exported_columns.or(is_tty.then_some(width)),
            height,
            colour: is_tty && !is_dumb && var("NO_COLOR").is_none(),
            is_dumb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(is_tty: bool, vars: &[(&str, &str)]) -> StdoutTerminal {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        StdoutTerminal::decide(is_tty, is_tty.then_some((100, 30)), var)
    }

    #[test]
    fn a_pipe_has_no_width_and_no_colour() {
        let piped = decide(false, &[("TERM", "xterm")]);
        assert_eq!((piped.width, piped.colour), (None, false));
        assert_eq!(decide(false, &[("COLUMNS", "60")]).width, Some(60));
    }

    #[test]
    fn a_terminal_has_width_and_colour_unless_the_environment_disables_them() {
        let tty = decide(true, &[("TERM", "xterm")]);
        assert_eq!((tty.width, tty.height, tty.colour), (Some(100), 30, true));
        assert!(!decide(true, &[("NO_COLOR", "1")]).colour);
        let dumb = decide(true, &[("TERM", "dumb")]);
        assert!(!dumb.colour && !dumb.can_redraw() && tty.can_redraw());
        assert_eq!(decide(true, &[("COLUMNS", "wide")]).width, Some(100));
    }
}
