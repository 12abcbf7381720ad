//! Verification of `send` with faulty agents: how failures are reported, and which keys are not pressed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use agtmux_testkit::agtmux::{SOON, configure, items, list, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, skip_outside_soak, wait_for, wait_until};
use serde_json::Value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/faulty_agent.sh");
/// Allows sends from agents, because an agent may run these tests.
const SETTINGS: &str = "actions.allow_from_agents = true\ntmux_bridge.text_enter_delay_ms = 10\n";
const REFUSED_EXIT_CODE: i32 = 5;

/// A faulty agent started from a shell.
struct FaultyAgentFixture {
    agent_dir: PathBuf,
    pane: String,
    server: TestTmuxServer,
    world: TestWorld,
}

impl FaultyAgentFixture {
    fn with(fault: &str) -> Self {
        let world = world();
        configure(&world, SETTINGS);
        let agent_dir = world.home().join("agent_dir");
        fs::create_dir(&agent_dir).expect("the world is writable");
        let server = world.tmux("default");
        let claude = world.shell_copy("claude").display().to_string();
        let pane = server.new_session("work", "PS1='sh$ ' exec sh -i");
        let command = format!("{claude} {SCRIPT} {} {fault}", agent_dir.display());
        server.run(&["send-keys", "-t", &pane, &command, "Enter"]);
        let fixture = Self { agent_dir, pane, server, world };
        wait_for("the agent to be idle", SOON, || {
            let listed = list(&fixture.world);
            let is_idle = |item: &Value| item["agent_type"] == "claude" && item["state"] == "idle";
            if items(&listed).iter().any(is_idle) { Ok(()) } else { Err(listed.to_string()) }
        });
        fixture
    }

    fn send(&self, args: &[&str]) -> Output {
        let mut command = self.world.agtmux();
        command.args(["send", &self.pane]).args(args).output().expect("agtmux can be started")
    }

    /// All input that the agent has read.
    fn bytes_read(&self) -> String {
        read(&self.agent_dir.join("read"))
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(REFUSED_EXIT_CODE), "{stderr}");
    assert!(stderr.contains(why), "{stderr}");
}

#[test]
fn all_enter_retries_exhausted() {
    let fixture = FaultyAgentFixture::with("stuck");
    assert_failed(&fixture.send(&["--text", "some text"]), "still in the input box after 4 Enter presses");
    assert!(fixture.screen().contains("❯ some text"), "{}", fixture.screen());
    // The text is typed once, Enter four times.
    assert_eq!(fixture.bytes_read(), format!("\u{1b}[200~some text\u{1b}[201~{}", "\r".repeat(4)));
    assert_failed(&fixture.send(&["--text", "some text"]), "the input box contains unsent text");
    assert_eq!(fixture.bytes_read().matches("some text").count(), 1);
    let log = read(&fixture.world.state_dir().join("agtmuxd.log"));
    assert!(
        log.contains("a text was not submitted") && log.contains("some text"),
        "the log contains the screen: {log}"
    );
    // The command that the error suggests works.
    assert!(fixture.send(&["--key", "Enter"]).status.success());
    wait_until("another Enter", SOON, || fixture.bytes_read().matches('\r').count() == 5);
}

#[test]
fn enter_is_not_pressed_if_the_text_does_not_appear() {
    // This test takes 20 s. The unit tests of `sender/paste.rs` cover the timeout.
    if skip_outside_soak() {
        return;
    }
    let fixture = FaultyAgentFixture::with("deaf");
    assert_failed(&fixture.send(&["--text", "some text"]), "does not show in the input box; Enter was not pressed");
    assert_eq!(fixture.bytes_read(), "\u{1b}[200~some text\u{1b}[201~");
}

#[test]
fn enter_retry_with_ghost_text_recovery() {
    let fixture = FaultyAgentFixture::with("suggests");
    let output = fixture.send(&["--text", "some text", "--json"]);
    let result = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(result.contains("\"confirmed\"") && result.contains("\"attempts\":2"), "{result}");
    assert_eq!(fixture.bytes_read(), "\u{1b}[200~some text\u{1b}[201~\r\u{1b}\r");
}

/// Escape would dismiss the suggestion, but it also stops turns and erases drafts. `send` presses it only if the
/// suggestion blocks the submit.
#[test]
fn post_typing_ghost_text_dismissal() {
    let fixture = FaultyAgentFixture::with("hints");
    let output = fixture.send(&["--text", "some text", "--json"]);
    let result = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(result.contains("\"confirmed\"") && result.contains("\"attempts\":1"), "{result}");
    assert_eq!(fixture.bytes_read(), "\u{1b}[200~some text\u{1b}[201~\r");
}

const LONG: &str = "a text of more than forty characters that is echoed when accepted";

/// `send` searches for the text only in the input box, because agents also show the submitted prompt above the box.
#[test]
fn enter_verification_with_text_presence_check_for_long_text() {
    for (fault, attempts) in [("echoes", 1), ("swallows", 2)] {
        let fixture = FaultyAgentFixture::with(fault);
        let output = fixture.send(&["--text", LONG, "--json"]);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(
            (&result["verified"], &result["attempts"]),
            (&"confirmed".into(), &attempts.into()),
            "{fault}: {result}"
        );
        assert!(fixture.screen().starts_with(&format!("❯ {LONG}")), "{}", fixture.screen());
        assert_eq!(fixture.bytes_read(), format!("\u{1b}[200~{LONG}\u{1b}[201~{}", "\r".repeat(attempts)));
    }
}

#[test]
fn text_left_by_an_exited_agent_is_not_run_by_its_shell() {
    let fixture = FaultyAgentFixture::with("dies");
    let made = fixture.world.home().join("made");
    let output = fixture.send(&["--text", &format!(" touch {}", made.display())]);
    assert_failed(&output, "the agent ended before Enter was pressed");
    // The text is on the shell's command line and Enter was not pressed.
    wait_until("the shell", SOON, || fixture.screen().matches("sh$").count() == 1);
    assert!(!made.exists(), "the text was executed");
}
