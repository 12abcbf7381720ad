//! A fake agent that records its input and draws the scenes of a test.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agtmux::SOON;
use crate::{TestTmuxServer, TestWorld, wait_until};

/// The script of the fake agent. Its argument is the directory to which the agent writes its files.
pub const FAKE_AGENT_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fake_agent.sh");
const REDRAW: u8 = 0x0c;

pub struct FakeAgent {
    pub server: TestTmuxServer,
    pub pane: String,
    pub dir: PathBuf,
}

impl FakeAgent {
    /// Starts the agent in a new session of the default server.
    #[track_caller]
    pub fn start(world: &TestWorld, session: &str) -> Self {
        Self::start_on(world, &world.tmux("default"), session)
    }

    #[track_caller]
    pub fn start_on(world: &TestWorld, server: &TestTmuxServer, session: &str) -> Self {
        let dir = Self::fresh_dir(world);
        let pane = server.new_session(session, &Self::command(world, &dir));
        Self::wait_for_start(server, pane, dir)
    }

    /// Waits until the agent in this pane has started. The agent writes its files to `dir`.
    #[track_caller]
    pub fn wait_for_start(server: &TestTmuxServer, pane: String, dir: PathBuf) -> Self {
        wait_until("the fake agent to start", SOON, || dir.join("read").exists());
        Self { server: server.clone(), pane, dir }
    }

    /// The shell command that starts an agent which writes its files to `dir`.
    pub fn command(world: &TestWorld, dir: &Path) -> String {
        format!("exec {} {FAKE_AGENT_SCRIPT} {}", world.shell_copy("claude").display(), dir.display())
    }

    pub fn fresh_dir(world: &TestWorld) -> PathBuf {
        let n = fs::read_dir(world.home()).expect("the home directory is readable").count();
        let dir = world.home().join(format!("notes-{n}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        dir
    }

    fn bytes_read(&self) -> Vec<u8> {
        fs::read(self.dir.join("read")).unwrap_or_default()
    }

    /// The bytes that the agent has read, without redraw keys.
    pub fn input_so_far(&self) -> Vec<u8> {
        self.bytes_read().into_iter().filter(|byte| *byte != REDRAW).collect()
    }

    /// All bytes that the agent has received so far. To be sure that the agent has read everything, this function sends
    /// a redraw key and waits until the agent has read that key too.
    #[track_caller]
    pub fn complete_input(&self) -> Vec<u8> {
        let count = || self.bytes_read().iter().filter(|byte| **byte == REDRAW).count();
        let before = count();
        self.server.run(&["send-keys", "-t", &self.pane, "C-l"]);
        wait_until("the fake agent to redraw", SOON, || count() > before);
        self.input_so_far()
    }

    /// All text that the agent has received so far.
    #[track_caller]
    pub fn typed_text(&self) -> String {
        String::from_utf8(self.complete_input()).expect("text")
    }

    #[track_caller]
    pub fn assert_no_input(&self) {
        let read = self.complete_input();
        assert!(read.is_empty(), "{} received input: {}", self.pane, read.escape_ascii());
    }

    /// The texts that were submitted to the agent. Fails the test if a text is not exactly one bracketed paste and
    /// Enter.
    #[track_caller]
    pub fn submitted_texts(&self) -> Vec<String> {
        let read = self.typed_text();
        let mut texts: Vec<&str> = read.split('\r').collect();
        assert_eq!(texts.pop(), Some(""), "typed but not submitted: {read:?}");
        let paste = |text: &str| {
            let inside = text.strip_prefix("\x1b[200~").and_then(|text| text.strip_suffix("\x1b[201~"));
            inside.unwrap_or_else(|| panic!("not one paste: {text:?}")).to_owned()
        };
        texts.into_iter().map(paste).collect()
    }

    /// How many turns have ended. Only some scenes have turns: in these scenes, Enter begins a turn.
    pub fn turns_ended(&self) -> usize {
        fs::read_to_string(self.dir.join("turns")).unwrap_or_default().lines().count()
    }

    #[track_caller]
    pub fn draw_scene(&self, scene: &str) {
        fs::write(self.dir.join("scene.new"), format!("{scene}\n")).expect("the world is writable");
        fs::rename(self.dir.join("scene.new"), self.dir.join("scene")).expect("the world is writable");
        self.complete_input();
    }
}
