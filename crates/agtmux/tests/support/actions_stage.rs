//! Stand-ins for agents in real panes, and what is asked of them over the socket.

#![allow(dead_code, reason = "each test file needs another part of it")]

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};
use serde_json::{Value, json};

use super::agtmux::{SOON, configure, items, list, start, world};
use super::http::{self, Answer};

/// The tests may themselves be run by an agent, and nobody has to wait for theirs.
const SETTINGS: &str = "actions.allow_from_agents = true\ntmux_bridge.text_enter_delay_ms = 10\n\
                        tmux_bridge.sequential_send_delay_ms = 5\n";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/stand_in.sh");
const REDRAW: u8 = 0x0c;

/// A world with a daemon. What is in it goes first.
pub(crate) struct Stage {
    pub(crate) server: TestTmuxServer,
    pub(crate) world: TestWorld,
}

impl Stage {
    /// With more settings, as dotted keys.
    pub(crate) fn new(settings: &str) -> Self {
        Self::with(|_| settings.to_owned())
    }

    /// The same with settings that speak of the world.
    pub(crate) fn with(settings: impl FnOnce(&TestWorld) -> String) -> Self {
        let world = world();
        let settings = settings(&world);
        let is_set = |line: &&str| line.split(' ').next().is_some_and(|key| settings.contains(key));
        let usual: Vec<&str> = SETTINGS.lines().filter(|line| !is_set(line)).collect();
        configure(&world, &format!("{}\n{settings}", usual.join("\n")));
        start(&world);
        Self { server: world.tmux("default"), world }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.world.socket()
    }

    /// An agent in a new session, at rest.
    #[track_caller]
    pub(crate) fn agent(&self, session: &str) -> Agent {
        self.agent_on(&self.server, session)
    }

    #[track_caller]
    pub(crate) fn agent_on(&self, server: &TestTmuxServer, session: &str) -> Agent {
        self.agent_at("host", server, session)
    }

    /// The same on the server of a target.
    #[track_caller]
    pub(crate) fn agent_at(&self, target: &str, server: &TestTmuxServer, session: &str) -> Agent {
        let dir = self.fresh_dir();
        let pane = server.new_session(session, &self.agent_command(&dir));
        self.settled_at(target, server, pane, dir)
    }

    /// What starts a stand-in that keeps its notes there.
    pub(crate) fn agent_command(&self, dir: &Path) -> String {
        format!("exec {} {SCRIPT} {}", self.world.shell_copy("claude").display(), dir.display())
    }

    pub(crate) fn fresh_dir(&self) -> PathBuf {
        let n = fs::read_dir(self.world.home()).expect("a home").count();
        let dir = self.world.home().join(format!("notes-{n}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        dir
    }

    /// The agent there, once it is seen at rest.
    #[track_caller]
    pub(crate) fn settled(&self, server: &TestTmuxServer, pane: String, dir: PathBuf) -> Agent {
        self.settled_at("host", server, pane, dir)
    }

    #[track_caller]
    fn settled_at(&self, target: &str, server: &TestTmuxServer, pane: String, dir: PathBuf) -> Agent {
        wait_until("the stand-in to read", SOON, || dir.join("read").exists());
        let mut agent = Agent { target: target.into(), server: server.clone(), pane, dir, runtime: String::new() };
        let item = self.becomes(&agent, "idle");
        agent.runtime = format!("runtime:{}", item["runtime_id"].as_str().expect("an agent has one"));
        agent
    }

    pub(crate) fn item(&self, agent: &Agent) -> Option<Value> {
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
    pub(crate) fn becomes(&self, agent: &Agent, state: &str) -> Value {
        wait_for(&format!("{} to be {state}", agent.pane), SOON, || {
            let item = self.item(agent).unwrap_or_default();
            if item["agent_type"] == "claude" && item["state"] == state { Ok(item) } else { Err(item.to_string()) }
        })
    }

    /// Has another scene drawn, and waits until it is seen.
    #[track_caller]
    pub(crate) fn show(&self, agent: &Agent, scene: &str, state: &str) -> Value {
        agent.draws(scene);
        self.becomes(agent, state)
    }

    #[track_caller]
    pub(crate) fn post(&self, action: &str, body: &Value) -> Answer {
        self.try_post(action, body).unwrap_or_else(|| panic!("no answer to {action}"))
    }

    /// None when the daemon ended before it answered, or was not there.
    pub(crate) fn try_post(&self, action: &str, body: &Value) -> Option<Answer> {
        let body = body.to_string();
        let headers = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        let mut request = http::request("POST", &format!("/v1/actions/{action}"), &headers);
        request.extend(body.as_bytes());
        UnixStream::connect(self.socket()).ok()?;
        http::send(&self.socket(), &request)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        http::get(&self.socket(), path).json()
    }

    #[track_caller]
    pub(crate) fn send(&self, reference: &str, text: &str) -> Answer {
        self.post("send", &json!({"ref": reference, "text": text}))
    }

    #[track_caller]
    pub(crate) fn snapshot(&self, reference: &str) -> Value {
        let answer = self.post("snapshot", &json!({"ref": reference}));
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()
    }

    /// A body that is guarded by a snapshot.
    pub(crate) fn on(snapshot: &Value, reference: &str, more: &Value) -> Value {
        let guards = json!({"ref": reference, "snapshot_id": snapshot["snapshot_id"], "nonce": snapshot["nonce"]});
        merged(&guards, more)
    }

    #[track_caller]
    pub(crate) fn audit(&self) -> Vec<Value> {
        items(&self.get("/v1/audit")).clone()
    }
}

/// One with the fields of both.
pub(crate) fn merged(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().cloned().unwrap_or_default();
    all.extend(other.as_object().cloned().unwrap_or_default());
    Value::Object(all)
}

#[track_caller]
pub(crate) fn assert_done(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

/// Refused with this code, a reason and something to do about it.
#[track_caller]
pub(crate) fn assert_refused(answer: &Answer, code: &str) -> Value {
    let error = answer.json();
    assert_eq!(error["code"], code, "{error}");
    assert!((400..=504).contains(&answer.status), "{} for {error}", answer.status);
    for field in ["message", "hint"] {
        assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {error}");
    }
    error
}

pub(crate) struct Agent {
    pub(crate) target: String,
    pub(crate) server: TestTmuxServer,
    pub(crate) pane: String,
    pub(crate) dir: PathBuf,
    pub(crate) runtime: String,
}

impl Agent {
    /// Every byte that it has read.
    pub(crate) fn read(&self) -> Vec<u8> {
        let bytes = fs::read(self.dir.join("read")).unwrap_or_default();
        bytes.into_iter().filter(|byte| *byte != REDRAW).collect()
    }

    /// What was typed, once everything has arrived that was typed before.
    #[track_caller]
    pub(crate) fn all_read(&self) -> Vec<u8> {
        let count = || fs::read(self.dir.join("read")).unwrap_or_default().iter().filter(|b| **b == REDRAW).count();
        let before = count();
        self.server.run(&["send-keys", "-t", &self.pane, "C-l"]);
        wait_until("the stand-in to draw again", SOON, || count() > before);
        self.read()
    }

    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        let read = self.all_read();
        assert!(read.is_empty(), "something was typed into {}: {}", self.pane, read.escape_ascii());
    }

    /// The texts that were submitted. Each must have come as one paste with an Enter of its own.
    #[track_caller]
    pub(crate) fn submitted(&self) -> Vec<String> {
        let read = String::from_utf8(self.all_read()).expect("text");
        let mut texts: Vec<&str> = read.split('\r').collect();
        assert_eq!(texts.pop(), Some(""), "something was typed and not submitted: {read:?}");
        let paste = |text: &str| {
            let inside = text.strip_prefix("\x1b[200~").and_then(|text| text.strip_suffix("\x1b[201~"));
            inside.unwrap_or_else(|| panic!("not one paste: {text:?}")).to_owned()
        };
        texts.into_iter().map(paste).collect()
    }

    #[track_caller]
    pub(crate) fn draws(&self, scene: &str) {
        fs::write(self.dir.join("scene.new"), format!("{scene}\n")).expect("the world is writable");
        fs::rename(self.dir.join("scene.new"), self.dir.join("scene")).expect("the world is writable");
        self.all_read();
    }
}
