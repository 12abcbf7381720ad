//! Why a connection ended, from the exit status and stderr of ssh.

use std::process::ExitStatus;

use agtmux_core::sanitize;
use agtmux_core::target::TargetFault;

const NOT_FOUND: i32 = 127;
const SSH_FAILED: i32 = 255;
const WRONG_USAGE: i32 = 2;
/// The exit status of agtmux if its daemon has another version.
const OTHER_VERSION: i32 = 4;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionEnd {
    pub(super) fault: TargetFault,
    pub(super) message: String,
    /// What to install on this machine, if the host is too new for this agtmux.
    pub(super) newer_host: Option<String>,
}

impl ConnectionEnd {
    pub(super) fn new(fault: TargetFault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into(), newer_host: None }
    }
}

/// The last line that is not empty, shortened and sanitized.
pub(super) fn last_line(text: &str) -> Option<String> {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(sanitize::for_terminal(&last.chars().take(300).collect::<String>()))
}

pub(super) fn classify_exit(status: Option<ExitStatus>, stderr: &str) -> ConnectionEnd {
    let last_line_or = |fallback: &str| last_line(stderr).unwrap_or_else(|| fallback.to_owned());
    match status.and_then(|status| status.code()) {
        Some(SSH_FAILED) => {
            let refused = ["Permission denied", "Host key verification failed", "Too many authentication failures"];
            let fault = if refused.iter().any(|message| stderr.contains(message)) {
                TargetFault::LoginRefused
            } else {
                TargetFault::Unreachable
            };
            ConnectionEnd::new(fault, last_line_or("ssh could not connect"))
        }
        Some(NOT_FOUND) => ConnectionEnd::new(TargetFault::NothingInstalled, "agtmux is not installed on the host"),
        Some(OTHER_VERSION) => {
            let first = stderr
                .lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or("the daemon on the host has another version");
            let first: String = first.trim_start_matches("agtmux: ").chars().take(300).collect();
            ConnectionEnd::new(TargetFault::VersionMismatch, sanitize::for_terminal(&first))
        }
        Some(WRONG_USAGE) if stderr.contains("collect") => {
            ConnectionEnd::new(TargetFault::VersionMismatch, "agtmux on the host is too old for agtmux on this machine")
        }
        _ => ConnectionEnd::new(TargetFault::Disconnected, last_line_or("the connection ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn ended(code: i32, stderr: &str) -> ConnectionEnd {
        classify_exit(Some(ExitStatus::from_raw(code << 8)), stderr)
    }

    #[test]
    fn the_exit_of_ssh_is_classified() {
        let refused = ended(255, "x\nme@vm1: Permission denied (publickey).\n");
        assert_eq!(refused, ConnectionEnd::new(TargetFault::LoginRefused, "me@vm1: Permission denied (publickey)."));
        assert_eq!(
            ended(255, "ssh: connect to host vm1 port 22: No route to host\r\n").fault,
            TargetFault::Unreachable
        );
        assert_eq!(ended(127, "sh: 1: exec: agtmux: not found").fault, TargetFault::NothingInstalled);
        assert_eq!(ended(2, "error: unrecognized subcommand 'collect'").fault, TargetFault::VersionMismatch);
        let old = ended(4, "agtmux: the daemon is version 0\n  try: agtmux daemon restart\n");
        assert_eq!(old, ConnectionEnd::new(TargetFault::VersionMismatch, "the daemon is version 0"));
        assert_eq!(ended(1, "\u{1b}[31mboom").message, sanitize::for_terminal("\u{1b}[31mboom"));
        assert_eq!(classify_exit(None, ""), ConnectionEnd::new(TargetFault::Disconnected, "the connection ended"));
    }
}
