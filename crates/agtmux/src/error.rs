//! The error type of all commands, and the exit codes.

use std::process::ExitCode;

use agtmux_api::config::ConfigError;
use agtmux_api::error::ErrorCode;
use agtmux_api::paths::PathError;
use agtmux_client::ClientError;

use crate::message::CliMessage;

/// The exit code. `docs/exit-codes.md` and `agtmux --help` list the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CliExit {
    Ok = 0,
    Failed = 1,
    Usage = 2,
    NoDaemon = 3,
    OtherVersion = 4,
    DaemonFailed = 5,
    AgentAsks = 6,
    TurnFailed = 7,
    TurnInterrupted = 8,
    TimedOut = 124,
    NotExecutable = 126,
    NotFound = 127,
    Interrupted = 130,
    Terminated = 143,
}

/// The result of a command or of one of its steps. Every exit code except 0 is an error, with or without a message. If
/// the reader has closed stdout, this is an error too, but its exit code is 0.
pub(crate) type CliResult<T = ()> = Result<T, CliError>;

impl CliExit {
    /// Ends a command with this exit code, without a message.
    pub(crate) fn into_result(self) -> CliResult {
        if self == Self::Ok { Ok(()) } else { Err(CliError::silent(self)) }
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> Self {
        Self::from(exit as u8)
    }
}

#[derive(Debug)]
pub(crate) struct CliError {
    exit: CliExit,
    /// `None` if nothing is printed, for example because the reader closed the pipe.
    message: Option<CliMessage>,
    /// The daemon's error code, if the daemon rejected the request.
    code: Option<ErrorCode>,
}

impl CliError {
    pub(crate) fn new(exit: CliExit, message: impl Into<CliMessage>) -> Self {
        Self { exit, message: Some(message.into()), code: None }
    }

    /// An error without a message, for example after Ctrl-C.
    pub(crate) fn silent(exit: CliExit) -> Self {
        Self { exit, message: None, code: None }
    }

    pub(crate) fn failed(message: impl Into<CliMessage>) -> Self {
        Self::new(CliExit::Failed, message)
    }

    pub(crate) fn usage(message: impl Into<CliMessage>) -> Self {
        Self::new(CliExit::Usage, message)
    }

    /// A failed system call: "cannot {doing}: {error}".
    pub(crate) fn io(doing: &str, error: impl std::fmt::Display) -> Self {
        Self::failed(format!("cannot {doing}: {error}"))
    }

    pub(crate) fn because(self, why: impl Into<String>) -> Self {
        Self { message: self.message.map(|message| message.because(why)), ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { message: self.message.map(|message| message.hint(hint)), ..self }
    }

    pub(crate) fn exit(&self) -> CliExit {
        self.exit
    }

    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// The first line of the message; `None` if nothing is printed.
    pub(crate) fn headline(&self) -> Option<String> {
        self.message.as_ref().map(CliMessage::headline)
    }

    pub(crate) fn print(&self) {
        if let Some(message) = &self.message {
            message.print_stderr();
        }
    }
}

/// A closed pipe is a success: `agtmux list | head` exits with 0.
pub(crate) fn stdout_failed(error: std::io::Error) -> CliError {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return CliError::silent(CliExit::Ok);
    }
    CliError::io("write to stdout", error)
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::Paths(error) => error.into(),
            ClientError::AutostartForbidden(_) => Self::new(CliExit::NoDaemon, message)
                .because("AGTMUX_NO_AUTOSTART is set, so agtmux did not start the daemon")
                .hint("agtmux daemon start"),
            ClientError::NoProgram(_) | ClientError::Spawn { .. } => Self::failed(message),
            ClientError::StartFailed { stderr, exit_code } => {
                let is_usage = exit_code == Some(i32::from(CliExit::Usage as u8));
                Self::new(if is_usage { CliExit::Usage } else { CliExit::Failed }, message)
                    .because(stderr.trim().trim_start_matches("agtmux: "))
                    .hint("agtmux daemon run   (in the foreground, with its log)")
            }
            ClientError::StartTimeout(_) => {
                Self::new(CliExit::NoDaemon, message).hint("agtmux daemon logs").hint("agtmux daemon status")
            }
            ClientError::NotRunning(_) => Self::new(CliExit::NoDaemon, message).hint("agtmux daemon start"),
            ClientError::Connect { .. } => Self::new(CliExit::NoDaemon, message).hint("agtmux daemon status"),
            ClientError::OtherUser(_) => {
                Self::new(CliExit::NoDaemon, message).hint("set AGTMUX_SOCKET to a path that only you can write to")
            }
            ClientError::Version { .. } => Self::new(CliExit::OtherVersion, message),
            ClientError::Timeout(_) | ClientError::Broken(_) => {
                Self::new(CliExit::DaemonFailed, message).hint("agtmux daemon logs").hint("agtmux daemon restart")
            }
            ClientError::Refused(refusal) => {
                let error = refusal.hint.into_iter().fold(Self::new(CliExit::DaemonFailed, message), Self::hint);
                Self { code: Some(refusal.code), ..error }
            }
        }
    }
}

impl From<PathError> for CliError {
    fn from(error: PathError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string()).hint("agtmux config show --defaults   (every setting, explained)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::error::{ApiError, ErrorCode};

    #[test]
    fn another_daemon_version_is_reported_with_the_restart_command() {
        let error = CliError::from(ClientError::Version { daemon: "0.0.9".into(), daemon_api: "0".into() });
        assert_eq!(error.exit(), CliExit::OtherVersion);
        let text = error.message.expect("a message").to_string();
        assert!(text.contains("0.0.9") && text.contains("run `agtmux daemon restart`"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn the_hint_of_the_daemon_is_printed() {
        let refusal = ApiError::new(ErrorCode::TargetNotFound, "no target 'x'").with_hint("agtmux target list");
        let error = CliError::from(ClientError::Refused(refusal));
        assert_eq!(error.exit(), CliExit::DaemonFailed);
        let text = error.message.expect("a message").to_string();
        assert_eq!(text, "agtmux: no target 'x'\n  try: agtmux target list\n");
    }

    #[test]
    fn a_closed_pipe_is_not_an_error() {
        let error = stdout_failed(std::io::ErrorKind::BrokenPipe.into());
        assert_eq!(error.exit(), CliExit::Ok);
        assert!(error.message.is_none());
    }
}
