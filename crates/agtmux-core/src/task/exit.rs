//! How a run ended.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The exit code of a process, or the signal that ended it. At most one of the two is set. Neither is set if the
/// outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskExit {
    #[serde(rename = "exit_code")]
    pub code: Option<i32>,
    pub signal: Option<ExitSignal>,
}

impl TaskExit {
    pub const UNKNOWN: Self = Self { code: None, signal: None };

    pub fn with_code(code: i32) -> Self {
        Self { code: Some(code), signal: None }
    }

    pub fn by_signal(signal: ExitSignal) -> Self {
        Self { code: None, signal: Some(signal) }
    }

    pub fn is_success(self) -> bool {
        self.code == Some(0) && self.signal.is_none()
    }
}

/// Prints a text such as `code 0`, `signal SIGTERM` or `unknown code`. A message puts this text after "exited with".
impl fmt::Display for TaskExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.signal, self.code) {
            (Some(signal), _) => write!(f, "signal {signal}"),
            (None, Some(code)) => write!(f, "code {code}"),
            (None, None) => f.write_str("unknown code"),
        }
    }
}

/// A signal, stored by number and printed by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct ExitSignal(pub u8);

/// Signals with the same number on all platforms.
const COMMON_SIGNALS: &[(u8, &str)] = &[
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
];

#[cfg(target_os = "linux")]
const PLATFORM_SIGNALS: &[(u8, &str)] = &[
    (7, "SIGBUS"),
    (10, "SIGUSR1"),
    (12, "SIGUSR2"),
    (16, "SIGSTKFLT"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
    (31, "SIGSYS"),
];
#[cfg(not(target_os = "linux"))]
const PLATFORM_SIGNALS: &[(u8, &str)] =
    &[(7, "SIGEMT"), (10, "SIGBUS"), (12, "SIGSYS"), (30, "SIGUSR1"), (31, "SIGUSR2")];

/// The numbers of the real-time signals in glibc. The first is printed as `SIGRTMIN`, the next as `SIGRTMIN+1`, and so
/// on.
#[cfg(target_os = "linux")]
const REAL_TIME: std::ops::RangeInclusive<u8> = 34..=64;
#[cfg(not(target_os = "linux"))]
const REAL_TIME: std::ops::RangeInclusive<u8> = 65..=126;
const REAL_TIME_NAME: &str = "SIGRTMIN";

fn named_signals() -> impl Iterator<Item = &'static (u8, &'static str)> {
    COMMON_SIGNALS.iter().chain(PLATFORM_SIGNALS)
}

impl fmt::Display for ExitSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match named_signals().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None if self.0 == *REAL_TIME.start() => f.write_str(REAL_TIME_NAME),
            None if REAL_TIME.contains(&self.0) => write!(f, "{REAL_TIME_NAME}+{}", self.0 - REAL_TIME.start()),
            None => write!(f, "{}", self.0),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a signal: expected a name such as SIGTERM, or a number from 1 to 127")]
pub struct InvalidSignal;

/// Parses a signal name, or a number as printed by tmux.
impl FromStr for ExitSignal {
    type Err = InvalidSignal;

    fn from_str(s: &str) -> Result<Self, InvalidSignal> {
        if let Some((number, _)) = named_signals().find(|(_, name)| *name == s || name.strip_prefix("SIG") == Some(s)) {
            return Ok(Self(*number));
        }
        if let Some(more) = s.strip_prefix(REAL_TIME_NAME) {
            let more = if more.is_empty() { Some("0") } else { more.strip_prefix('+') };
            let number = more.and_then(|more| more.parse::<u8>().ok()?.checked_add(*REAL_TIME.start()));
            return number.filter(|number| REAL_TIME.contains(number)).map(Self).ok_or(InvalidSignal);
        }
        let number: u8 = s.parse().map_err(|_| InvalidSignal)?;
        if (1..128).contains(&number) { Ok(Self(number)) } else { Err(InvalidSignal) }
    }
}

impl TryFrom<String> for ExitSignal {
    type Error = InvalidSignal;

    fn try_from(text: String) -> Result<Self, InvalidSignal> {
        text.parse()
    }
}

impl From<ExitSignal> for String {
    fn from(signal: ExitSignal) -> Self {
        signal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_prints_its_code_or_signal() {
        assert_eq!(TaskExit::with_code(2).to_string(), "code 2");
        assert_eq!(TaskExit::by_signal(ExitSignal(15)).to_string(), "signal SIGTERM");
        assert_eq!(TaskExit::by_signal(ExitSignal(33)).to_string(), "signal 33");
        #[cfg(target_os = "linux")]
        assert_eq!(TaskExit::by_signal(ExitSignal(36)).to_string(), "signal SIGRTMIN+2");
        assert_eq!(TaskExit::UNKNOWN.to_string(), "unknown code");
    }

    #[test]
    fn every_signal_parses_back() {
        for number in 1..128 {
            let signal = ExitSignal(number);
            assert_eq!(signal.to_string().parse(), Ok(signal));
        }
        assert_eq!("KILL".parse(), Ok(ExitSignal(9)));
        for bad in ["", "0", "128", "-9", "SIGNOPE", "9 ", "SIGRTMIN+99", "SIGRTMIN2", "SIGRTMIN+255"] {
            assert_eq!(bad.parse::<ExitSignal>(), Err(InvalidSignal), "{bad}");
        }
    }

    #[test]
    fn only_exit_code_zero_is_success() {
        assert!(TaskExit::with_code(0).is_success());
        let others = [TaskExit::with_code(1), TaskExit::by_signal(ExitSignal(9)), TaskExit::UNKNOWN];
        assert!(others.iter().all(|exit| !exit.is_success()));
    }
}
