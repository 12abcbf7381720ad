//! An agent cannot act on agents, whatever process it starts for that. `docs/safety.md` has the same table.

mod agent_fixture;
mod changes;
mod foreign_events;
mod owned_tasks;
mod panes;
mod popups;
mod random_chains;
mod raw_requests;
mod repository;
mod starts;

use agent_fixture::AgentFixture;

const SAFETY_PAGE: &str = include_str!("../../../../../docs/safety.md");

/// How an agent tries to act, and the line that it executes. `SCRIPT` is the script that acts, `PROGRAM` is agtmux. Each attempt is refused.
const REFUSED: [(&str, &str); 17] = [
    ("child", "sh SCRIPT"),
    ("env-i", "env -i sh SCRIPT"),
    ("setsid", "setsid -f sh SCRIPT"),
    ("setsid-env-i", "env -i setsid -f sh SCRIPT"),
    ("nohup", "nohup sh SCRIPT >/dev/null 2>&1 &"),
    ("double-fork", "env -i sh -c '(sh SCRIPT &) &'"),
    ("task", "PROGRAM task run --session pi-foo-a NAME -- 'env -u AGTMUX_RUN_ID sh SCRIPT'"),
    ("task-env-i", "PROGRAM task run --session pi-foo-a NAME -- 'exec env -i sh SCRIPT'"),
    ("task-detached", "PROGRAM task run --session pi-foo-a NAME -- 'env -i setsid -f sh SCRIPT'"),
    ("new-window", "tmux new-window -d 'sh SCRIPT'"),
    ("new-window-env-i", "tmux new-window -d 'exec env -i sh SCRIPT'"),
    ("split-window", "tmux split-window -d -t person: 'sh SCRIPT'"),
    ("respawn", "tmux new-window -d -n spare cat; tmux respawn-pane -k -t spare 'sh SCRIPT'"),
    ("run-shell", "tmux run-shell -b 'sh SCRIPT'"),
    ("if-shell", "tmux if-shell -b 'sh SCRIPT' ''"),
    ("own-server", "tmux -L own new-session -d 'sh SCRIPT'"),
    ("window-by-orphan", "env -i setsid -f sh -c 'TMUX_TMPDIR=$0 tmux new-window -d \"sh SCRIPT\"' $TMUX_TMPDIR"),
];

#[test]
fn every_way_in_which_an_agent_starts_a_process_is_refused() {
    let fixture = AgentFixture::start("");
    for (label, line) in REFUSED {
        assert!(SAFETY_PAGE.contains(&format!("`{label}`")), "docs/safety.md does not list {label}");
        fixture.agent_tries(label, line).assert_refused();
    }
    // The rules do not lock out the person: in a shell of their own, or outside tmux.
    let name = fixture.write_script("person");
    fixture.type_line(&fixture.shell, &format!("sh {}", fixture.script(&name)));
    fixture.result(&name).assert_allowed();
    let name = fixture.write_script("outside");
    let mut outside = fixture.world.command("sh");
    assert!(outside.arg(fixture.script(&name)).status().is_ok());
    fixture.result(&name).assert_allowed();
    // A shell that is older than the agent does what is typed into it. agtmux cannot tell who typed.
    fixture
        .agent_tries("send-keys", &format!("tmux send-keys -t {} 'sh SCRIPT' Enter", fixture.shell))
        .assert_allowed();
    let refused = fixture.audit().iter().filter(|row| row["code"] == "E_CALLER_IS_AGENT").count();
    assert_eq!(refused, REFUSED.len(), "each refusal is in the audit log");
}

#[test]
fn a_detached_process_is_still_refused_after_its_agent_has_ended() {
    let fixture = AgentFixture::start("");
    let name = fixture.write_script("later");
    let go = fixture.file("go");
    let wait = format!("while [ ! -e {} ]; do sleep 0.1; done; sh SCRIPT", go.display());
    fixture.type_line(&fixture.agent, &fixture.fill_in(&name, &format!("env -i setsid -f sh -c '{wait}'")));
    // The agent reads its next line after it has started the process.
    fixture.agent_tries("child", "sh SCRIPT").assert_refused();
    fixture.server.run(&["send-keys", "-t", &fixture.agent, "C-d"]);
    agtmux_testkit::wait_for("the agent to end", agtmux_testkit::agtmux::SOON, || {
        fixture.item(&fixture.agent)["agent_type"].is_null().then_some(())
    });
    std::fs::write(go, "").expect("the world is writable");
    fixture.result(&name).assert_refused();
}

#[test]
fn an_agent_may_not_type_into_a_task_of_a_person() {
    let fixture = AgentFixture::start("");
    let run = ["task", "run", "--session", "pi-foo-p", "shell", "--", "exec sh -i"];
    assert_eq!(agtmux_testkit::agtmux::agtmux(&fixture.world, &run).code, Some(0));
    let name = fixture.write_script_with("task-input", |fixture, name| {
        let typed = fixture.file(&format!("{name}.typed"));
        let input = "task input --session pi-foo-p shell --text";
        format!("{} {input} 'touch {}'", env!("CARGO_BIN_EXE_agtmux"), typed.display())
    });
    fixture.type_line(&fixture.agent, &format!("env -i sh {}", fixture.script(&name)));
    fixture.result(&name).assert_refused();
}
