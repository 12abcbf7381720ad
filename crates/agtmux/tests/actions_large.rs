//! Large texts, slow readers, stopped servers: what is sent arrives whole, or not at all, and leaves no trace on the way.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use agtmux::{SOON, list, script};
use agtmux_testkit::{ChildGuard, wait_until};
use serde_json::{Value, json};
use stage::{Stage, assert_done, assert_refused};

/// A pane whose program notes what it reads, from when it is told to.
struct PaneReader {
    pane: String,
    input_file: PathBuf,
    go_file: PathBuf,
}

impl PaneReader {
    #[track_caller]
    fn start(stage: &Stage, mode: &str) -> Self {
        let reader = Self::start_blocked(stage, mode);
        reader.unblock();
        reader
    }

    /// One that does something else at first.
    #[track_caller]
    fn start_blocked(stage: &Stage, mode: &str) -> Self {
        let [notes, ready, go] = ["notes", "ready", "go"].map(|name| stage.world.home().join(name));
        let wait = format!("until [ -e {} ]; do sleep 0.05; done", go.display());
        let read = format!("stty {mode} -echo; touch {}; {wait}; exec cat >{}", ready.display(), notes.display());
        let pane = stage.server.new_session("work", &read);
        wait_until("the reader", SOON, || ready.exists());
        wait_until("it to be listed", SOON, || list(&stage.world).to_string().contains(&format!("\"{pane}\"")));
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
        wait_until("all of it to be read", SOON, || self.read().len() >= expected.len());
        assert!(self.read() == expected, "{} bytes, and other ones", self.read().len());
    }
}

/// A megabyte in which no two places are alike.
fn megabyte() -> String {
    let mut text: String = (0..).map(|n| format!("{n} ä€🦀 \\;#{{x}}$(y)\n")).take(60_000).collect();
    text.truncate(text.floor_char_boundary((1 << 20) - 1));
    text.push('z');
    assert!(text.len() > (1 << 20) - 5 && text.len() <= 1 << 20);
    text
}

fn send_to_shell(stage: &Stage, pane: &str, text: &str) -> http::Answer {
    stage.post("send", &json!({"ref": pane, "text": text, "profile": "shell"}))
}

#[test]
fn a_megabyte_arrives_to_the_byte() {
    let stage = Stage::new("");
    let reader = PaneReader::start(&stage, "raw");
    let text = megabyte();
    assert_done(&send_to_shell(&stage, &reader.pane, &text));
    reader.assert_read(&[text.as_bytes(), b"\r"].concat());
}

#[test]
fn a_reader_that_is_busy_gets_all_of_it_later() {
    let stage = Stage::new("");
    let reader = PaneReader::start_blocked(&stage, "raw");
    let text = megabyte();
    let done = assert_done(&send_to_shell(&stage, &reader.pane, &text));
    assert_ne!(done["verified"], "confirmed", "nobody has read it: {done}");
    assert!(reader.read().is_empty());
    reader.unblock();
    reader.assert_read(&[text.as_bytes(), b"\r"].concat());
}

/// Such a terminal keeps the first 4095 bytes of a line and throws the rest away.
#[test]
fn a_terminal_that_would_cut_a_line_gets_nothing_of_it() {
    let stage = Stage::new("");
    let reader = PaneReader::start(&stage, "cooked");
    let long = format!("short\n{}", "x".repeat(4096));
    let error = assert_refused(&send_to_shell(&stage, &reader.pane, &long), "E_PRECONDITION");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("nothing was typed")), "{error}");
    let most = "y".repeat(4095);
    assert_done(&send_to_shell(&stage, &reader.pane, &most));
    reader.assert_read(format!("{most}\n").as_bytes());
}

/// The shell that a text goes to has to be asked for.
#[test]
fn a_pane_without_an_agent_gets_nothing_by_mistake() {
    let stage = Stage::new("");
    let reader = PaneReader::start(&stage, "raw");
    let error = assert_refused(&stage.send(&reader.pane, "ls"), "E_PRECONDITION");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("--profile shell")), "{error}");
    assert_refused(&stage.post("kill", &json!({"ref": reader.pane, "signal": "KILL"})), "E_PRECONDITION");
    stage.server.run(&["send-keys", "-t", &reader.pane, "-l", "mark"]);
    reader.assert_read(b"mark");
}

/// Whoever lists processes sees no text, and whoever lists buffers no buffer.
#[test]
fn a_text_shows_up_neither_among_processes_nor_among_buffers() {
    // Every call of tmux is noted with all of its arguments and its environment.
    let stage = Stage::with(|world| {
        let log = world.home().join("calls");
        let noting = format!("printf '%s\\n' \"$@\" >>{0}; env >>{0}; exec tmux \"$@\"", log.display());
        format!("tmux.program = \"{}\"", script(world, "noting-tmux", &noting).display())
    });
    let log = stage.world.home().join("calls");
    let agent = stage.agent("work");
    stage.server.run(&["set-buffer", "the user's own"]);
    let buffers = || stage.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let (before, secret) = (buffers(), "a text that nobody else shall see");
    let mut sending = stage.world.agtmux();
    sending.args(["send", &agent.pane, "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut sending = ChildGuard::start(&mut sending);
    std::io::Write::write_all(&mut sending.stdin.take().expect("a pipe"), secret.as_bytes()).expect("it reads");
    assert!(sending.wait().expect("it ends").success());
    assert_refused(
        &stage.post("send", &json!({"ref": agent.pane, "text": secret, "if_state": "error"})),
        "E_STATE_CHANGED",
    );
    assert_eq!(agent.submitted(), [secret]);
    let calls = String::from_utf8_lossy(&fs::read(&log).expect("calls were noted")).into_owned();
    assert!(calls.contains("paste-buffer") && calls.contains("load-buffer"), "the calls were not seen");
    for part in [secret, "nobody else", "6e6f626f6479"] {
        assert!(!calls.contains(part), "it was an argument");
    }
    assert_eq!(buffers(), before);
}

#[test]
fn a_server_that_is_stopped_gets_nothing_when_it_goes_on() {
    let stage = Stage::new("tmux_bridge.subprocess_timeout = \"1s\"\n");
    let agent = stage.agent("work");
    agent.server.run(&["set-buffer", "the user's own"]);
    let buffers = || agent.server.run(&["list-buffers", "-F", "#{buffer_name} #{buffer_sample}"]);
    let before = buffers();
    let stopped = agent.server.stop();
    let began = Instant::now();
    let ask = |more: Value| stage.post("send", &stage::merged(&json!({"ref": agent.pane, "force_stale": true}), &more));
    assert_refused(&ask(json!({"text": "too late"})), "TIMEOUT");
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    assert_refused(&ask(json!({"text": "too late", "profile": "shell"})), "TIMEOUT");
    assert_refused(&ask(json!({"keys": ["Enter"], "profile": "shell"})), "TIMEOUT");
    assert_refused(&stage.post("kill", &json!({"ref": agent.pane, "force_stale": true})), "TIMEOUT");
    let second = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("later").as_secs();
    let given_up = second();
    wait_until("the next second", SOON, || second() > given_up);
    agent.server.cont(stopped);
    agent.assert_untouched();
    wait_until("our buffers to be gone", SOON, || buffers() == before);
    stage.becomes(&agent, "idle");
    assert_done(&stage.send(&agent.pane, "in time"));
    assert_eq!(agent.submitted(), ["in time"]);
}
