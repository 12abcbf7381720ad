//! What is said of a text that was not taken, and what is not done then.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/wedged.sh");
/// The tests may themselves be run by an agent.
const SETTINGS: &str = "actions.allow_from_agents = true\ntmux_bridge.text_enter_delay_ms = 10\n";
const REFUSED_EXIT_CODE: i32 = 5;

/// One agent with a fault, below a shell.
struct FaultyAgentFixture {
    notes: PathBuf,
    pane: String,
    server: TestTmuxServer,
    world: TestWorld,
}

impl FaultyAgentFixture {
    fn with(fault: &str) -> Self {
        let world = TestWorld::with_agtmux(env!("CARGO_BIN_EXE_agtmux"));
        fs::create_dir_all(world.config_file().parent().expect("a directory")).expect("the world is writable");
        fs::write(world.config_file(), SETTINGS).expect("the world is writable");
        let notes = world.home().join("notes");
        fs::create_dir(&notes).expect("the world is writable");
        let server = world.tmux("default");
        let claude = world.shell_copy("claude").display().to_string();
        let pane = server.new_session("work", "PS1='sh$ ' exec sh -i");
        let command = format!("{claude} {SCRIPT} {} {fault}", notes.display());
        server.run(&["send-keys", "-t", &pane, &command, "Enter"]);
        let stage = Self { notes, pane, server, world };
        wait_for("the agent to be seen at rest", SOON, || {
            let listed = stage.agtmux(&["list", "panes", "--json"]);
            let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
            let rests = |item: &Value| item["agent_type"] == "claude" && item["state"] == "idle";
            let found = listed["items"].as_array().is_some_and(|items| items.iter().any(rests));
            if found { Ok(()) } else { Err(listed.to_string()) }
        });
        stage
    }

    fn agtmux(&self, args: &[&str]) -> Output {
        self.world.agtmux().args(args).output().expect("agtmux can be started")
    }

    fn send(&self, args: &[&str]) -> Output {
        self.agtmux(&[&["send", &self.pane], args].concat())
    }

    /// All that the agent has read.
    fn bytes_read(&self) -> String {
        read(&self.notes.join("read"))
    }

    fn screen(&self) -> String {
        self.server.run(&["capture-pane", "-p", "-t", &self.pane])
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

#[track_caller]
fn assert_failed(output: &Output, why: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(REFUSED_EXIT_CODE), "{told}");
    assert!(told.contains(why), "{told}");
}

#[test]
fn all_enter_retries_exhausted() {
    let stage = FaultyAgentFixture::with("stuck");
    assert_failed(&stage.send(&["--text", "some text"]), "was not taken after 4 times Enter");
    assert!(stage.screen().contains("❯ some text"), "{}", stage.screen());
    // Typed once, however often Enter is pressed.
    assert_eq!(stage.bytes_read(), format!("\u{1b}[200~some text\u{1b}[201~{}", "\r".repeat(4)));
    assert_failed(&stage.send(&["--text", "some text"]), "text in its input box that nobody has sent");
    assert_eq!(stage.bytes_read().matches("some text").count(), 1);
    let log = read(&stage.world.state_dir().join("agtmuxd.log"));
    assert!(log.contains("a text was not taken") && log.contains("some text"), "what it showed is in the log: {log}");
    // What the message says to try is possible.
    assert!(stage.send(&["--key", "Enter"]).status.success());
    wait_until("another Enter", SOON, || stage.bytes_read().matches('\r').count() == 5);
}

#[test]
fn a_text_that_never_shows_is_not_followed_by_enter() {
    let stage = FaultyAgentFixture::with("deaf");
    assert_failed(&stage.send(&["--text", "some text"]), "does not show in the input box; Enter was not pressed");
    assert_eq!(stage.bytes_read(), "\u{1b}[200~some text\u{1b}[201~");
}

#[test]
fn enter_retry_with_ghost_text_recovery() {
    let stage = FaultyAgentFixture::with("suggests");
    let output = stage.send(&["--text", "some text", "--json"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("\"confirmed\"") && told.contains("\"attempts\":2"), "{told}");
    assert_eq!(stage.bytes_read(), "\u{1b}[200~some text\u{1b}[201~\r\u{1b}\r");
}

/// Escape also stops turns and erases drafts: it is pressed only where the suggestion is in the way.
#[test]
fn post_typing_ghost_text_dismissal() {
    let stage = FaultyAgentFixture::with("hints");
    let output = stage.send(&["--text", "some text", "--json"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("\"confirmed\"") && told.contains("\"attempts\":1"), "{told}");
    assert_eq!(stage.bytes_read(), "\u{1b}[200~some text\u{1b}[201~\r");
}

const LONG: &str = "a text of more than forty characters, shown once more when taken";

/// It is looked for in the box, not on the whole screen: agents show what they were told.
#[test]
fn enter_verification_with_text_presence_check_for_long_text() {
    for (fault, attempts) in [("echoes", 1), ("swallows", 2)] {
        let stage = FaultyAgentFixture::with(fault);
        let output = stage.send(&["--text", LONG, "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!((&told["verified"], &told["attempts"]), (&"confirmed".into(), &attempts.into()), "{fault}: {told}");
        assert!(stage.screen().starts_with(&format!("❯ {LONG}")), "{}", stage.screen());
        assert_eq!(stage.bytes_read(), format!("\u{1b}[200~{LONG}\u{1b}[201~{}", "\r".repeat(attempts)));
    }
}

#[test]
fn what_an_agent_left_behind_when_it_ended_is_no_command_for_its_shell() {
    let stage = FaultyAgentFixture::with("dies");
    let made = stage.world.home().join("made");
    let output = stage.send(&["--text", &format!(" touch {}", made.display())]);
    assert_failed(&output, "the agent ended before Enter was pressed");
    // It waits on the shell's line, and nobody has pressed Enter.
    wait_until("the shell", SOON, || stage.screen().matches("sh$").count() == 1);
    assert!(!made.exists(), "it was run");
}
