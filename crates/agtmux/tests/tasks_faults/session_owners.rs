//! For whom a session is kept, and what others may do in it.

use serde_json::json;

use crate::scripted_agent::ScriptedAgent;
use crate::stage::Stage;

fn owner_option(stage: &Stage, session: &str) -> String {
    let format = "#{@agtmux_owner_pid}";
    stage.tmux.run(&["display-message", "-p", "-t", &format!("={session}:"), format]).trim().to_owned()
}

fn owner_pid(stage: &Stage, session: &str) -> Option<u32> {
    owner_option(stage, session).split_once('.').and_then(|(pid, _)| pid.parse().ok())
}

#[track_caller]
fn wait_for_exit(stage: &Stage, session: &str, task: &str) {
    stage.dead(session, task);
}

#[test]
fn who_keeps_a_session_is_not_forgotten_when_somebody_else_starts_something_in_it() {
    let stage = Stage::new();
    let own = stage.named("own");
    let agent = ScriptedAgent::start(&stage, &own);
    agent.done(&["run", "a", "--", "exit 0"]);
    assert_eq!(owner_pid(&stage, &own), Some(agent.pid()));
    // A person, of whom nothing is known, and another agent.
    stage.done(&["run", "--session", &own, "b", "--", "exit 0"]);
    stage.done(&["restart", "--session", &own, "a"]);
    assert_eq!(owner_pid(&stage, &own), Some(agent.pid()), "a person");
    let other = ScriptedAgent::start(&stage, "pi-foo-other");
    other.done(&["run", "--session", &own, "c", "--", "exit 0"]);
    assert_eq!(owner_pid(&stage, &own), Some(agent.pid()), "another agent");
    for task in ["a", "b", "c"] {
        wait_for_exit(&stage, &own, task);
    }
    let report = other.done(&["startup", "--json"]).json();
    assert_eq!((&report["removed"], &report["active"]), (&json!([]), &json!([])), "it is in use");
    // Whoever comes after one that is dead keeps it.
    drop(agent);
    stage.done(&["run", "--session", &own, "b", "--", "exit 0"]);
    wait_for_exit(&stage, &own, "b");
    let report = other.done(&["startup", "--json"]).json();
    assert_eq!(report["removed"], json!([own]));
    other.done(&["run", "--session", &own, "a", "--", "exec sleep 1000"]);
    assert_eq!(owner_pid(&stage, &own), Some(other.pid()));
}

#[test]
fn whoever_restarts_a_task_keeps_its_session_as_whoever_runs_one_does() {
    let stage = Stage::new();
    let left = stage.named("left");
    let agent = ScriptedAgent::start(&stage, &left);
    agent.done(&["run", "a", "--", "exit 0"]);
    drop(agent);
    stage.done(&["restart", "--session", &left, "a"]);
    let me = std::process::id();
    assert_ne!(owner_pid(&stage, &left), Some(me), "nobody was named");
    stage.done(&["restart", "--session", &left, "--keeper", &me.to_string(), "a"]);
    assert_eq!(owner_pid(&stage, &left), Some(me));
    let done = stage.task(&["restart", "--session", &left, "--keeper", "1", "a"]);
    assert!(done.code == Some(2) && done.stderr.contains("2.."), "{done:?}");
}

#[test]
fn a_session_that_is_taken_up_by_nobody_knows_whom_is_not_one_that_was_left() {
    let stage = Stage::new();
    let (taken, left) = (stage.named("taken"), stage.named("left"));
    for session in [&taken, &left] {
        let agent = ScriptedAgent::start(&stage, session);
        agent.done(&["run", "a", "--", "exit 0"]);
        wait_for_exit(&stage, session, "a");
    }
    // A harness that agtmux does not know as an agent, and that names no process.
    let report = stage.done(&["startup", "--json", "--session", &taken]).json();
    assert_eq!((&report["removed"], &report["active"]), (&json!([left]), &json!([])));
    assert_eq!(owner_option(&stage, &taken), "", "the one that was written down is dead");
    let report = stage.done(&["startup", "--json"]).json();
    assert_eq!((&report["removed"], &report["active"]), (&json!([]), &json!([])), "it is somebody's");
    assert_eq!(stage.tmux.run(&["list-sessions", "-F", "#{session_name}"]), taken);
    // Nothing is known of it while its keeper lives, either: then that one keeps it.
    let lives = stage.named("lives");
    let agent = ScriptedAgent::start(&stage, &lives);
    agent.done(&["run", "a", "--", "exit 0"]);
    stage.done(&["startup", "--session", &lives]);
    assert_eq!(owner_pid(&stage, &lives), Some(agent.pid()));
}

#[test]
fn an_agent_does_not_replace_what_runs_in_the_session_of_another() {
    let stage = Stage::new();
    let (own, persons) = (stage.named("own"), stage.named("persons"));
    let (agent, other) = (ScriptedAgent::start(&stage, &own), ScriptedAgent::start(&stage, "pi-foo-other"));
    agent.done(&["run", "live", "--", "exec sleep 1000"]);
    agent.done(&["run", "over", "--", "exit 3"]);
    stage.done(&["run", "--session", &persons, "live", "--", "exec sleep 1000"]);
    wait_for_exit(&stage, &own, "over");
    let pane = |session: &str| {
        stage.tmux.run(&["display-message", "-p", "-t", &format!("={session}:live"), "#{pane_pid} #{pane_dead}"])
    };
    let before = (pane(&own), pane(&persons));
    let mut refused = 0;
    for (session, whose) in [(&own, format!("process {} keeps", agent.pid())), (&persons, "no agent keeps".into())] {
        // A process that it names itself proves nothing.
        let named = agent.pid().to_string();
        for args in [
            &["run", "--session", session.as_str(), "live", "--", "true"][..],
            &["run", "--session", session, "--keeper", &named, "live", "--", "true"],
            &["restart", "--session", session, "live"],
            &["restart", "--session", session, "--keeper", &named, "live"],
        ] {
            let done = other.task(args);
            assert_eq!(done.code, Some(5), "{args:?}: {done:?}");
            for words in ["an agent may not replace 'live'", &whose, "try: choose another name"] {
                assert!(done.stderr.contains(words), "{args:?}: {words}: {}", done.stderr);
            }
            refused += 1;
        }
    }
    assert_eq!((refused, (pane(&own), pane(&persons))), (8, before), "nothing has become of them");
    // What is over, and what has another name, is nobody's loss. Its own is its own.
    other.done(&["run", "--session", &own, "over", "--", "exit 4"]);
    other.done(&["run", "--session", &own, "new", "--", "true"]);
    agent.done(&["run", "live", "--", "exec sleep 1000"]);
    agent.done(&["restart", "live"]);
    // A person may.
    stage.done(&["run", "--session", &own, "live", "--", "exec sleep 1000"]);
    // And what was left by one that is gone can be taken up.
    drop(agent);
    other.done(&["run", "--session", &own, "live", "--", "exec sleep 1000"]);
    let audit = stage.world.agtmux().args(["audit", "--json"]).output().expect("it runs");
    let refusals = String::from_utf8_lossy(&audit.stdout).matches("E_CALLER_IS_AGENT").count();
    assert_eq!(refusals, refused, "each is in the audit log");
}
