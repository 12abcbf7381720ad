//! Large texts, blocked programs and stopped servers: a text arrives whole or not at all, and is never visible in
//! processes or buffers.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agtmux_testkit::action_fixture::{self, ActionFixture, assert_done, assert_refused};
use agtmux_testkit::agtmux::{SOON, list, script};
use agtmux_testkit::http;
use agtmux_testkit::{ChildGuard, wait_until};
use serde_json::{Value, json};

/// A pane with a program that waits until the go file exists and then writes its input to another file.
struct PaneReader {
    pane: String,
    input_file: PathBuf,
    go_file: PathBuf,
}

impl PaneReader {
    #[track_caller]
    fn start(fixture: &ActionFixture, mode: &str) -> Self {
        let reader = Self::start_blocked(fixture, mode);
        reader.unblock();
        reader
    }

    /// Starts a program that does not read until `unblock`.
    #[track_caller]
    fn start_blocked(fixture: &ActionFixture, mode: &str) -> Self {
        let [notes, ready, go] = ["notes", "ready", "go"].map(|name| fixture.world.home().join(name));
        let wait = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
        let read = format!("stty {mode} -echo; touch {}; {wait}; exec cat >{}", ready.display(), notes.display());
        let pane = fixture.server.new_session("work", &read);
        wait_until("the reader", SOON, || ready.exists());
        wait_until("the pane to be listed", SOON, || list(&fixture.world).to_string().contains(&format!("\"{pane}\"")));
        Self { pane, input_file: notes, go_file: go }
    }

    fn unblock(&self) {
        fs::write(&self.go_file, "").expect("the world is writable");
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.input_file).unwrap_or_default()
    }

    #[track_caller]
    fn assert_read(&self, expected: &[u8]) {
        wait_until("the program to read all input", SOON, || self.read().len() >= expected.len());
        assert!(self.read() == expected, "{} bytes read, and they differ", self.read().len());
    }
}

/// A text of one megabyte without repeated lines.
fn megabyte() -> String {
    let mut text: String = (0..).map(|n| format!("{n} ä€🦀 \\;#{{x}}$(y)\n")).take(60_000).collect();
    text.truncate(text.floor_char_boundary((1 << 20) - 1));
    text.push('z');
    assert!(text.len() > (1 << 20) - 5 && text.len() <= 1 << 20);
    text
}

fn send_to_shell(fixture: &ActionFixture, pane: &str, text: &str) -> http::HttpResponse {
    fixture.post("send", &json!({"ref": pane, "text": text, "profile": "shell"}))
}

#[test]
fn a_text_of_one_megabyte_arrives_unchanged() {
    let fixture = ActionFixture::new("");
    let reader = PaneReader::start(&fixture, "raw");
    let text = megabyte();
    assert_done(&send_to_shell(&fixture, &reader.pane, &text));
    reader.assert_read(&[text.as_bytes(), b"\r"].concat());
}

#[test]
fn a_blocked_program_reads_the_whole_text_later() {
    let fixture = ActionFixture::new("");
    let reader = PaneReader::start_blocked(&fixture, "raw");
    let text = megabyte();
    let done = assert_done(&send_to_shell(&fixture, &reader.pane, &text));
    assert_ne!(done["verified"], "confirmed", "the program has not read it: {done}");
    assert!(reader.read().is_empty());
    reader.unblock();
    reader.assert_read(&[text.as_bytes(), b"\r"].concat());
}

/// A cooked terminal keeps the first 4095 bytes of a line and discards the rest.
#[test]
fn a_line_too_long_for_a_cooked_terminal_is_refused() {
    let fixture = ActionFixture::new("");
    let reader = PaneReader::start(&fixture, "cooked");
    let long = format!("short\n{}", "x".repeat(4096));
    let error = assert_refused(&send_to_shell(&fixture, &reader.pane, &long), "E_PRECONDITION");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("nothing was typed")), "{error}");
    let longest = "y".repeat(4095);
    assert_done(&send_to_shell(&fixture, &reader.pane, &longest));
    reader.assert_read(format!("{longest}\n").as_bytes());
}

/// Text for a shell requires `--profile shell`.
#[test]
fn send_to_a_pane_without_an_agent_requires_the_shell_profile() {
    let fixture = ActionFixture::new("");
    let reader = PaneReader::start(&fixture, "raw");
    let error = assert_refused(&fixture.send(&reader.pane, "ls"), "E_PRECONDITION");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--profile shell")), "{error}");
    assert_refused(&fixture.post("kill", &json!({"ref": reader.pane, "signal": "KILL"})), "E_PRECONDITION");
    fixture.server.run(&["send-keys", "-t", &reader.pane, "-l", "mark"]);
    reader.assert_read(b"mark");
}

/// Neither `ps` nor `tmux list-buffers` shows the text.
#[test]
fn sent_text_appears_in_no_process_argument_and_no_buffer() {
    // A wrapper records the arguments and environment of every tmux call.
    let fixture = ActionFixture::with_world(|world| {
        let log = world.home().join("calls");
        let record_call = format!("printf '%s\\n' \"$@\" >>{0}; env >>{0}; exec tmux \"$@\"", log.display());
        format!("tmux.program = \"{}\"", script(world, "recording-tmux", &record_call).display())
    });
    let log = fixture.world.home().join("calls");
    let agent = fixture.agent("work");
    fixture.server.run(&["set-buffer", "the user's own"]);
    let buffers = || fixture.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let (before, secret) = (buffers(), "a text that must stay private");
    let mut sending = fixture.world.agtmux();
    sending.args(["send", &agent.pane, "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut sending = ChildGuard::start(&mut sending);
    std::io::Write::write_all(&mut sending.stdin.take().expect("a pipe"), secret.as_bytes())
        .expect("agtmux reads its stdin");
    assert!(sending.wait().expect("agtmux exits").success());
    assert_refused(
        &fixture.post("send", &json!({"ref": agent.pane, "text": secret, "if_state": "error"})),
        "E_STATE_CHANGED",
    );
    assert_eq!(agent.submitted_texts(), [secret]);
    let calls = String::from_utf8_lossy(&fs::read(&log).expect("the calls are recorded")).into_owned();
    assert!(calls.contains("paste-buffer") && calls.contains("load-buffer"), "the wrapper recorded the calls");
    for part in [secret, "must stay", "6d7573742073746179"] {
        assert!(!calls.contains(part), "the text was an argument or in the environment");
    }
    assert_eq!(buffers(), before);
}

#[test]
fn a_stopped_server_types_nothing_after_the_timeout() {
    let fixture = ActionFixture::new("tmux_bridge.subprocess_timeout = \"1s\"\n");
    let agent = fixture.agent("work");
    agent.server.run(&["set-buffer", "the user's own"]);
    let buffers = || agent.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let before = buffers();
    let stopped = agent.server.stop();
    let began = Instant::now();
    let ask = |more: Value| {
        fixture.post("send", &action_fixture::merge_json(&json!({"ref": agent.pane, "force_stale": true}), &more))
    };
    assert_refused(&ask(json!({"text": "too late"})), "TIMEOUT");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    assert_refused(&ask(json!({"text": "too late", "profile": "shell"})), "TIMEOUT");
    assert_refused(&ask(json!({"keys": ["Enter"], "profile": "shell"})), "TIMEOUT");
    assert_refused(&fixture.post("kill", &json!({"ref": agent.pane, "force_stale": true})), "TIMEOUT");
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("later").as_secs();
    let given_up = second();
    wait_until("the next second", SOON, || second() > given_up);
    agent.server.cont(stopped);
    agent.assert_no_input();
    wait_until("the buffers of agtmux to be gone", SOON, || buffers() == before);
    fixture.wait_for_state(&agent, "idle");
    assert_done(&fixture.send(&agent.pane, "in time"));
    assert_eq!(agent.submitted_texts(), ["in time"]);
}
