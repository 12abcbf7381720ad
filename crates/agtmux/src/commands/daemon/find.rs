//! Finds the process of the daemon. Asks the kernel instead of the daemon, so that agtmux finds a daemon of any
//! version.

use std::path::Path;

use agtmux_client::{ClientError, DaemonClient};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};

use crate::error::{CliError, CliResult};

pub(super) async fn find(daemon: &DaemonClient) -> CliResult<Option<Pid>> {
    match daemon.api.connect().await {
        Ok(stream) => {
            let peer = stream.peer_cred().map_err(|error| CliError::io("find the process behind the socket", error))?;
            Ok(peer.pid().and_then(Pid::from_raw))
        }
        // The daemon may be starting, stopping or stuck without a socket.
        Err(ClientError::NotRunning(_)) => holder_of_lock(daemon),
        Err(error) => Err(error.into()),
    }
}

/// The process that holds a lock file of the daemon. The daemon locks one file beside its database and one beside its
/// socket. This function checks both, because one of them may have been deleted.
fn holder_of_lock(daemon: &DaemonClient) -> CliResult<Option<Pid>> {
    for path in daemon.paths.locks() {
        if let Some(pid) = holder_of(&path)? {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

fn holder_of(path: &Path) -> CliResult<Option<Pid>> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(CliError::io(&format!("open '{}'", path.display()), error)),
    };
    let held = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))
        .map_err(|error| CliError::io(&format!("find the process that holds '{}'", path.display()), error))?;
    Ok(held.and_then(|lock| lock.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_api::paths::Paths;

    #[tokio::test]
    async fn no_daemon_is_found_without_a_socket_and_a_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        let paths = Paths { config: dir.path().join("c"), state_dir: dir.path().to_owned(), socket };
        let daemon = DaemonClient::new(paths);
        assert_eq!(find(&daemon).await.expect("no error"), None);
        std::fs::write(daemon.paths.lock(), "").expect("written");
        assert_eq!(find(&daemon).await.expect("no error"), None);
    }

    #[tokio::test]
    async fn the_process_that_listens_on_the_socket_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("s");
        let _listener = tokio::net::UnixListener::bind(&socket).expect("bound");
        let paths = Paths { config: dir.path().join("c"), state_dir: dir.path().to_owned(), socket };
        let daemon = DaemonClient::new(paths);
        assert_eq!(find(&daemon).await.expect("no error"), Some(rustix::process::getpid()));
    }
}
