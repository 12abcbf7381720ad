//! What is ended is the agent and its group, in its pane, and nobody else.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/actions_stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::fs;

use agtmux::{SOON, agtmux};
use agtmux_testkit::{process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::{Agent, Stage, assert_done, assert_refused};

/// Whom an agent has started. None of them ends by itself, or because its terminal went away.
const CHILDREN_SCRIPT: &str = r#"
note() { sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/$1" </dev/null >/dev/null 2>&1; }
dir=$2
note member &
(note orphan &)
setsid sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/session" </dev/null >/dev/null 2>&1 &
(setsid sh -c 'trap "" HUP; echo $$ >"$0.new"; mv "$0.new" "$0"; exec sleep 600' "$dir/left" </dev/null >/dev/null 2>&1 &)
. "$1"
"#;

struct AgentWithChildren {
    agent: Agent,
    children: BTreeMap<&'static str, u32>,
    stage: Stage,
}

impl AgentWithChildren {
    fn new() -> Self {
        let stage = Stage::new("");
        let dir = stage.fresh_dir();
        let script = stage.world.home().join("company.sh");
        fs::write(&script, CHILDREN_SCRIPT).expect("the world is writable");
        let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/stand_in.sh");
        // The stand-in takes its directory from its first argument.
        let body = CHILDREN_SCRIPT.replace(". \"$1\"", "stand_in=$1; set -- \"$dir\"; . \"$stand_in\"");
        fs::write(&script, body).expect("the world is writable");
        let program = stage.world.shell_copy("claude");
        let command = format!("exec {} {} {stand_in} {}", program.display(), script.display(), dir.display());
        let pane = stage.server.new_session("work", &command);
        let agent = stage.settled(&stage.server, pane, dir);
        let names = ["member", "orphan", "session", "left"];
        let pid = |name: &str| fs::read_to_string(agent.dir.join(name)).ok()?.trim().parse().ok();
        let company = names.map(|name| (name, wait_for(name, SOON, || pid(name)))).into_iter().collect();
        Self { agent, children: company, stage }
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
fn only_the_agent_and_its_group_in_the_pane_are_struck() {
    for signal in ["TERM", "KILL"] {
        let family = AgentWithChildren::new();
        let agent = family.agent.server.panes()[0].pid;
        assert_eq!(family.alive(), ["left", "member", "orphan", "session"]);
        let done = assert_done(&family.stage.post("kill", &json!({"ref": family.agent.pane, "signal": signal})));
        assert_eq!(done["ended"], true, "{done}");
        let struck: Vec<u64> = done["pids"].as_array().expect("pids").iter().filter_map(Value::as_u64).collect();
        for pid in [agent, family.children["member"]] {
            assert!(struck.contains(&u64::from(pid)), "{pid} is not among {struck:?}");
            wait_until("it to end", SOON, || !process::is_alive(pid));
        }
        for name in ["orphan", "session", "left"] {
            assert!(!struck.contains(&u64::from(family.children[name])), "{name} was struck: {done}");
        }
        // They would be gone by now: the agent is.
        assert_eq!(family.alive(), ["left", "orphan", "session"]);
        wait_until("the agent to be gone", SOON, || family.stage.item(&family.agent).is_none());
        assert_refused(
            &family.stage.post("kill", &json!({"ref": family.agent.runtime, "signal": signal})),
            "E_REF_NOT_FOUND",
        );
    }
}

#[test]
fn an_interrupt_is_typed() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let done = assert_done(&stage.post("kill", &json!({"ref": agent.pane})));
    assert_eq!((&done["signal"], &done["ended"], &done["pids"]), (&json!("INT"), &json!(false), &json!([])));
    assert_eq!(agent.all_read(), b"\x03");
}

#[test]
fn nobody_is_ended_unless_somebody_says_yes() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let pid = agent.server.panes()[0].pid;
    for signal in ["INT", "TERM", "KILL"] {
        let done = agtmux(&stage.world, &["kill", &agent.pane, "--signal", signal]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        let next = format!("agtmux kill {} --signal {signal} --yes", agent.pane);
        assert!(done.stderr.contains("nothing was sent") && done.stderr.contains(&next), "{}", done.stderr);
    }
    let desk = stage.world.tmux("desk");
    let program = env!("CARGO_BIN_EXE_agtmux");
    let asks = |answer: &str, code: &str| {
        // Its own server, so that the agent's pane is named with its place.
        let reference = format!("pane:host@default/work/@0/{}", agent.pane);
        let command = format!("{program} kill {reference} --signal KILL; echo code=$?; exec cat");
        let pane = desk.new_session(&format!("desk-{answer}-{code}"), &command);
        let shows = || desk.run(&["capture-pane", "-p", "-J", "-t", &pane]);
        wait_until("the question", SOON, || shows().contains("[y/N]"));
        assert!(shows().contains("send KILL to claude in %0 on default, idle?"), "{}", shows());
        desk.run(&["send-keys", "-t", &pane, answer, "Enter"]);
        wait_until("the answer", SOON, || shows().contains("code="));
        assert!(shows().contains(&format!("code={code}")), "{}", shows());
        assert_eq!(shows().contains("nothing was sent to %0"), code == "1", "{}", shows());
    };
    asks("n", "1");
    asks("", "1");
    assert!(process::is_alive(pid));
    agent.assert_untouched();
    asks("y", "0");
    wait_until("its end", SOON, || !process::is_alive(pid));
    let killed: Vec<Value> = stage.audit().into_iter().filter(|record| record["kind"] == "kill").collect();
    assert_eq!(killed.len(), 1, "what nobody confirmed was not asked for: {killed:?}");
    assert_eq!((&killed[0]["what"], &killed[0]["status"]), (&json!("signal KILL"), &json!("done")));
}

/// Somebody waits for a box that never shows what was typed. An interrupt would be typed, and has to wait; a signal is not.
#[test]
fn an_agent_that_hangs_is_ended_while_somebody_waits_for_it() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    agent.draws("deaf");
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| stage.send(&agent.pane, "nobody hears this"));
        wait_until("the text to be typed", SOON, || !agent.read().is_empty());
        let done = assert_done(&stage.post("kill", &json!({"ref": agent.runtime, "signal": "KILL"})));
        assert_eq!(done["ended"], true);
        assert!(!sending.is_finished() || sending.join().expect("answered").status != 200);
    });
    let send = stage.audit().into_iter().find(|record| record["kind"] == "send").expect("written down");
    assert_eq!((&send["status"], &send["code"]), (&json!("failed"), &json!("E_RUNTIME_STALE")), "{send}");
}

#[test]
fn yes_needs_no_terminal() {
    let stage = Stage::new("");
    let agent = stage.agent("work");
    let pid = agent.server.panes()[0].pid;
    let done = agtmux(&stage.world, &["kill", &agent.runtime, "--signal", "kill", "--yes", "--json"]);
    assert_eq!(done.json()["ended"], true);
    assert!(!process::is_alive(pid));
    wait_until("the agent to be gone", SOON, || stage.item(&agent).is_none());
}
