//! What a pane's output is given to where the settings ask for it: finds the codes by which an agent tells its state to its
//! terminal, and brings them to the daemon. Everything else it reads is dropped at once.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::event::{HookEvent, HookOrigin};
use super::{deliver, payload};

mod osc;

use osc::OscScanner;

pub(super) const TAP_FLAG: &str = "--tap";

/// How long it may outlive the agent.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
const MAX_QUEUED: usize = 64;

/// `--tap AGENT PANE PID TMUX-SOCKET DAEMON-SOCKET`
pub(super) fn run(words: &[OsString]) {
    let [agent, pane, pid, server, daemon] = words else { return };
    let number = |word: &OsString| word.to_str()?.parse::<u32>().ok();
    let (Some(pane), Some(pid)) = (number(pane), number(pid)) else { return };
    let (Some(agent), Some(server)) = (agent.to_str(), server.to_str()) else { return };
    let daemon = PathBuf::from(daemon);
    let tap =
        OscTap { agent: agent.into(), pane: format!("%{pane}"), pid, server: server.into(), daemon: daemon.clone() };
    let codes = Arc::new(CodeQueue::default());
    let found = codes.clone();
    // The pane must never wait for the daemon: whoever reads does nothing else.
    thread::spawn(move || tap.deliver_all(&found));
    // However it ends, there is nothing left to do.
    let _ = read_all(&codes, pid, &daemon);
}

/// What was found and is not delivered yet. Anybody can write codes to a terminal, and faster than they are taken: the
/// oldest make room.
#[derive(Default)]
struct CodeQueue {
    codes: Mutex<VecDeque<FoundCode>>,
    more: Condvar,
}

type FoundCode = (Timestamp, String, Value);

impl CodeQueue {
    fn push(&self, code: FoundCode) {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents say it again with each frame that they draw.
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

struct OscTap {
    agent: String,
    pane: String,
    pid: u32,
    server: String,
    daemon: PathBuf,
}

impl OscTap {
    fn deliver_all(&self, found: &CodeQueue) -> ! {
        let mut last = None;
        loop {
            let (time, state, fields) = found.pop();
            if last.as_ref() == Some(&fields) {
                continue;
            }
            let event =
                HookEvent::new("osc", &state, time).agent(&self.agent).pid(self.pid).payload(Some(fields.clone()));
            let place = HookOrigin::in_pane(&self.pane, &self.server);
            // One that cannot be delivered is old by the time it could be; the next one tells more.
            if deliver::post(&self.daemon, &payload::encode_to_fit(event.into_wire(place))).is_ok() {
                last = Some(fields);
            }
        }
    }
}

/// Until there is nothing to read, nobody to read it of, or nobody to read it for.
fn read_all(codes: &CodeQueue, pid: u32, daemon: &Path) -> io::Result<()> {
    let stdin = io::stdin();
    let mut found = OscScanner::default();
    let mut buffer = vec![0; 64 << 10];
    // It says nothing on it; but when it ends, the line does.
    let mut line = connect_daemon(daemon)?;
    let pause = Timespec::try_from(CHECK_INTERVAL).ok();
    loop {
        let mut watched = vec![PollFd::new(&stdin, PollFlags::IN)];
        watched.extend(line.iter().map(|line| PollFd::new(line, PollFlags::IN)));
        let ready = match poll(&mut watched, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let input = !watched[0].revents().is_empty();
        let hung_up = watched.get(1).is_none_or(|line| !line.revents().is_empty());
        if ready == 0 && !is_alive(pid) {
            return Ok(());
        }
        if hung_up {
            // It hangs up on those who say nothing, too.
            line = connect_daemon(daemon)?;
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

/// None where the daemon lives and has no time.
fn connect_daemon(daemon: &Path) -> io::Result<Option<UnixStream>> {
    match deliver::open(daemon) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        line => line.map(Some),
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One that is not ours to signal is alive, too.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
