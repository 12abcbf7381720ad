//! Messages on stderr: what happened, why, and the next command to run.

use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use agtmux_core::sanitize;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CliMessage {
    what: String,
    why: Vec<String>,
    hints: Vec<String>,
}

impl CliMessage {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    pub(crate) fn because(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The first line of the message, for output that has room for one line only.
    pub(crate) fn headline(&self) -> String {
        sanitize::for_terminal(self.what.lines().next().unwrap_or_default())
    }

    pub(crate) fn print_stderr(&self) {
        // A closed stderr is not an error.
        let _ = write!(std::io::stderr(), "{self}");
    }
}

/// Prints clap's message about wrong arguments, or the help. The message quotes arguments, so it is printed without
/// clap's colours and sanitized if an argument contains characters that act on a terminal.
pub(crate) fn print_usage_error(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let is_hostile = |argument: &OsString| {
        let text = argument.to_string_lossy();
        sanitize::for_terminal(&text) != text
    };
    if error.use_stderr() && arguments.iter().any(is_hostile) {
        error.render().to_string().lines().for_each(line);
    } else {
        // A closed stdout or stderr is not an error.
        let _ = error.print();
    }
    u8::try_from(error.exit_code()).unwrap_or(2).into()
}

/// The message for a daemon whose version differs from this program's, but whose API is the same.
pub(crate) fn other_version(daemon: &str) -> CliMessage {
    let own = agtmux_api::VERSION;
    CliMessage::new(format!("the daemon is version {daemon}; this is agtmux {own}; run `agtmux daemon restart`"))
}

/// Sanitizes a line that is not a `CliMessage` and prints it on stderr, for example a line of a dialog.
pub(crate) fn line(foreign: &str) {
    let _ = writeln!(std::io::stderr(), "{}", sanitize::for_terminal(foreign));
}

impl<T: Into<String>> From<T> for CliMessage {
    fn from(what: T) -> Self {
        Self::new(what)
    }
}

impl fmt::Display for CliMessage {
    /// Sanitizes every line, because lines may contain paths, names and text from other programs. Every line ends with
    /// a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.what.lines();
        writeln!(f, "agtmux: {}", sanitize::for_terminal(lines.next().unwrap_or_default()))?;
        for line in lines.chain(self.why.iter().flat_map(|why| why.lines())) {
            writeln!(f, "  {}", sanitize::for_terminal(line))?;
        }
        for hint in &self.hints {
            writeln!(f, "  try: {}", sanitize::for_terminal(hint))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_what_why_and_the_next_command() {
        let message = CliMessage::new("it broke").because("the disk is full").hint("df -h");
        assert_eq!(message.to_string(), "agtmux: it broke\n  the disk is full\n  try: df -h\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        let message = CliMessage::new("bad \x1b[2J\nsecond\x07").hint("rm\u{202e}x");
        assert_eq!(message.to_string(), "agtmux: bad \\x1b[2J\n  second\\x07\n  try: rm\\u{202e}x\n");
        assert_eq!(message.headline(), "bad \\x1b[2J");
    }
}
