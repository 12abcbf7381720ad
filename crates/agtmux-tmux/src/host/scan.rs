//! Scans a host in one batch: sockets, panes, screens and processes.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::batch::{ShellBatch, ShellOutput};
use super::{HostShell, ShellError, processes, quoted};
use crate::activity::{self, ActivityListing};
use crate::capture::{self, Capture};
use crate::command::{Framing, TmuxCommand};
use crate::platform::ProcessSnapshot;
use crate::server::{TmuxError, TmuxServer};

/// What to scan.
#[derive(Debug, Default, Clone)]
pub struct HostScanRequest {
    /// List the sockets.
    pub sockets: bool,
    /// List the panes of these servers.
    pub servers: Vec<PathBuf>,
    /// Capture these panes.
    pub panes: Vec<(PathBuf, Vec<u32>)>,
    pub processes: bool,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct HostScan {
    pub sockets: Option<Vec<PathBuf>>,
    pub servers: Vec<(PathBuf, Result<ActivityListing, TmuxError>)>,
    pub captures: Vec<(PathBuf, Vec<Capture>)>,
    pub processes: Option<ProcessSnapshot>,
}

/// The maximum time for a whole scan. If a scan takes longer, the host counts as unreachable.
const MAX_SCAN_TIME: Duration = Duration::from_secs(9);

/// The maximum number of sockets per host. A scan lists one socket more than this, so that the caller knows whether
/// there are too many.
pub const MAX_SOCKETS: usize = 64;
/// The maximum size of the output of a scan.
const MAX_SCAN_BYTES: usize = 16 << 20;

/// A shell line that prints the paths of the sockets in this directory. The socket `default` comes first, and each path
/// ends with NUL. Symbolic links and files that are no sockets are skipped.
fn sockets_line(dir: &Path) -> Vec<u8> {
    let (dir, most) = (quoted(dir.as_os_str()), MAX_SOCKETS + 1);
    let seen = format!(
        "[ -S \"$agtmux_s\" ] && [ ! -h \"$agtmux_s\" ] && printf '%s\\000' \"$agtmux_s\" && \
         agtmux_n=$((agtmux_n+1)); [ $agtmux_n -lt {most} ] || break; done; :"
    );
    let parts: [&[u8]; 6] = [
        b"agtmux_n=0; for agtmux_s in ",
        &dir,
        b"/default ",
        &dir,
        b"/*; do [ $agtmux_n -gt 0 ] && case $agtmux_s in */default) continue;; esac; ",
        seen.as_bytes(),
    ];
    parts.concat()
}

fn parse_sockets(answer: &ShellOutput) -> Vec<PathBuf> {
    let names = answer.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.take(MAX_SOCKETS + 1).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

impl HostShell {
    /// The tmux server on this socket of the host. On the host, each call may take `timeout`. The network round trip
    /// may take additional time.
    pub fn tmux(&self, socket: impl Into<PathBuf>, timeout: Duration) -> TmuxServer {
        TmuxServer::on_host(self.clone(), socket, timeout)
    }

    /// Scans the host. Each tmux call on the host may take `timeout`. The scan fails if the host prints nothing for
    /// `timeout` plus the network round trip, or if the whole scan takes too long (at most `MAX_SCAN_TIME`).
    pub async fn scan(&self, request: &HostScanRequest, timeout: Duration) -> Result<HostScan, ShellError> {
        let (framing, mut batch) = (Framing::fresh(), ShellBatch::with_limit(MAX_SCAN_BYTES));
        let sockets = request.sockets.then(|| batch.add(sockets_line(&self.facts().socket_dir)));
        let mut add = |socket: &Path, commands: &[TmuxCommand]| {
            batch.add(self.tmux(socket, timeout).shell_line(commands, None, timeout))
        };
        let list_all = activity::list_all(&framing);
        let listed: Vec<usize> = request.servers.iter().map(|socket| add(socket, &list_all)).collect();
        let capture = |(socket, panes): &(PathBuf, Vec<u32>)| add(socket, &capture::capture_commands(&framing, panes));
        let captured: Vec<usize> = request.panes.iter().map(capture).collect();
        let source = self.facts().process_source;
        let processes = request.processes.then(|| processes::add_process_listing(&mut batch, source));
        let (within, asked_at) = (self.scan_timeout(&batch, timeout), SystemTime::now());
        let silence = timeout + super::ROUND_TRIP_ALLOWANCE;
        let outputs = self.run_with_silence_timeout(batch, silence, within).await?;
        let mut scan = HostScan { sockets: sockets.map(|n| parse_sockets(&outputs[n])), ..HostScan::default() };
        for (socket, n) in request.servers.iter().zip(listed) {
            let listing = self.read_listing(socket, &framing, &outputs[n], timeout).await;
            if let Some(clock) = listing.as_ref().ok().and_then(|listing| listing.clock) {
                self.update_clock_offset(clock, asked_at);
            }
            scan.servers.push((socket.clone(), listing));
        }
        for ((socket, _), n) in request.panes.iter().zip(captured) {
            scan.captures.push((socket.clone(), capture::parse(&framing, &outputs[n].stdout)));
        }
        scan.processes = processes
            .map(|(rows, args)| processes::parse_processes(source, &outputs[rows].stdout, &outputs[args].stdout));
        Ok(scan)
    }

    /// The timeout of the whole batch. If the host has the program `timeout`, which ends slow lines, each line of the
    /// batch may take the given time. Otherwise all lines together may take the given time.
    fn scan_timeout(&self, batch: &ShellBatch, timeout: Duration) -> Duration {
        let turns = if self.facts().has_timeout { batch.len() } else { 1 };
        (timeout * u32::try_from(turns).unwrap_or(u32::MAX) + super::ROUND_TRIP_ALLOWANCE).min(MAX_SCAN_TIME)
    }

    async fn read_listing(
        &self,
        socket: &Path,
        framing: &Framing,
        answer: &ShellOutput,
        timeout: Duration,
    ) -> Result<ActivityListing, TmuxError> {
        match self.tmux(socket, timeout).check_status(answer) {
            Ok(()) => activity::parse_all(framing, &answer.stdout),
            // A server can run without a session; then `list-windows` fails.
            Err(error) if error.means_no_session() => {
                let listing = self.tmux(socket, timeout).list().await?;
                Ok(ActivityListing { listing, activity: HashMap::new(), clock: None })
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn sockets_are_limited_and_default_comes_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let list_sockets = || {
            let line = sockets_line(dir.path());
            let output =
                std::process::Command::new("sh").arg("-c").arg(OsStr::from_bytes(&line)).output().expect("a shell");
            parse_sockets(&ShellOutput { stdout: output.stdout, stderr: output.stderr, status: 0 })
        };
        let make = |name: &str| UnixListener::bind(dir.path().join(name)).expect("a socket");
        std::fs::write(dir.path().join("a file"), "").expect("written");
        assert_eq!(list_sockets(), Vec::<PathBuf>::new());
        let _sockets = [make("a b"), make("c'd")];
        assert_eq!(list_sockets(), [dir.path().join("a b"), dir.path().join("c'd")]);
        let _usual = make("default");
        assert_eq!(list_sockets(), [dir.path().join("default"), dir.path().join("a b"), dir.path().join("c'd")]);
        let _many: Vec<UnixListener> = (0..MAX_SOCKETS * 2).map(|n| make(&n.to_string())).collect();
        assert_eq!((list_sockets().len(), &list_sockets()[0]), (MAX_SOCKETS + 1, &dir.path().join("default")));
    }
}
