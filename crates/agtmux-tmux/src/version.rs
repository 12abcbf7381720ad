//! tmux versions.

use std::fmt;

/// The oldest supported tmux.
pub const MIN_VERSION: TmuxVersion = TmuxVersion { major: 3, minor: 2 };

/// A tmux version without the letter of a bug-fix release, so `3.3a` equals `3.3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TmuxVersion {
    pub major: u32,
    pub minor: u32,
}

impl TmuxVersion {
    /// Parses the output of `tmux -V` or of `#{version}`, such as `tmux 3.3a`, `3.2`, `next-3.7`, `openbsd-7.5` or
    /// `master`. `openbsd-…` and versions without a number are treated as newer than any release.
    pub fn parse(text: &str) -> Self {
        let text = text.trim().trim_start_matches("tmux ").trim_start_matches("next-");
        if text.starts_with("openbsd-") {
            return Self { major: u32::MAX, minor: 0 };
        }
        let mut parts = text.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        });
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(major), minor) => Self { major, minor: minor.unwrap_or(0) },
            (None, _) => Self { major: u32::MAX, minor: 0 },
        }
    }

    pub fn is_supported(self) -> bool {
        self >= MIN_VERSION
    }
}

impl fmt::Display for TmuxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_parsed_and_compared() {
        assert_eq!(TmuxVersion::parse("tmux 3.3a\n"), TmuxVersion { major: 3, minor: 3 });
        assert_eq!(TmuxVersion::parse("next-3.7"), TmuxVersion { major: 3, minor: 7 });
        assert!(!TmuxVersion::parse("tmux 3.1c").is_supported());
        assert!(!TmuxVersion::parse("2.9").is_supported());
        assert!(TmuxVersion::parse("3.2a").is_supported());
        assert!(TmuxVersion::parse("master").is_supported());
        assert!(TmuxVersion::parse("tmux openbsd-7.5").is_supported());
    }
}
