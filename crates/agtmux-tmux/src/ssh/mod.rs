//! Calls the system's `ssh`. The user's ssh configuration, ssh agent, jump hosts and known hosts apply. The options
//! that agtmux adds only prevent prompts, hangs and forwarding.

mod process_group;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use process_group::ProcessGroup;

/// The time limit for setting up an ssh connection.
const CONNECT_TIMEOUT_SECONDS: u32 = 3;
/// Seconds between two ssh keepalives. If a host does not respond to two of them, ssh closes the connection.
const KEEPALIVE_SECONDS: u32 = 3;

/// The maximum path length of a control socket. It is shorter than the limit of the system, because ssh appends a
/// suffix while it creates the socket.
const MAX_CONTROL_PATH_BYTES: usize = 85;

/// Builds ssh commands for one destination.
#[derive(Debug, Clone)]
pub struct SshClient {
    program: PathBuf,
    destination: String,
    /// The path of ssh's control socket, through which several calls share one connection.
    control: PathBuf,
}

/// Whether an ssh call shares its connection with other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionSharing {
    /// Uses the shared connection. Opens it if there is none.
    Shared,
    /// Opens a connection for this call alone.
    Dedicated,
}

impl SshClient {
    /// The caller must have validated the destination. As a second protection, `--` precedes the destination in the
    /// arguments of ssh.
    pub fn new(program: impl Into<PathBuf>, destination: impl Into<String>, control: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), destination: destination.into(), control: control.into() }
    }

    pub fn destination(&self) -> &str {
        &self.destination
    }

    pub fn control(&self) -> &Path {
        &self.control
    }

    /// An ssh call without a terminal and without prompts. The login shell on the host runs `remote` as a command line.
    pub fn command(&self, sharing: ConnectionSharing, remote: impl AsRef<OsStr>) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(self.arguments(sharing, remote.as_ref())).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The process group contains helpers of ssh, such as a ProxyCommand, so that they can be ended together with
        // ssh.
        command.process_group(0);
        command
    }

    fn arguments(&self, sharing: ConnectionSharing, remote: &OsStr) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-T".into()];
        let control = control_path(&self.control).filter(|_| sharing == ConnectionSharing::Shared);
        let is_shared = control.is_some();
        let options = [
            "BatchMode=yes".into(),
            format!("ConnectTimeout={CONNECT_TIMEOUT_SECONDS}"),
            format!("ServerAliveInterval={KEEPALIVE_SECONDS}"),
            "ServerAliveCountMax=2".into(),
            format!("ControlMaster={}", if is_shared { "auto" } else { "no" }),
            format!("ControlPath={}", control.unwrap_or_else(|| "none".into())),
            // A shared connection ends with the last ssh process that uses it, so it does not outlive the daemon.
            "ControlPersist=no".into(),
            "ClearAllForwardings=yes".into(),
            "ForwardAgent=no".into(),
            "ForwardX11=no".into(),
            "PermitLocalCommand=no".into(),
            "RemoteCommand=none".into(),
            "RequestTTY=no".into(),
            "LogLevel=ERROR".into(),
        ];
        for option in options {
            args.extend(["-o".into(), option.into()]);
        }
        args.extend(["--".into(), self.destination.clone().into(), remote.into()]);
        args
    }

    /// Removes the control socket. The next call then opens a new connection and does not wait for a stale one.
    pub fn remove_control_socket(&self) {
        let _ = std::fs::remove_file(&self.control);
    }
}

/// The control path, quoted for ssh. `None` if the path is too long, or contains a character that ssh could interpret.
/// In this case ssh does not share the connection.
fn control_path(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let plain = text.len() <= MAX_CONTROL_PATH_BYTES && !text.chars().any(|c| c.is_control() || "\"'\\${}".contains(c));
    plain.then(|| format!("\"{}\"", text.replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(ssh: &SshClient, sharing: ConnectionSharing) -> Vec<String> {
        ssh.arguments(sharing, OsStr::new("true")).into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn ssh_options_disable_prompts_and_end_before_the_destination() {
        let ssh = SshClient::new("ssh", "vm1", "/run/user/1/agtmux/ssh/a b%c");
        let args = args(&ssh, ConnectionSharing::Shared);
        for option in ["BatchMode=yes", "ConnectTimeout=3", "ControlPath=\"/run/user/1/agtmux/ssh/a b%%c\""] {
            assert!(args.iter().any(|arg| arg == option), "{option} in {args:?}");
        }
        assert_eq!(args[args.len() - 3..], ["--", "vm1", "true"]);
    }

    #[test]
    fn an_unsafe_control_path_disables_sharing() {
        let long = format!("/{}", "a".repeat(90));
        for odd in [&long, "/a\"b", "/a${HOME}", "/a\nb", "/a\\b"] {
            let args = args(&SshClient::new("ssh", "vm1", odd), ConnectionSharing::Shared);
            assert!(args.iter().any(|arg| arg == "ControlPath=none"), "{odd:?}: {args:?}");
        }
        let dedicated = args(&SshClient::new("ssh", "vm1", "/a"), ConnectionSharing::Dedicated);
        assert!(dedicated.iter().any(|arg| arg == "ControlMaster=no"));
    }
}
