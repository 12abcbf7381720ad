use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agtmux_api::API_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::paths::PathError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Paths(#[from] PathError),
    #[error("no daemon is listening on '{}'", .0.display())]
    NotRunning(PathBuf),
    /// No daemon is running, and `AGTMUX_NO_AUTOSTART` forbids starting one.
    #[error("the daemon is not running: nothing listens on '{}'", .0.display())]
    AutostartForbidden(PathBuf),
    #[error("cannot find the agtmux program: {0}")]
    NoProgram(io::Error),
    #[error("cannot start '{}': {source}", program.display())]
    Spawn { program: PathBuf, source: io::Error },
    /// The daemon exited before it was ready.
    #[error("cannot start the daemon")]
    StartFailed { stderr: String, exit_code: Option<i32> },
    #[error("the daemon was not ready after {} s", .0.as_secs())]
    StartTimeout(Duration),
    #[error("cannot reach the daemon on '{}': {source}", socket.display())]
    Connect { socket: PathBuf, source: io::Error },
    #[error("the daemon on '{}' belongs to another user", .0.display())]
    OtherUser(PathBuf),
    #[error("the daemon did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the connection to the daemon failed: {0}")]
    Broken(String),
    #[error(
        "the daemon is version {daemon} with API {daemon_api}; this is agtmux {} with API {API_VERSION}; \
         run `agtmux daemon restart`",
        agtmux_api::VERSION
    )]
    Version { daemon: String, daemon_api: String },
    /// The daemon rejected the request.
    #[error(transparent)]
    Refused(ApiError),
}

impl ClientError {
    /// The daemon's error code, if the daemon rejected the request.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(error) => Some(error.code),
            _ => None,
        }
    }

    /// Whether the client got no complete response, because the daemon broke the connection or did not respond in time.
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::Broken(_) | Self::Timeout(_))
    }

    /// Whether no daemon could be reached.
    pub fn is_unreachable(&self) -> bool {
        use ClientError::{AutostartForbidden, Connect, NotRunning, OtherUser, StartTimeout};
        matches!(self, NotRunning(_) | AutostartForbidden(_) | StartTimeout(_) | Connect { .. } | OtherUser(_))
    }
}

pub(crate) fn broken(error: impl std::fmt::Display) -> ClientError {
    ClientError::Broken(error.to_string())
}
