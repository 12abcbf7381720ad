//! What a pane's output is given to where the settings ask for it: finds the codes by which an agent tells its state to its
//! terminal, and brings them to the daemon. Everything else it reads is dropped at once.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use super::event::{Event, Place};
use super::{deliver, payload};

mod osc;

use osc::Codes;

pub(super) const TAP: &str = "--tap";

/// How long it may outlive the agent.
const STILL_NEEDED: Duration = Duration::from_secs(1);

/// `--tap AGENT PANE PID TMUX-SOCKET DAEMON-SOCKET`
pub(super) fn run(words: &[OsString]) {
    let [agent, pane, pid, server, daemon] = words else { return };
    let number = |word: &OsString| word.to_str()?.parse::<u32>().ok();
    let (Some(pane), Some(pid)) = (number(pane), number(pid)) else { return };
    let (Some(agent), Some(server)) = (agent.to_str(), server.to_str()) else { return };
    let daemon = PathBuf::from(daemon);
    let tap = Tap { agent: agent.into(), pane: format!("%{pane}"), pid, server: server.into(), daemon: daemon.clone() };
    let (codes, found) = mpsc::channel();
    // The pane must never wait for the daemon: whoever reads does nothing else.
    thread::spawn(move || tap.deliver_all(&found));
    let _ = read_all(&codes, pid, &daemon);
}

struct Tap {
    agent: String,
    pane: String,
    pid: u32,
    server: String,
    daemon: PathBuf,
}

impl Tap {
    fn deliver_all(&self, found: &Receiver<(Timestamp, String, Value)>) {
        let mut last = None;
        for (time, state, fields) in found {
            // Agents say it again with each frame that they draw.
            if last.as_ref() == Some(&fields) {
                continue;
            }
            let event = Event::new("osc", &state, time).agent(&self.agent).pid(self.pid).payload(Some(fields.clone()));
            let place = Place::in_pane(&self.pane, &self.server);
            // One that cannot be delivered is old by the time it could be; the next one tells more.
            if deliver::post(&self.daemon, &payload::fit(event.into_wire(place))).is_ok() {
                last = Some(fields);
            }
        }
    }
}

/// Until there is nothing to read, nobody to read it of, or nobody to read it for.
fn read_all(codes: &Sender<(Timestamp, String, Value)>, pid: u32, daemon: &Path) -> io::Result<()> {
    let stdin = io::stdin();
    let mut found = Codes::default();
    let mut buffer = vec![0; 64 << 10];
    // It says nothing on it; but when it ends, the line does.
    let mut line = deliver::open(daemon)?;
    let pause = Timespec::try_from(STILL_NEEDED).ok();
    loop {
        let mut both = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&line, PollFlags::IN)];
        let ready = match poll(&mut both, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            ready => ready?,
        };
        let [input, hung_up] = [&both[0], &both[1]].map(|fd| !fd.revents().is_empty());
        if ready == 0 && !is_alive(pid) {
            return Ok(());
        }
        if hung_up {
            // It hangs up on those who say nothing, too.
            line = deliver::open(daemon)?;
        }
        if input {
            let length = stdin.lock().read(&mut buffer)?;
            let told = found.read(&buffer[..length]);
            let passed_on =
                told.into_iter().all(|(state, fields)| codes.send((Timestamp::now(), state, fields)).is_ok());
            if length == 0 || !passed_on {
                return Ok(());
            }
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // One that is not ours to signal is alive, too.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
