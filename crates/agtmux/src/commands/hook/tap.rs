//! Reads the output of a pane, if the configuration enables it. Finds the escape codes with which an agent reports its
//! state and sends them to the daemon. Drops everything else.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_agents::OscScanner;
use agtmux_api::wire::EventSubmission;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::{deliver, event, payload};

pub(super) const TAP_FLAG: &str = "--tap";

/// How often to check that the agent is alive.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const MAX_QUEUED: usize = 64;
/// How long to retry until the daemon accepts a connection. A daemon that starts opens its taps before its socket.
const DAEMON_START_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `agtmux hook --tap AGENT PANE PID TMUX-SOCKET DAEMON-SOCKET`.
pub(super) fn run(words: &[OsString]) {
    let [agent, pane, pid, server, daemon] = words else { return };
    let number = |word: &OsString| word.to_str()?.parse::<u32>().ok();
    let (Some(pane), Some(pid)) = (number(pane), number(pid)) else { return };
    let (Some(agent), Some(server)) = (agent.to_str(), server.to_str()) else { return };
    let (agent, server) = (agent.to_owned(), server.to_owned());
    let event_of = move |(time, state, fields): FoundCode| EventSubmission {
        agent_type: Some(agent.clone()),
        pane: Some(format!("%{pane}")),
        pid: Some(pid),
        socket: Some(server.clone()),
        payload: Some(fields),
        ..event::new("osc", &state, time)
    };
    let codes = Arc::new(CodeQueue::default());
    let (found, socket) = (codes.clone(), PathBuf::from(daemon));
    // A separate thread delivers, so that the pane never waits for the daemon.
    thread::spawn(move || deliver_all(&found, event_of, &socket));
    // An error ends the tap like the end of the output.
    let _ = read_all(&codes, pid, Path::new(daemon));
}

/// Escape codes to send to the daemon. If a program writes codes faster than the daemon accepts them, the oldest codes
/// are dropped.
#[derive(Default)]
struct CodeQueue {
    codes: Mutex<VecDeque<FoundCode>>,
    more: Condvar,
}

type FoundCode = (Timestamp, String, Value);

impl CodeQueue {
    fn push(&self, code: FoundCode) {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents repeat the code with each frame.
        if codes.back().is_some_and(|(_, _, last)| *last == code.2) {
            return;
        }
        codes.push_back(code);
        if codes.len() > MAX_QUEUED {
            codes.pop_front();
        }
        self.more.notify_one();
    }

    fn pop(&self) -> FoundCode {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match codes.pop_front() {
                Some(code) => return code,
                None => codes = self.more.wait(codes).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn deliver_all(found: &CodeQueue, event_of: impl Fn(FoundCode) -> EventSubmission, daemon: &Path) -> ! {
    let mut last = None;
    loop {
        let code = found.pop();
        let fields = Some(code.2.clone());
        // A failed delivery is not repeated: the next code is newer.
        if last != fields && deliver::post(daemon, &payload::encode_to_fit(event_of(code))).is_ok() {
            last = fields;
        }
    }
}

/// Reads the pane's output until the output ends, or until the agent or the daemon has exited.
fn read_all(codes: &CodeQueue, pid: u32, daemon: &Path) -> io::Result<()> {
    let stdin = io::stdin();
    let mut found = OscScanner::default();
    let mut buffer = vec![0; 64 << 10];
    // No data is sent on this connection. It closes when the daemon ends.
    let mut connection = connect_starting_daemon(daemon)?;
    let pause = Timespec::try_from(CHECK_INTERVAL).ok();
    loop {
        let mut watched = vec![PollFd::new(&stdin, PollFlags::IN)];
        watched.extend(connection.iter().map(|stream| PollFd::new(stream, PollFlags::IN)));
        let ready = match poll(&mut watched, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let input = !watched[0].revents().is_empty();
        let hung_up = watched.get(1).is_none_or(|stream| !stream.revents().is_empty());
        if ready == 0 && !is_alive(pid) {
            return Ok(());
        }
        if hung_up {
            // Connect again, because the daemon also closes idle connections. This fails if the daemon has ended.
            connection = connect_daemon(daemon)?;
        }
        if input {
            let length = stdin.lock().read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            for (state, fields) in found.read(&buffer[..length]) {
                codes.push((Timestamp::now(), state, fields));
            }
        }
    }
}

/// Connects to the daemon that opened this tap. Retries for a while, because a daemon opens its taps before its socket.
fn connect_starting_daemon(daemon: &Path) -> io::Result<Option<UnixStream>> {
    let deadline = Instant::now() + DAEMON_START_TIMEOUT;
    loop {
        match connect_daemon(daemon) {
            Err(_) if Instant::now() < deadline => thread::sleep(CONNECT_INTERVAL),
            result => return result,
        }
    }
}

/// Connects to the daemon. `None` if the daemon runs but cannot accept another connection now.
fn connect_daemon(daemon: &Path) -> io::Result<Option<UnixStream>> {
    match deliver::open(daemon) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // A process that this user may not signal is alive too.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
