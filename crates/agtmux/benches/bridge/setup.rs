//! Sets up a daemon with a TCP port, and fake agents with started sessions.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use agtmux_testkit::hook_load::HookConnection;
use agtmux_testkit::{ChildGuard, TestWorld, wait_for};
use serde_json::{Value, json};

const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);

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
        let binary = std::env::var_os("AGTMUX_BENCH_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_agtmux").into());
        let world = TestWorld::with_agtmux(binary);
        fs::create_dir_all(world.config_file().parent().expect("a directory")).expect("the directory is writable");
        fs::write(world.config_file(), "web.listen = '127.0.0.1:0'\n").expect("the directory is writable");
        let (tmux, agent) = (world.tmux("bench"), world.fake_agent_command("claude"));
        let sessions: Vec<String> = (0..size).map(|n| format!("session-{n}")).collect();
        let panes: Vec<String> = sessions.iter().map(|name| tmux.new_session(name, &agent)).collect();
        let mut command = world.agtmux();
        command.args(["daemon", "run"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let daemon = ChildGuard::start(&mut command);
        wait_for("the daemon to know every agent", STARTUP_TIMEOUT, || {
            let known = list_panes(&world).iter().filter(|item| item["agent_type"] == "claude").count();
            if known == size { Ok(()) } else { Err(known) }
        });
        let begin = |(session, pane): (&String, &String)| {
            begin_session(&world, session, pane, &tmux.socket().display().to_string())
        };
        let agent_ids: Arc<[String]> = sessions.iter().zip(&panes).map(begin).collect();
        let link = run_agtmux(&world, &["web", "url"]);
        let address = link.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an address");
        let token = fs::read_to_string(world.state_dir().join("web-token")).expect("a token");
        let (address, bearer) = (address.parse().expect("an address"), format!("Authorization: Bearer {token}"));
        Self { world, address, bearer, sessions, agent_ids, daemon }
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.id()
    }
}

fn run_agtmux(world: &TestWorld, args: &[&str]) -> String {
    let answer = world.agtmux().args(args).env("AGTMUX_NO_AUTOSTART", "1").output();
    answer.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

fn list_panes(world: &TestWorld) -> Vec<Value> {
    let listing: Value = serde_json::from_str(&run_agtmux(world, &["list", "panes", "--json"])).unwrap_or_default();
    listing["items"].as_array().cloned().unwrap_or_default()
}

/// HookLoad a session-start hook, as the agent would, and returns the agent id.
fn begin_session(world: &TestWorld, session: &str, pane: &str, socket: &str) -> String {
    let body = json!({"session_id": session, "tmux_pane": pane, "tmux": format!("{socket},1,0")});
    let posted = HookConnection::open(&world.socket()).and_then(|mut daemon| daemon.post("/hook/session-start", &body));
    let (status, answer) = posted.expect("the daemon answers");
    assert_eq!(status, 200, "{answer}");
    answer["agent_id"].as_str().expect("an id").to_owned()
}
