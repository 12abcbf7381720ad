//! Finds tmux sockets.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use crate::platform::is_exhausted_errno;

/// The directory of one user's tmux sockets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketDir(PathBuf);

impl SocketDir {
    /// The directory that tmux chooses for the sockets of the current user. `tmpdir` is the value of `$TMUX_TMPDIR`.
    /// The directory is in `tmpdir`, or in /tmp if `tmpdir` is missing or relative.
    pub fn below(tmpdir: Option<&OsStr>) -> Self {
        let base = tmpdir.map(Path::new).filter(|p| p.is_absolute()).unwrap_or(Path::new("/tmp"));
        Self(base.join(format!("tmux-{}", rustix::process::geteuid().as_raw())))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The current user's sockets in this directory, including sockets on which no process listens. Empty if the
    /// directory belongs to another user.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let ours = |meta: &fs::Metadata| meta.uid() == rustix::process::geteuid().as_raw();
        if !fs::symlink_metadata(&self.0).is_ok_and(|meta| meta.is_dir() && ours(&meta)) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let mut sockets: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| is_own_socket(p)).collect();
        sockets.sort();
        sockets
    }
}

/// Whether the path is a socket that belongs to the current user. Symbolic links are not followed.
pub fn is_own_socket(path: &Path) -> bool {
    fs::symlink_metadata(path)
        .is_ok_and(|meta| meta.file_type().is_socket() && meta.uid() == rustix::process::geteuid().as_raw())
}

/// Whether a process listens on the socket. Connects to the socket and disconnects at once. To tmux, this is a client
/// that went away.
pub fn is_listening(path: &Path) -> bool {
    match connect(path) {
        Ok(_) => true,
        // The queue is full: the server exists but has not accepted connections for a while. Or this process has no
        // free file descriptor, which does not mean that the server is gone.
        Err(error) => is_exhausted_errno(error),
    }
}

/// Connects without blocking, even if the server no longer accepts connections.
fn connect(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// The pid of the process that listens on the socket. Also works if that process has stopped responding.
pub fn listener_pid(path: &Path) -> Option<u32> {
    let peer = socket_peercred(connect(path).ok()?).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// The socket path in a value of `$TMUX`, which is `path,pid,session`. The path can contain commas. The session is -1
/// in commands that tmux itself runs without a session.
pub fn socket_of_tmux_variable(value: &str) -> Option<PathBuf> {
    let mut parts = value.rsplitn(3, ',');
    let (session, pid, path) = (parts.next()?, parts.next()?, parts.next()?);
    let numeric = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    ((numeric(session) || session == "-1") && numeric(pid)).then(|| PathBuf::from(path)).filter(|p| p.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_socket_is_read_from_the_tmux_variable() {
        assert_eq!(socket_of_tmux_variable("/tmp/tmux-0/default,123,0"), Some("/tmp/tmux-0/default".into()));
        assert_eq!(socket_of_tmux_variable("/tmp/a,b/s,1,2"), Some("/tmp/a,b/s".into()));
        assert_eq!(socket_of_tmux_variable("/tmp/tmux-0/default,123,-1"), Some("/tmp/tmux-0/default".into()));
        for bad in ["", "/x", "rel,1,2", "/x,1", "/x,-1,2", "/x,a,b"] {
            assert_eq!(socket_of_tmux_variable(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_own_sockets_are_listed() {
        let base = tempfile::tempdir().expect("a directory");
        let dir = SocketDir::below(Some(base.path().as_os_str()));
        assert!(dir.sockets().is_empty(), "the directory does not exist yet");
        fs::create_dir(dir.path()).expect("the directory is created");
        fs::write(dir.path().join("plain"), "").expect("written");
        let socket = dir.path().join("default");
        let listener = UnixListener::bind(&socket).expect("bound");
        std::os::unix::fs::symlink(&socket, dir.path().join("link")).expect("linked");
        assert_eq!(dir.sockets(), std::slice::from_ref(&socket));
        assert!(is_listening(&socket));
        drop(listener);
        assert!(!is_listening(&socket));
    }
}
