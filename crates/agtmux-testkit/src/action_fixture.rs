//! Fixture for action tests: a daemon, fake agents in real panes, and requests over the socket.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agtmux::{SOON, configure, items, list, start, world};
use crate::http::{self, HttpResponse};
use crate::{TestTmuxServer, TestWorld, wait_for, wait_until};

/// Agents are allowed to act because the tests may run inside one. Short delays keep the tests fast.
const SETTINGS: &str = "actions.allow_from_agents = true\ntmux_bridge.text_enter_delay_ms = 10\n\
                        tmux_bridge.sequential_send_delay_ms = 5\n";
/// The script of the fake agents: it writes what it reads to the directory in its first argument.
pub const RECORDING_AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/recording_agent.sh");
const REDRAW: u8 = 0x0c;

/// A world with a daemon and a tmux server. Fields are dropped in order: the server before the world.
pub struct ActionFixture {
    pub server: TestTmuxServer,
    pub world: TestWorld,
}

impl ActionFixture {
    /// Starts a daemon with additional settings as dotted keys.
    pub fn new(settings: &str) -> Self {
        Self::with_world(|_| settings.to_owned())
    }

    /// Starts a daemon with settings that depend on the world.
    pub fn with_world(settings: impl FnOnce(&TestWorld) -> String) -> Self {
        let world = world();
        let settings = settings(&world);
        let is_set = |line: &&str| line.split(' ').next().is_some_and(|key| settings.contains(key));
        let defaults: Vec<&str> = SETTINGS.lines().filter(|line| !is_set(line)).collect();
        configure(&world, &format!("{}\n{settings}", defaults.join("\n")));
        start(&world);
        Self { server: world.tmux("default"), world }
    }

    pub fn socket(&self) -> PathBuf {
        self.world.socket()
    }

    /// Starts an idle agent in a new session.
    #[track_caller]
    pub fn agent(&self, session: &str) -> RecordingAgent {
        self.agent_on_server(&self.server, session)
    }

    #[track_caller]
    pub fn agent_on_server(&self, server: &TestTmuxServer, session: &str) -> RecordingAgent {
        self.agent_on_target("host", server, session)
    }

    /// Starts an idle agent on a tmux server of this target.
    #[track_caller]
    pub fn agent_on_target(&self, target: &str, server: &TestTmuxServer, session: &str) -> RecordingAgent {
        let dir = self.fresh_dir();
        let pane = server.new_session(session, &self.agent_command(&dir));
        self.wait_for_idle_agent_on_target(target, server, pane, dir)
    }

    /// The shell command that starts a fake agent which writes its input to `dir`.
    pub fn agent_command(&self, dir: &Path) -> String {
        format!("exec {} {RECORDING_AGENT} {}", self.world.shell_copy("claude").display(), dir.display())
    }

    pub fn fresh_dir(&self) -> PathBuf {
        let n = fs::read_dir(self.world.home()).expect("the home directory is readable").count();
        let dir = self.world.home().join(format!("notes-{n}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        dir
    }

    /// Waits until the agent in this pane is idle.
    #[track_caller]
    pub fn wait_for_idle_agent(&self, server: &TestTmuxServer, pane: String, dir: PathBuf) -> RecordingAgent {
        self.wait_for_idle_agent_on_target("host", server, pane, dir)
    }

    #[track_caller]
    fn wait_for_idle_agent_on_target(
        &self,
        target: &str,
        server: &TestTmuxServer,
        pane: String,
        dir: PathBuf,
    ) -> RecordingAgent {
        wait_until("the fake agent to start", SOON, || dir.join("read").exists());
        let mut agent =
            RecordingAgent { target: target.into(), server: server.clone(), pane, dir, runtime: String::new() };
        let item = self.wait_for_state(&agent, "idle");
        agent.runtime = format!("runtime:{}", item["runtime_id"].as_str().expect("an agent has a runtime id"));
        agent
    }

    pub fn item(&self, agent: &RecordingAgent) -> Option<Value> {
        let listing = list(&self.world);
        let name = agent.server.name();
        let here = |item: &&Value| {
            let identity = &item["identity"];
            identity["pane_id"] == agent.pane.as_str()
                && identity["server"] == name
                && identity["target"] == agent.target.as_str()
        };
        items(&listing).iter().find(here).cloned()
    }

    /// Waits until the agent is listed in this state.
    #[track_caller]
    pub fn wait_for_state(&self, agent: &RecordingAgent, state: &str) -> Value {
        wait_for(&format!("{} to be {state}", agent.pane), SOON, || {
            let item = self.item(agent).unwrap_or_default();
            if item["agent_type"] == "claude" && item["state"] == state { Ok(item) } else { Err(item.to_string()) }
        })
    }

    /// Makes the agent draw a scene and waits for the state.
    #[track_caller]
    pub fn show_scene(&self, agent: &RecordingAgent, scene: &str, state: &str) -> Value {
        agent.draw_scene(scene);
        self.wait_for_state(agent, state)
    }

    #[track_caller]
    pub fn post(&self, action: &str, body: &Value) -> HttpResponse {
        self.try_post(action, body).unwrap_or_else(|| panic!("no answer to {action}"))
    }

    /// Returns None if the daemon is not running or ends before it answers.
    pub fn try_post(&self, action: &str, body: &Value) -> Option<HttpResponse> {
        let body = body.to_string();
        let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        let mut request = http::request("POST", &format!("/v1/actions/{action}"), &headers);
        request.extend(body.as_bytes());
        UnixStream::connect(self.socket()).ok()?;
        http::send(&self.socket(), &request)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        http::get(&self.socket(), path).json()
    }

    #[track_caller]
    pub fn send(&self, reference: &str, text: &str) -> HttpResponse {
        self.post("send", &json!({"ref": reference, "text": text}))
    }

    #[track_caller]
    pub fn snapshot(&self, reference: &str) -> Value {
        let answer = self.post("snapshot", &json!({"ref": reference}));
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// A request body guarded by a snapshot.
    pub fn with_snapshot(snapshot: &Value, reference: &str, more: &Value) -> Value {
        let guards = json!({"ref": reference, "snapshot_id": snapshot["snapshot_id"], "nonce": snapshot["nonce"]});
        merge_json(&guards, more)
    }

    #[track_caller]
    pub fn audit(&self) -> Vec<Value> {
        items(&self.get("/v1/audit")).clone()
    }
}

/// An object with the fields of both; `other` wins.
pub fn merge_json(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().cloned().unwrap_or_default();
    all.extend(other.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

#[track_caller]
pub fn assert_done(answer: &HttpResponse) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

/// Checks that the response is an error with this code, a message and a hint.
#[track_caller]
pub fn assert_refused(answer: &HttpResponse, code: &str) -> Value {
    let error = answer.json();
    assert_eq!(error["code"], code, "{error}");
    assert!((400..=504).contains(&answer.status), "{} for {error}", answer.status);
    for field in ["message", "hint"] {
        assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {error}");
    }
    error
}

pub struct RecordingAgent {
    pub target: String,
    pub server: TestTmuxServer,
    pub pane: String,
    pub dir: PathBuf,
    pub runtime: String,
}

impl RecordingAgent {
    /// The bytes that the agent has read, without redraw keys.
    pub fn input_so_far(&self) -> Vec<u8> {
        let bytes = fs::read(self.dir.join("read")).unwrap_or_default();
        bytes.into_iter().filter(|byte| *byte != REDRAW).collect()
    }

    /// All bytes typed so far. Sends a redraw key and waits for it, so that earlier input has arrived.
    #[track_caller]
    pub fn complete_input(&self) -> Vec<u8> {
        let count = || fs::read(self.dir.join("read")).unwrap_or_default().iter().filter(|b| **b == REDRAW).count();
        let before = count();
        self.server.run(&["send-keys", "-t", &self.pane, "C-l"]);
        wait_until("the fake agent to redraw", SOON, || count() > before);
        self.input_so_far()
    }

    #[track_caller]
    pub fn assert_no_input(&self) {
        let read = self.complete_input();
        assert!(read.is_empty(), "{} received input: {}", self.pane, read.escape_ascii());
    }

    /// The submitted texts. Each must be one bracketed paste followed by Enter.
    #[track_caller]
    pub fn submitted_texts(&self) -> Vec<String> {
        let read = String::from_utf8(self.complete_input()).expect("text");
        let mut texts: Vec<&str> = read.split('\r').collect();
        assert_eq!(texts.pop(), Some(""), "typed but not submitted: {read:?}");
        let paste = |text: &str| {
            let inside = text.strip_prefix("\x1b[200~").and_then(|text| text.strip_suffix("\x1b[201~"));
            inside.unwrap_or_else(|| panic!("not one paste: {text:?}")).to_owned()
        };
        texts.into_iter().map(paste).collect()
    }

    #[track_caller]
    pub fn draw_scene(&self, scene: &str) {
        fs::write(self.dir.join("scene.new"), format!("{scene}\n")).expect("the world is writable");
        fs::rename(self.dir.join("scene.new"), self.dir.join("scene")).expect("the world is writable");
        self.complete_input();
    }
}
