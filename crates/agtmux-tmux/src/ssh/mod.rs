//! How the system's `ssh` is called. The user's own settings, agent, jump hosts and known hosts rule; what is said here
//! only keeps a call from asking, hanging or forwarding anything.

mod process_group;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub use process_group::ProcessGroup;

/// How long a connection may take until both sides speak.
const CONNECT_TIMEOUT_SECONDS: u32 = 3;
/// A host that says nothing for two of these is gone.
const KEEPALIVE_SECONDS: u32 = 3;

/// Of a socket. ssh adds some of its own while it makes one, and fails where there is no room.
const MAX_CONTROL_PATH_BYTES: usize = 85;

/// One host, as `ssh` finds it.
#[derive(Debug, Clone)]
pub struct SshClient {
    program: PathBuf,
    destination: String,
    /// The socket that its connections share.
    control: PathBuf,
}

/// Whether a call may share a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionSharing {
    /// Takes part in the connection that is there, or makes it.
    Shared,
    /// A connection of its own.
    Dedicated,
}

impl SshClient {
    /// The destination is a plain word that has passed the list of what is allowed; `--` comes before it all the same.
    pub fn new(program: impl Into<PathBuf>, destination: impl Into<String>, control: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), destination: destination.into(), control: control.into() }
    }

    pub fn destination(&self) -> &str {
        &self.destination
    }

    pub fn control(&self) -> &Path {
        &self.control
    }

    /// A call without a terminal that asks nothing. `remote` is read by the shell of the account there.
    pub fn command(&self, sharing: ConnectionSharing, remote: impl AsRef<OsStr>) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(self.arguments(sharing, remote.as_ref())).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // What it starts to jump over other hosts is ended with it.
        command.process_group(0);
        command
    }

    fn arguments(&self, sharing: ConnectionSharing, remote: &OsStr) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["-T".into()];
        let control = control_path(&self.control).filter(|_| sharing == ConnectionSharing::Shared);
        let shared = control.is_some();
        let options = [
            "BatchMode=yes".into(),
            format!("ConnectTimeout={CONNECT_TIMEOUT_SECONDS}"),
            format!("ServerAliveInterval={KEEPALIVE_SECONDS}"),
            "ServerAliveCountMax=2".into(),
            format!("ControlMaster={}", if shared { "auto" } else { "no" }),
            format!("ControlPath={}", control.unwrap_or_else(|| "none".into())),
            // A connection ends with the last that uses it, and so with us.
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
            words.extend(["-o".into(), option.into()]);
        }
        words.extend(["--".into(), self.destination.clone().into(), remote.into()]);
        words
    }

    /// Makes way for a new connection: whoever listens on the old one's socket is not asked again.
    pub fn remove_control_socket(&self) {
        let _ = std::fs::remove_file(&self.control);
    }
}

/// As `ssh` reads it: a percent sign begins a word to be replaced, and blanks end a value. A path that could be read as
/// anything else means that nothing is shared.
fn control_path(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let plain = text.len() <= MAX_CONTROL_PATH_BYTES && !text.chars().any(|c| c.is_control() || "\"'\\${}".contains(c));
    plain.then(|| format!("\"{}\"", text.replace('%', "%%")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(ssh: &SshClient, sharing: ConnectionSharing) -> Vec<String> {
        ssh.arguments(sharing, OsStr::new("true")).into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_call_asks_nothing_and_ends_its_options_before_the_host() {
        let ssh = SshClient::new("ssh", "vm1", "/run/user/1/agtmux/ssh/a b%c");
        let words = words(&ssh, ConnectionSharing::Shared);
        for option in ["BatchMode=yes", "ConnectTimeout=3", "ControlPath=\"/run/user/1/agtmux/ssh/a b%%c\""] {
            assert!(words.iter().any(|word| word == option), "{option} in {words:?}");
        }
        assert_eq!(words[words.len() - 3..], ["--", "vm1", "true"]);
    }

    #[test]
    fn a_path_that_could_be_misread_is_not_shared() {
        let long = format!("/{}", "a".repeat(90));
        for odd in [&long, "/a\"b", "/a${HOME}", "/a\nb", "/a\\b"] {
            let words = words(&SshClient::new("ssh", "vm1", odd), ConnectionSharing::Shared);
            assert!(words.iter().any(|word| word == "ControlPath=none"), "{odd:?}: {words:?}");
        }
        let alone = words(&SshClient::new("ssh", "vm1", "/a"), ConnectionSharing::Dedicated);
        assert!(alone.iter().any(|word| word == "ControlMaster=no"));
    }
}
