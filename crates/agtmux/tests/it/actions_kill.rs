//! `kill` signals the agent and its process group in its pane, and no other process.

use std::collections::BTreeMap;
use std::fs;

use agtmux_testkit::action_fixture::{ActionFixture, RecordingAgent, assert_done, assert_refused};
use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::fake_agent::{FAKE_AGENT_SCRIPT, FakeAgent};
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Starts an agent with child processes that ignore SIGHUP and do not exit by themselves.
const CHILDREN_SCRIPT: &str = r#"
start() { sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/$1" </dev/null >/dev/null 2>&1; }
dir=$2
start member &
(start orphan &)
setsid sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/session" </dev/null >/dev/null 2>&1 &
(setsid sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/left" </dev/null >/dev/null 2>&1 &)
. "$1"
"#;

struct AgentWithChildren {
    agent: RecordingAgent,
    children: BTreeMap<&'static str, u32>,
    fixture: ActionFixture,
}

impl AgentWithChildren {
    fn new() -> Self {
        let fixture = ActionFixture::new("");
        let dir = FakeAgent::fresh_dir(&fixture.world);
        let script = fixture.world.home().join("children.sh");
        fs::write(&script, CHILDREN_SCRIPT).expect("the world is writable");
        // fake_agent.sh takes its directory from its first argument.
        let body = CHILDREN_SCRIPT.replace(". \"$1\"", "agent_script=$1; set -- \"$dir\"; . \"$agent_script\"");
        fs::write(&script, body).expect("the world is writable");
        let program = fixture.world.shell_copy("claude");
        let command = format!("exec {} {} {FAKE_AGENT_SCRIPT} {}", program.display(), script.display(), dir.display());
        let pane = fixture.server.new_session("work", &command);
        let agent = fixture.wait_for_idle_agent(&fixture.server, pane, dir);
        let names = ["member", "orphan", "session", "left"];
        let pid = |name: &str| fs::read_to_string(agent.dir.join(name)).ok()?.trim().parse().ok();
        let children = names.map(|name| (name, wait_for(name, SOON, || pid(name)))).into_iter().collect();
        Self { agent, children, fixture }
    }

    fn alive(&self) -> Vec<&'static str> {
        self.children.iter().filter(|(_, pid)| process::is_alive(**pid)).map(|(name, _)| *name).collect()
    }
}

impl Drop for AgentWithChildren {
    fn drop(&mut self) {
        for pid in self.children.values() {
            process::signal(*pid, Signal::KILL);
        }
    }
}

#[test]
fn kill_signals_only_the_agent_and_its_process_group() {
    for signal in ["TERM", "KILL"] {
        let process_tree = AgentWithChildren::new();
        let agent = process_tree.agent.server.panes()[0].pid;
        assert_eq!(process_tree.alive(), ["left", "member", "orphan", "session"]);
        let done =
            assert_done(&process_tree.fixture.post("kill", &json!({"ref": process_tree.agent.pane, "signal": signal})));
        assert_eq!(done["ended"], true, "{done}");
        let signalled: Vec<u64> = done["pids"].as_array().expect("pids").iter().filter_map(Value::as_u64).collect();
        for pid in [agent, process_tree.children["member"]] {
            assert!(signalled.contains(&u64::from(pid)), "{pid} is not among {signalled:?}");
            wait_until("the process to end", SOON, || !process::is_alive(pid));
        }
        for name in ["orphan", "session", "left"] {
            assert!(!signalled.contains(&u64::from(process_tree.children[name])), "{name} was signalled: {done}");
        }
        // The agent has ended, so a signalled process would have ended too.
        assert_eq!(process_tree.alive(), ["left", "orphan", "session"]);
        wait_until("the agent to be gone", SOON, || process_tree.fixture.item(&process_tree.agent).is_none());
        assert_refused(
            &process_tree.fixture.post("kill", &json!({"ref": process_tree.agent.runtime, "signal": signal})),
            "E_REF_NOT_FOUND",
        );
    }
}

#[test]
fn kill_without_a_signal_types_ctrl_c() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let done = assert_done(&fixture.post("kill", &json!({"ref": agent.pane})));
    assert_eq!((&done["signal"], &done["ended"], &done["pids"]), (&json!("INT"), &json!(false), &json!([])));
    assert_eq!(agent.complete_input(), b"\x03");
}

#[test]
fn kill_requires_confirmation() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let pid = agent.server.panes()[0].pid;
    for signal in ["INT", "TERM", "KILL"] {
        let done = agtmux(&fixture.world, &["kill", &agent.pane, "--signal", signal]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        let next = format!("agtmux kill {} --signal {signal} --yes", agent.pane);
        assert!(done.stderr.contains("nothing was sent") && done.stderr.contains(&next), "{}", done.stderr);
    }
    let terminal = fixture.world.tmux("terminal");
    let program = env!("CARGO_BIN_EXE_agtmux");
    let confirm_kill = |answer: &str, code: &str| {
        // The terminal runs on another server, so the reference names the agent's server.
        let reference = format!("pane:host@default/work/@0/{}", agent.pane);
        let command = format!("{program} kill {reference} --signal KILL; echo code=$?; exec cat");
        let pane = terminal.new_session(&format!("terminal-{answer}-{code}"), &command);
        let screen = || terminal.run(&["capture-pane", "-p", "-J", "-t", &pane]);
        wait_until("the question", SOON, || screen().contains("[y/N]"));
        assert!(screen().contains("send KILL to claude (idle) in pane %0 on server default?"), "{}", screen());
        terminal.run(&["send-keys", "-t", &pane, answer, "Enter"]);
        wait_until("the answer", SOON, || screen().contains("code="));
        assert!(screen().contains(&format!("code={code}")), "{}", screen());
        assert_eq!(screen().contains("nothing was sent to %0"), code == "1", "{}", screen());
    };
    confirm_kill("n", "1");
    confirm_kill("", "1");
    assert!(process::is_alive(pid));
    agent.assert_no_input();
    confirm_kill("y", "0");
    wait_until("the agent to end", SOON, || !process::is_alive(pid));
    let killed: Vec<Value> = fixture.audit().into_iter().filter(|record| record["kind"] == "kill").collect();
    assert_eq!(killed.len(), 1, "only the confirmed kill is in the audit log: {killed:?}");
    assert_eq!((&killed[0]["what"], &killed[0]["status"]), (&json!("signal KILL"), &json!("done")));
}

/// A send waits until the input box shows the text, which never happens. Ctrl-C is typed into the pane, so it would
/// have to wait for this send. A signal does not wait.
#[test]
fn kill_works_while_a_send_waits_on_the_same_agent() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    agent.draw_scene("deaf");
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| fixture.send(&agent.pane, "this text is ignored"));
        wait_until("the text to be typed", SOON, || !agent.input_so_far().is_empty());
        let done = assert_done(&fixture.post("kill", &json!({"ref": agent.runtime, "signal": "KILL"})));
        assert_eq!(done["ended"], true);
        assert!(!sending.is_finished() || sending.join().expect("answered").status != 200);
    });
    let send = fixture.audit().into_iter().find(|record| record["kind"] == "send").expect("written down");
    assert_eq!((&send["status"], &send["code"]), (&json!("failed"), &json!("E_RUNTIME_STALE")), "{send}");
}

#[test]
fn kill_with_yes_needs_no_terminal() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work");
    let pid = agent.server.panes()[0].pid;
    let done = agtmux(&fixture.world, &["kill", &agent.runtime, "--signal", "kill", "--yes", "--json"]);
    assert_eq!(done.json()["ended"], true);
    assert!(!process::is_alive(pid));
    wait_until("the agent to be gone", SOON, || fixture.item(&agent).is_none());
}
