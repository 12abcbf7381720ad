//! Input reaches the expected pane or no pane. Each refusal is verified by the bytes that the pane's program has read.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_until};
use agtmux_tmux::{PaneGuard, PaneInput, TmuxError, TmuxKey, TmuxServer, TypeError, TypeRefusal};

const DEADLINE: Duration = Duration::from_secs(20);
/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A pane whose program records every byte.
struct RecordingPane {
    notes: PathBuf,
    server: TestTmuxServer,
    pane: String,
    runtime: tokio::runtime::Runtime,
    world: TestWorld,
}

fn record_command(notes: &std::path::Path) -> String {
    format!("stty raw -echo; exec cat >{}", notes.display())
}

impl RecordingPane {
    fn new() -> Self {
        let world = TestWorld::new();
        let (server, notes) = (world.tmux("default"), world.home().join("notes"));
        let pane = server.new_session("work", &record_command(&notes));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        wait_until("the reader", DEADLINE, || {
            server.run(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]) == "cat"
        });
        Self { notes, server, pane, runtime, world }
    }

    fn guard(&self) -> PaneGuard {
        let facts = self.server.run(&["display-message", "-p", "-t", &self.pane, "#{pid} #{start_time} #{pane_pid}"]);
        let facts: Vec<i64> = facts.split(' ').map(|fact| fact.parse().expect("a number")).collect();
        let pid = |n: i64| u32::try_from(n).expect("a pid");
        let pane = self.pane.trim_start_matches('%').parse().expect("a number");
        PaneGuard { server_pid: pid(facts[0]), server_start: facts[1], pane, pane_pid: pid(facts[2]) }
    }

    fn types(&self, guard: PaneGuard, typing: PaneInput<'_>, timeout: Duration) -> Result<(), TypeError> {
        let server = TmuxServer::new("tmux", self.server.socket(), timeout);
        self.runtime.block_on(server.type_into(guard, typing))
    }

    #[track_caller]
    fn refuses(&self, guard: PaneGuard, why: TypeRefusal) {
        let interrupt = [TmuxKey::Named("C-c".into())];
        for typing in [PaneInput::Paste("pasted"), PaneInput::Keys(&interrupt)] {
            assert_eq!(self.types(guard, typing, TIMEOUT), Err(TypeError::Refused(why)), "{typing:?}");
        }
        assert_eq!(self.server.run(&["list-buffers", "-F", "#{buffer_name}"]), "", "a buffer remains");
    }

    /// Sends a marker and checks that the program has read exactly `expected` before the marker.
    #[track_caller]
    fn has_read(&self, expected: &str) {
        let read = || String::from_utf8_lossy(&fs::read(&self.notes).unwrap_or_default()).into_owned();
        let marks = || read().matches('|').count();
        let earlier = marks();
        self.server.run(&["send-keys", "-t", &self.pane, "-l", "--", "|"]);
        wait_until("the mark to be read", DEADLINE, || marks() > earlier);
        assert_eq!(read(), format!("{expected}|"));
    }
}

#[test]
fn the_expected_pane_gets_every_byte_and_no_buffer_remains() {
    let reader = RecordingPane::new();
    reader.server.run(&["set-buffer", "the user's own"]);
    let before = reader.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let text = "two\nlines; #(touch x) #{pane_id} $(x) `y` \\ ' \" 日本語 -x ;";
    let keys = [TmuxKey::Character(';'), TmuxKey::Character('é'), TmuxKey::enter()];
    for typing in [PaneInput::Paste(text), PaneInput::Keys(&keys), PaneInput::LeaveMode] {
        assert_eq!(reader.types(reader.guard(), typing, TIMEOUT), Ok(()), "{typing:?}");
    }
    assert_eq!(reader.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]), before);
    reader.has_read(&format!("{text};é\r"));
}

#[test]
fn another_server_generation_or_process_is_refused() {
    let reader = RecordingPane::new();
    let guard = reader.guard();
    reader.refuses(PaneGuard { server_pid: guard.server_pid + 1, ..guard }, TypeRefusal::OtherServer);
    reader.refuses(PaneGuard { server_start: guard.server_start - 1, ..guard }, TypeRefusal::OtherServer);
    reader.refuses(PaneGuard { pane_pid: guard.pane_pid + 1, ..guard }, TypeRefusal::OtherProcess);
    reader.refuses(PaneGuard { pane: 99, ..guard }, TypeRefusal::NoPane);
    reader.server.run(&["respawn-pane", "-k", "-t", &reader.pane, &record_command(&reader.notes)]);
    reader.refuses(guard, TypeRefusal::OtherProcess);
    let current = || reader.server.run(&["display-message", "-p", "-t", &reader.pane, "#{pane_current_command}"]);
    wait_until("the reader", DEADLINE, || current() == "cat");
    reader.has_read("");
}

#[test]
fn a_pane_that_accepts_no_keys_is_refused() {
    let reader = RecordingPane::new();
    let (guard, pane) = (reader.guard(), reader.pane.as_str());
    for mode in [&["copy-mode", "-t", pane][..], &["clock-mode", "-t", pane], &["choose-tree", "-t", pane]] {
        reader.server.run(mode);
        reader.refuses(guard, TypeRefusal::InMode);
        // LeaveMode ends any mode.
        assert_eq!(reader.types(guard, PaneInput::LeaveMode, TIMEOUT), Ok(()));
        assert_eq!(reader.server.run(&["display-message", "-p", "-t", pane, "#{pane_in_mode}"]), "0", "{mode:?}");
    }
    reader.server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "on"]);
    reader.refuses(guard, TypeRefusal::Synchronized);
    reader.server.run(&["set-option", "-w", "-t", pane, "synchronize-panes", "off"]);
    reader.server.run(&["select-pane", "-d", "-t", pane]);
    reader.refuses(guard, TypeRefusal::InputOff);
    reader.server.run(&["select-pane", "-e", "-t", pane]);
    reader.has_read("");
}

#[test]
fn a_dead_pane_is_refused_and_its_server_survives() {
    let reader = RecordingPane::new();
    reader.server.run(&["set-option", "-w", "-t", &reader.pane, "remain-on-exit", "on"]);
    let guard = reader.guard();
    let server = reader.server.pid();
    agtmux_testkit::process::signal(guard.pane_pid, rustix::process::Signal::KILL);
    let dead = || reader.server.run(&["display-message", "-p", "-t", &reader.pane, "#{pane_dead}"]) == "1";
    wait_until("the pane to be dead", DEADLINE, dead);
    reader.refuses(guard, TypeRefusal::Dead);
    assert_eq!(reader.types(guard, PaneInput::LeaveMode, TIMEOUT), Err(TypeError::Refused(TypeRefusal::Dead)));
    assert_eq!(reader.server.pid(), server);
    assert_eq!(fs::read(&reader.notes).expect("notes"), b"");
}

/// A killed client leaves its commands in the server's socket. A stopped server reads them when it continues.
#[test]
fn a_stopped_server_types_nothing_after_it_continues() {
    let reader = RecordingPane::new();
    reader.server.run(&["set-buffer", "the user's own"]);
    let buffers = || reader.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let (before, guard) = (buffers(), reader.guard());
    let stopped = reader.server.stop();
    let timeout = Duration::from_secs(1);
    let keys = [TmuxKey::Character('x'), TmuxKey::enter()];
    for typing in [PaneInput::Keys(&keys), PaneInput::Paste("pasted late")] {
        assert_eq!(reader.types(guard, typing, timeout), Err(TypeError::Tmux(TmuxError::Timeout(timeout))));
    }
    // Wait for the next second, so that the deadline of the last command has surely passed.
    let second =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time after 1970").as_secs();
    let deadline = second();
    wait_until("the next second", DEADLINE, || second() > deadline);
    reader.server.cont(stopped);
    reader.has_read("");
    wait_until("our buffer to be gone", DEADLINE, || buffers() == before);
    // The pane accepts input again.
    assert_eq!(reader.types(guard, PaneInput::Paste("now"), TIMEOUT), Ok(()));
    reader.has_read("|now");
    assert!(reader.world.dir().exists());
}
