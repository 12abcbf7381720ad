//! A pane that was created while an agent was running may act after a person has typed in it.

use agtmux_testkit::agtmux::{SOON, agtmux};
use agtmux_testkit::{AttachedClient, wait_for_next_second, wait_until};

use super::agent_fixture::AgentFixture;

/// Opens a window with a shell. Returns its pane.
fn open_window(fixture: &AgentFixture, session: &str) -> String {
    let before = agtmux_testkit::agtmux::tmux_pane_ids(&fixture.server).len();
    let target = format!("={session}:");
    let new = ["new-window", "-P", "-F", "#{pane_id}", "-t", &target, "PS1='$ ' exec sh -i"];
    let pane = fixture.server.run(&new);
    fixture.wait_for_pane_count(before + 1);
    pane
}

fn attach(fixture: &AgentFixture, session: &str) -> AttachedClient {
    let client = fixture.server.attach(session);
    wait_until("the client to attach", SOON, || !fixture.server.run(&["list-clients"]).is_empty());
    client
}

#[test]
fn a_new_pane_may_act_after_a_person_has_typed_in_it() {
    let fixture = AgentFixture::start("");
    let pane = open_window(&fixture, "person");
    let before = fixture.write_script("before");
    fixture.type_line(&pane, &format!("sh {}", fixture.script(&before)));
    let refused = fixture.result(&before);
    refused.assert_refused();
    assert!(refused.output.contains(&format!("pane {pane} was created while an agent was running")), "{refused:?}");
    assert!(refused.output.contains("actions.allow_from_unknown"), "{refused:?}");
    let client = attach(&fixture, "person");
    wait_for_next_second();
    let typed = fixture.write_script("typed");
    client.type_keys(format!("sh {}\r", fixture.script(&typed)).as_bytes());
    fixture.result(&typed).assert_allowed();
    // The person may leave the pane now.
    drop(client);
    wait_until("the client to detach", SOON, || fixture.server.run(&["list-clients"]).is_empty());
    let later = fixture.write_script("later");
    fixture.type_line(&pane, &format!("sh {}", fixture.script(&later)));
    fixture.result(&later).assert_allowed();
}

#[test]
fn a_command_may_act_after_the_person_has_left_its_new_pane() {
    let fixture = AgentFixture::start("");
    open_window(&fixture, "person");
    let client = attach(&fixture, "person");
    wait_for_next_second();
    let (name, go) = (fixture.write_script("waits"), fixture.file("go"));
    let program = env!("CARGO_BIN_EXE_agtmux");
    let listed = fixture.file("listed");
    let line = format!(
        "{program} list; touch {}; while [ ! -e {} ]; do sleep 0.1; done; sh {}",
        listed.display(),
        go.display(),
        fixture.script(&name)
    );
    client.type_keys(format!("{line}\r").as_bytes());
    wait_until("the first command to end", SOON, || fixture.file("listed").exists());
    fixture.server.run(&["select-window", "-t", &fixture.shell]);
    std::fs::write(go, "").expect("the world is writable");
    fixture.result(&name).assert_allowed();
}

#[test]
fn keys_of_a_client_that_an_agent_attached_do_not_count() {
    let fixture = AgentFixture::start("");
    open_window(&fixture, "person");
    let name = fixture.write_script("driven");
    let (go, done) = (fixture.file("go"), fixture.file("done"));
    let wait_until_exists = |file: &std::path::Path| format!("while [ ! -e {} ]; do sleep 0.1; done", file.display());
    let keys =
        format!("{}; printf 'sh {}\\r'; {}", wait_until_exists(&go), fixture.script(&name), wait_until_exists(&done));
    std::fs::write(fixture.file("keys.sh"), keys).expect("the world is writable");
    // `script` gives the client a terminal, and its input becomes the keys of the client.
    let attach = "TMUX= setsid script -qfc 'tmux attach -t person' /dev/null >/dev/null 2>&1 &";
    fixture.type_line(&fixture.agent, &format!("sh {} | {attach}", fixture.file("keys.sh").display()));
    wait_until("the agent's client to attach", SOON, || !fixture.server.client_pids().is_empty());
    wait_for_next_second();
    std::fs::write(go, "").expect("the world is writable");
    fixture.result(&name).assert_refused();
    fixture.server.run(&["detach-client", "-s", "person"]);
    std::fs::write(done, "").expect("the world is writable");
}

#[test]
fn a_client_in_a_pane_that_an_agent_made_does_not_count() {
    let fixture = AgentFixture::start("");
    // A client in control mode shows every pane of its session.
    fixture.type_line(&fixture.agent, "tmux new-window -d 'env -u TMUX tmux -C attach'");
    wait_until("the agent's client to attach", SOON, || !fixture.server.client_pids().is_empty());
    wait_for_next_second();
    fixture.agent_tries("new-window", "tmux new-window -d 'sh SCRIPT'").assert_refused();
}

#[test]
fn unknown_callers_may_act_if_the_settings_allow_it() {
    let fixture = AgentFixture::start("[actions]\nallow_from_unknown = true\n");
    fixture.agent_tries("new-window", "tmux new-window -d 'sh SCRIPT'").assert_allowed();
    fixture.agent_tries("child", "sh SCRIPT").assert_refused();
}

#[test]
fn a_task_of_a_person_may_act_while_an_agent_runs() {
    let fixture = AgentFixture::start("");
    let name = fixture.write_script("task");
    let command = format!("env -i sh {}", fixture.script(&name));
    let run = ["task", "run", "--session", "pi-foo-p", "acts", "--", &command];
    assert_eq!(agtmux(&fixture.world, &run).code, Some(0));
    fixture.result(&name).assert_allowed();
}
