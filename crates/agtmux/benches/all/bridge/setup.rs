//! Sets up a daemon with a TCP port, and fake agents with started sessions.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use agtmux_testkit::agtmux::{agtmux, configure};
use agtmux_testkit::hook_load::HookConnection;
use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::json;

use crate::harness::world::{self, STARTUP_TIMEOUT, list_panes};

// Fields are dropped in order: the world stops the daemon, then the daemon is reaped.
pub(crate) struct BridgeBench {
    pub(crate) world: TestWorld,
    pub(crate) address: SocketAddr,
    pub(crate) bearer: String,
    pub(crate) sessions: Vec<String>,
    pub(crate) agent_ids: Arc<[String]>,
    daemon: ChildGuard,
}

impl BridgeBench {
    pub(crate) fn build(size: usize) -> Self {
        let world = world::world();
        configure(&world, "web.listen = '127.0.0.1:0'\n");
        let (tmux, agent) = (world.tmux("bench"), world.fake_agent_command("claude"));
        let sessions: Vec<String> = (0..size).map(|n| format!("session-{n}")).collect();
        let panes: Vec<String> = sessions.iter().map(|name| tmux.new_session(name, &agent)).collect();
        let daemon = world::start_daemon(&world);
        wait_for("the daemon to know every agent", STARTUP_TIMEOUT, || {
            let known = list_panes(&world, &[]).iter().filter(|item| item["agent_type"] == "claude").count();
            if known == size { Ok(()) } else { Err(known) }
        });
        let begin = |(session, pane): (&String, &String)| {
            begin_session(&world, session, pane, &tmux.socket().display().to_string())
        };
        let agent_ids: Arc<[String]> = sessions.iter().zip(&panes).map(begin).collect();
        let link = agtmux(&world, &["web", "url"]).text();
        let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
        let token = fs::read_to_string(world.state_dir().join("web-token")).expect("a token");
        let (address, bearer) = (address.parse().expect("an address"), format!("Authorization: Bearer {token}"));
        Self { world, address, bearer, sessions, agent_ids, daemon }
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }
}

/// Posts a session-start hook, as the agent would, and returns the agent id.
fn begin_session(world: &TestWorld, session: &str, pane: &str, socket: &str) -> String {
    let body = json!({"session_id": session, "tmux_pane": pane, "tmux": format!("{socket},1,0")});
    let posted = HookConnection::open(&world.socket()).and_then(|mut daemon| daemon.post("/hook/session-start", &body));
    let (status, answer) = posted.expect("the daemon answers");
    assert_eq!(status, 200, "{answer}");
    answer["agent_id"].as_str().expect("an id").to_owned()
}
