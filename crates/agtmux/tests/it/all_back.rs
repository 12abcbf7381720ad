//! `agtmux resume --all-from reboot` and `agtmux list --ended`: agents come back after tmux, or all of it, went down.

use std::fs;

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, configure, items, list, run, script, soak, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::Value;

struct RebootFixture {
    server: TestTmuxServer,
    world: TestWorld,
    /// The sessions of the agents.
    sessions: Vec<String>,
    agents: usize,
}

impl RebootFixture {
    /// Starts agents in several sessions. Each records how it was started, and reports a session of its own.
    fn new(sessions: usize, per_session: usize) -> Self {
        let world = world();
        configure(&world, "[actions]\nallow_from_agents = true\n");
        fs::create_dir(world.home().join("bin")).expect("the world is writable");
        let body = format!("echo \"$PWD: $*\" >> {}/started\nwhile read -r line; do :; done", world.home().display());
        script(&world, "bin/claude", &body);
        let server = world.tmux("default");
        let names: Vec<String> = (0..sessions).map(|n| format!("work {n}")).collect();
        let fixture = Self { server, world, sessions: names, agents: sessions * per_session };
        fixture.start_tmux();
        start(&fixture.world);
        for (n, session) in fixture.sessions.iter().enumerate() {
            for window in 0..per_session {
                fixture.start_agent(session, &format!("{n}-{window}"));
            }
        }
        fixture
    }

    /// Starts the tmux server with shells that find the fake `claude`.
    fn start_tmux(&self) {
        let path = format!("{}:{}", self.world.home().join("bin").display(), std::env::var("PATH").expect("PATH"));
        self.server.new_session("base", "exec cat");
        self.server.run(&["set-environment", "-g", "PATH", &path]);
        self.server.run(&["set-option", "-g", "default-command", "PS1='ready> ' exec sh -i"]);
    }

    fn start_agent(&self, session: &str, label: &str) {
        let dir = self.world.home().join(format!("dir {label}"));
        fs::create_dir_all(&dir).expect("the world is writable");
        let mut new = self.world.agtmux();
        let done = run(new
            .args(["new", "claude", "--session", session, "--name", &format!("agent-{label}"), "--json", "--in"])
            .arg(&dir)
            .args(["--", "--model", "opus"]));
        let pane = done.json()["pane_id"].as_str().expect("a pane").to_owned();
        let payload = self.world.home().join("payload");
        fs::write(&payload, format!("{{\"session_id\": \"s-{label}\"}}")).expect("the world is writable");
        let args = ["emit", "--pane", &pane, "--agent", "claude", "--source", "hook", "--event-type", "SessionStart"];
        let emitted = run(self.world.agtmux().args(args).args(["--dedupe-key", label, "--payload"]).arg(&payload));
        assert!(emitted.code == Some(0) && emitted.text().contains("accepted"), "{emitted:?}");
    }

    /// The names of the running agents, each with its session and directory.
    fn running(&self) -> Vec<String> {
        let listing = list(&self.world);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let agents = items(&listing).iter().filter(|item| item["agent_type"] == "claude");
        let describe = |item: &Value| {
            [text(&item["name"]), text(&item["identity"]["session_name"]), text(&item["cwd"])].join(" | ")
        };
        let mut all: Vec<String> = agents.map(describe).collect();
        all.sort();
        all
    }

    fn wait_for_count(&self, count: usize) {
        wait_for(&format!("{count} agents"), SOON, || {
            let running = self.running();
            if running.len() == count { Ok(()) } else { Err(format!("{running:?}")) }
        });
    }

    fn resume_all(&self) -> CommandResult {
        agtmux(&self.world, &["resume", "--all-from", "reboot", "--yes", "--json"])
    }

    fn starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.home().join("started")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check_all_back(&self, before: &[String]) {
        wait_for("the agents that ended with their server", SOON, || {
            let ended = agtmux(&self.world, &["list", "--ended", "--json"]).json();
            let with_server = items(&ended).iter().filter(|item| item["ended_with_server"] == true).count();
            if with_server >= self.agents { Ok(()) } else { Err(ended) }
        });
        let plan = agtmux(&self.world, &["resume", "--all-from", "reboot"]);
        assert!(
            plan.code == Some(2) && plan.stderr.contains(&format!("start these {} agents", self.agents)),
            "{plan:?}"
        );
        assert!(plan.stderr.contains("cannot  claude odd") && plan.stderr.contains("session id"), "{plan:?}");
        let done = self.resume_all();
        assert_eq!(done.json()["resumed"].as_array().map(Vec::len), Some(self.agents), "{done:?}");
        wait_for("names, sessions and directories as before", SOON, || {
            let running = self.running();
            if running == before { Ok(()) } else { Err(format!("{running:?} instead of {before:?}")) }
        });
        let starts = self.starts();
        let resumed =
            starts.iter().filter(|line| line.ends_with(" --model opus") && line.contains(": --resume s-")).count();
        assert_eq!(resumed, self.agents, "{starts:?}");
        // Again: nothing is started twice.
        let again = self.resume_all();
        assert_eq!(again.json()["resumed"].as_array().map(Vec::len), Some(0), "{again:?}");
        assert_eq!(self.starts().len(), starts.len());
        assert_eq!(self.running(), before);
    }
}

/// 4 agents in 2 sessions; 12 in 4 sessions when AGTMUX_SOAK is set.
fn fixture() -> RebootFixture {
    if soak() { RebootFixture::new(4, 3) } else { RebootFixture::new(2, 2) }
}

/// Starts an agent that has reported no session, and one that ends by itself. Neither is to come back.
fn add_others(fixture: &RebootFixture) {
    let new = |name: &str| {
        let done = agtmux(&fixture.world, &["new", "claude", "--session", "other", "--name", name, "--json"]);
        done.json()["pane_id"].as_str().expect("a pane").to_owned()
    };
    new("odd");
    let gone = new("gone");
    fixture.server.run(&["send-keys", "-t", &gone, "C-d"]);
    fixture.wait_for_count(fixture.agents + 1);
}

#[test]
fn all_agents_come_back_after_the_tmux_server_was_killed() {
    let fixture = fixture();
    let before = fixture.running();
    add_others(&fixture);
    process::signal(fixture.server.pid(), Signal::KILL);
    fixture.wait_for_count(0);
    fixture.start_tmux();
    fixture.check_all_back(&before);
}

#[test]
fn all_agents_come_back_after_everything_was_killed() {
    let fixture = fixture();
    let before = fixture.running();
    add_others(&fixture);
    let (server, daemons) = (fixture.server.pid(), fixture.world.daemons());
    for pid in daemons.iter().copied().chain([server]) {
        process::signal(pid, Signal::KILL);
    }
    wait_until("everything to end", SOON, || fixture.world.daemons().is_empty() && !fixture.server.is_running());
    // The new server has the same socket, and runs before the daemon does.
    fixture.start_tmux();
    start(&fixture.world);
    fixture.wait_for_count(0);
    fixture.check_all_back(&before);
}
