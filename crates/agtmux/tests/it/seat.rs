//! The terminal interface in a pane, for tests that press its keys and read its screen.

use std::path::PathBuf;

use agtmux_testkit::agtmux::SOON;
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use rustix::process::{Pid, Signal, kill_process};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_agtmux");

/// The interface in a pane.
pub(crate) struct Seat {
    pub(crate) server: TestTmuxServer,
    pub(crate) pane: String,
    /// Where the process id, the exit status and the printed bytes are stored.
    files: PathBuf,
}

impl Seat {
    /// Starts `agtmux` with these arguments outside the tmux server of the agents.
    #[track_caller]
    pub(crate) fn open(world: &TestWorld, arguments: &str) -> Self {
        Self::open_on(world, world.tmux("seat"), &format!("env -u TMUX {PROGRAM} {arguments}"))
    }

    /// Starts this command in a new session of this server.
    #[track_caller]
    pub(crate) fn open_on(world: &TestWorld, server: TestTmuxServer, command: &str) -> Self {
        let files = world.home();
        let start = format!("sh -c 'echo $$ >pid; exec {command}'");
        let command = format!("cd {} && read -r go; {start}; echo $? >status; exec cat", files.display());
        let pane = server.new_session("seat", &command);
        server.run(&["pipe-pane", "-t", &pane, &format!("cat >{}/printed", files.display())]);
        server.run(&["send-keys", "-t", &pane, "Enter"]);
        Self { server, pane, files }
    }

    pub(crate) fn screen(&self) -> String {
        self.server.run(&["capture-pane", "-p", "-t", &self.pane])
    }

    /// Waits until the screen contains all of these texts.
    #[track_caller]
    pub(crate) fn wait_for_texts(&self, texts: &[&str]) -> String {
        wait_for(&format!("{texts:?} on the screen"), SOON, || {
            let screen = self.screen();
            if texts.iter().all(|text| screen.contains(text)) { Ok(screen) } else { Err(screen) }
        })
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        self.server.run(&[&["send-keys", "-t", &self.pane], keys].concat());
    }

    pub(crate) fn write(&self, text: &str) {
        self.server.run(&["send-keys", "-t", &self.pane, "-l", text]);
    }

    pub(crate) fn file(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.files.join(name)).unwrap_or_default()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.file("pid").trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the interface runs");
    }

    /// Waits until the interface has ended, and checks that it left the terminal as it was.
    #[track_caller]
    pub(crate) fn assert_ended(&self, status: &str) {
        // tmux sets the status a moment after it notices the end.
        let ended = wait_for("the end of the interface", SOON, || {
            let ended = self.file("status");
            if ended.is_empty() { Err(self.screen()) } else { Ok(ended) }
        });
        assert_eq!(ended.trim(), status, "{}", self.screen());
        // tmux writes the last bytes to the file a moment later.
        wait_for("the terminal to be as before", SOON, || {
            let printed = self.file("printed");
            let codes = [("[?1049h", "[?1049l"), ("[?1000h", "[?1000l"), ("[?2004h", "[?2004l"), ("[?25l", "[?25h")];
            let still_on = codes.iter().find(|(on, off)| printed.rfind(off) <= printed.rfind(on));
            still_on.map_or(Ok(()), |(on, _)| Err(format!("{on} is still on: {}", printed.escape_debug())))
        });
    }
}
