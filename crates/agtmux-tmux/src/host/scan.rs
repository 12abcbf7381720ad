//! A look at everything there is on a host, in one question.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::batch::{ShellBatch, ShellOutput};
use super::{HostShell, ShellError, processes, quoted};
use crate::activity::{self, ActivityListing};
use crate::capture::{self, Capture};
use crate::command::Framing;
use crate::listing;
use crate::platform::ProcessSnapshot;
use crate::server::{TmuxError, TmuxServer};

/// What is to be looked at.
#[derive(Debug, Default, Clone)]
pub struct HostScanRequest {
    /// Which sockets there are.
    pub sockets: bool,
    /// The servers whose panes are listed.
    pub servers: Vec<PathBuf>,
    /// The panes that are looked at.
    pub panes: Vec<(PathBuf, Vec<u32>)>,
    pub processes: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct HostScan {
    pub sockets: Option<Vec<PathBuf>>,
    pub servers: Vec<(PathBuf, Result<ActivityListing, TmuxError>)>,
    pub captures: Vec<(PathBuf, Vec<Capture>)>,
    pub processes: Option<ProcessSnapshot>,
}

/// A host that takes longer for all of it counts as one that does not answer, and so does one that says nothing for as long as
/// one program may take.
const MAX_SCAN_TIME: Duration = Duration::from_secs(9);

/// No more sockets than this are asked; the next one is told as well, so that it can be said that there are more.
pub const MAX_SOCKETS: usize = 64;
/// Of all that a look brings.
const MAX_SCAN_BYTES: usize = 16 << 20;

/// Sockets, each ended by a NUL, and the usual one first. What is no socket, or only leads to one, is nobody's server.
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
    /// The tmux server of this socket there. No question to it takes longer than this, and a little more for the way.
    pub fn tmux(&self, socket: impl Into<PathBuf>, timeout: Duration) -> TmuxServer {
        TmuxServer::on_host(self.clone(), socket, timeout)
    }

    /// Each program gets this long and has to say something by then; the whole question gets that for each of them, within
    /// limits.
    pub async fn scan(&self, sweep: &HostScanRequest, timeout: Duration) -> Result<HostScan, ShellError> {
        let (framing, mut question) = (Framing::fresh(), ShellBatch::with_limit(MAX_SCAN_BYTES));
        let sockets = sweep.sockets.then(|| question.add(sockets_line(&self.facts().socket_dir)));
        let listed: Vec<usize> = sweep
            .servers
            .iter()
            .map(|socket| {
                question.add(self.tmux(socket, timeout).shell_line(&activity::list_all(&framing), None, timeout))
            })
            .collect();
        let captured: Vec<usize> = sweep
            .panes
            .iter()
            .map(|(socket, panes)| {
                question.add(self.tmux(socket, timeout).shell_line(
                    &capture::capture_commands(&framing, panes),
                    None,
                    timeout,
                ))
            })
            .collect();
        let form = self.facts().process_source;
        let processes = sweep.processes.then(|| processes::add_process_listing(&mut question, form));
        let (within, asked) = (self.scan_timeout(&question, timeout), SystemTime::now());
        let silence = timeout + super::ROUND_TRIP_ALLOWANCE;
        let answers = self.run_with_silence_timeout(question, silence, within).await?;
        let mut swept = HostScan { sockets: sockets.map(|n| parse_sockets(&answers[n])), ..HostScan::default() };
        for (socket, n) in sweep.servers.iter().zip(listed) {
            let listing = self.read_listing(socket, &framing, &answers[n], timeout).await;
            if let Some(clock) = listing.as_ref().ok().and_then(|listing| listing.clock) {
                self.update_clock_offset(clock, asked);
            }
            swept.servers.push((socket.clone(), listing));
        }
        for ((socket, _), n) in sweep.panes.iter().zip(captured) {
            swept.captures.push((socket.clone(), capture::parse(&framing, &answers[n].stdout)));
        }
        swept.processes = processes
            .map(|(rows, args)| processes::parse_processes(form, &answers[rows].stdout, &answers[args].stdout));
        Ok(swept)
    }

    /// Where a program that takes too long is ended there, the others behind it still have their turn.
    fn scan_timeout(&self, question: &ShellBatch, timeout: Duration) -> Duration {
        let turns = if self.facts().has_timeout { question.len() } else { 1 };
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
            // A server may live without a session; it then has nothing that could be listed.
            Err(TmuxError::Failed(said)) if listing::has_no_session(&said) => {
                Ok(ActivityListing::without_panes(self.tmux(socket, timeout).list().await?))
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
    fn no_more_sockets_are_told_than_are_asked_and_the_usual_one_is_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let told = || {
            let line = sockets_line(dir.path());
            let said =
                std::process::Command::new("sh").arg("-c").arg(OsStr::from_bytes(&line)).output().expect("a shell");
            parse_sockets(&ShellOutput { stdout: said.stdout, stderr: said.stderr, status: 0 })
        };
        let make = |name: &str| UnixListener::bind(dir.path().join(name)).expect("a socket");
        std::fs::write(dir.path().join("a file"), "").expect("written");
        assert_eq!(told(), Vec::<PathBuf>::new());
        let _sockets = [make("a b"), make("c'd")];
        assert_eq!(told(), [dir.path().join("a b"), dir.path().join("c'd")]);
        let _usual = make("default");
        assert_eq!(told(), [dir.path().join("default"), dir.path().join("a b"), dir.path().join("c'd")]);
        let _many: Vec<UnixListener> = (0..MAX_SOCKETS * 2).map(|n| make(&n.to_string())).collect();
        assert_eq!((told().len(), &told()[0]), (MAX_SOCKETS + 1, &dir.path().join("default")));
    }
}
