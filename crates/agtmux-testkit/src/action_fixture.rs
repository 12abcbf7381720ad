//! Fixture for action tests: a daemon, fake agents in real panes, and requests over the socket.

use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::agtmux::{SOON, configure, items, list, start, world};
use crate::fake_agent::FakeAgent;
use crate::http::{self, HttpResponse};
use crate::{TestTmuxServer, TestWorld, wait_for};

/// Actions from agents are allowed, because the tests may run inside an agent. Short delays keep the tests fast.
pub const SETTINGS: &str = "actions.allow_from_agents = true\ntmux_bridge.text_enter_delay_ms = 10\n\
                        tmux_bridge.sequential_send_delay_ms = 5\n";

/// A world with a daemon and a tmux server. Rust drops the fields in this order: first the server, then the world.
pub struct ActionFixture {
    pub server: TestTmuxServer,
    pub world: TestWorld,
}

impl ActionFixture {
    /// Starts a daemon with additional settings, written as dotted keys.
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
        self.wait_until_idle(target, FakeAgent::start_on(&self.world, server, session))
    }

    /// Waits until the agent in this pane is idle.
    #[track_caller]
    pub fn wait_for_idle_agent(&self, server: &TestTmuxServer, pane: String, dir: PathBuf) -> RecordingAgent {
        self.wait_until_idle("host", FakeAgent::wait_for_start(server, pane, dir))
    }

    #[track_caller]
    fn wait_until_idle(&self, target: &str, agent: FakeAgent) -> RecordingAgent {
        let mut agent = RecordingAgent { target: target.into(), runtime: String::new(), agent };
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

    /// Waits until agtmux lists the agent in this state. Returns the listed item.
    #[track_caller]
    pub fn wait_for_state(&self, agent: &RecordingAgent, state: &str) -> Value {
        wait_for(&format!("{} to be {state}", agent.pane), SOON, || {
            let item = self.item(agent).unwrap_or_default();
            if item["agent_type"] == "claude" && item["state"] == state { Ok(item) } else { Err(item.to_string()) }
        })
    }

    /// Makes the agent draw this scene, and waits until agtmux lists the agent in this state.
    #[track_caller]
    pub fn show_scene(&self, agent: &RecordingAgent, scene: &str, state: &str) -> Value {
        agent.draw_scene(scene);
        self.wait_for_state(agent, state)
    }

    #[track_caller]
    pub fn post(&self, action: &str, body: &Value) -> HttpResponse {
        self.try_post(action, body).unwrap_or_else(|| panic!("no response to {action}"))
    }

    /// Returns None if the daemon is not running, or ends before it has sent a response.
    pub fn try_post(&self, action: &str, body: &Value) -> Option<HttpResponse> {
        UnixStream::connect(self.socket()).ok()?;
        http::try_post(&self.socket(), &format!("/v1/actions/{action}"), &body.to_string())
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

    /// A request body with the fields of `more`. It also contains the reference, and the id and the nonce of the action
    /// snapshot.
    pub fn with_snapshot(snapshot: &Value, reference: &str, more: &Value) -> Value {
        let guards = json!({"ref": reference, "snapshot_id": snapshot["snapshot_id"], "nonce": snapshot["nonce"]});
        merge_json(&guards, more)
    }

    #[track_caller]
    pub fn audit(&self) -> Vec<Value> {
        items(&self.get("/v1/audit")).clone()
    }
}

/// An object with the fields of both values. If both values have a field, the value from `other` is used.
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

/// A fake agent, with the target and the runtime under which the daemon lists it.
pub struct RecordingAgent {
    pub target: String,
    pub runtime: String,
    agent: FakeAgent,
}

impl Deref for RecordingAgent {
    type Target = FakeAgent;

    fn deref(&self) -> &FakeAgent {
        &self.agent
    }
}
