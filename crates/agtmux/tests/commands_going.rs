//! What leads somewhere: `attach` to the pane that is meant, `resume` of an agent that has ended.

#[path = "support/trial_agtmux.rs"]
mod agtmux;

use std::fs;
use std::path::PathBuf;

use agtmux::{Done, SOON, agtmux, configure, items, list, run, script, start, world};
use agtmux_testkit::{AttachedClient, TestTmuxServer, TestWorld, process, wait_for, wait_until};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

#[track_caller]
fn runtime_in(world: &TestWorld, pane: &str) -> String {
    wait_for(&format!("an agent in {pane}"), SOON, || {
        let listing = list(world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned();
        item.and_then(|item| item["runtime_id"].as_str().map(str::to_owned)).ok_or_else(|| listing.to_string())
    })
}

#[track_caller]
fn wait_for_no_agent(world: &TestWorld, pane: &str) {
    wait_for(&format!("nobody in {pane}"), SOON, || {
        let listing = list(world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned();
        item.filter(|item| item["runtime_id"].is_null()).map(drop).ok_or_else(|| listing.to_string())
    });
}

/// The session, window and pane that a client looks at.
fn client_location(server: &TestTmuxServer) -> String {
    let place = server.run(&["list-clients", "-F", "#{session_name} #{window_id} #{pane_id}"]);
    place.lines().next().unwrap_or_default().to_owned()
}

#[track_caller]
fn wait_for_client_at(server: &TestTmuxServer, place: &str) {
    wait_for(&format!("a client to look at {place}"), SOON, || {
        let seen = server.try_run(&["list-clients", "-F", "#{session_name} #{window_id} #{pane_id}"]);
        if seen.as_deref() == Ok(place) { Ok(()) } else { Err(seen) }
    });
}

fn screen(server: &TestTmuxServer, pane: &str) -> String {
    server.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", pane])
}

#[track_caller]
fn wait_for_text(server: &TestTmuxServer, pane: &str, text: &str) -> String {
    wait_for(&format!("'{text}' in {pane}"), SOON, || {
        let screen = screen(server, pane);
        if screen.contains(text) { Ok(screen) } else { Err(screen) }
    })
}

/// Two windows, an agent in the hidden pane of the hidden one. Names that begin alike, as they do.
fn world_with_hidden_agent() -> (TestWorld, TestTmuxServer) {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.new_session("work-2", "cat");
    server.run(&["new-window", "-t", "work-2", "cat"]);
    server.run(&["split-window", "-t", "work-2", &world.fake_agent_command("claude")]);
    server.run(&["select-pane", "-t", "%2"]);
    server.run(&["select-window", "-t", "work-2:0"]);
    start(&world);
    runtime_in(&world, "%3");
    (world, server)
}

#[test]
fn outside_of_tmux_it_attaches_with_window_and_pane() {
    let (world, server) = world_with_hidden_agent();
    let terminal = world.tmux("terminal");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {AGTMUX} attach claude; echo code=$?; exec cat"));
    wait_for_client_at(&server, "work-2 @2 %3");
    server.run(&["detach-client", "-s", "=work-2"]);
    wait_for_text(&terminal, "%0", "code=0");
    let audit = agtmux(&world, &["audit"]).text();
    assert!(audit.contains("attach") && audit.contains("%3 on default"), "{audit}");
}

#[test]
fn a_pane_that_is_another_one_by_now_is_not_gone_to() {
    let (world, server) = world_with_hidden_agent();
    let command = agtmux(&world, &["attach", "claude", "--print"]);
    assert_eq!(command.code, Some(0), "{command:?}");
    server.run(&["respawn-pane", "-k", "-t", "%3", "cat"]);
    let terminal = world.tmux("terminal");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {}; echo code=$?; exec cat", command.text().trim()));
    let said = wait_for_text(&terminal, "%0", "code=");
    assert!(said.contains("another program was started in that pane") && said.contains("code=1"), "{said}");
    assert!(server.client_pids().is_empty());
}

#[test]
fn without_a_terminal_it_prints_what_to_run() {
    let (world, server) = world_with_hidden_agent();
    let printed = agtmux(&world, &["attach", "claude"]);
    assert_eq!(printed.code, Some(1), "{printed:?}");
    assert!(
        printed.stderr.contains("no terminal") && printed.stderr.contains("try: agtmux attach runtime:"),
        "{printed:?}"
    );
    let terminal = world.tmux("terminal");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {}; exec cat", printed.text().trim()));
    wait_for_client_at(&server, "work-2 @2 %3");
    let plan = agtmux(&world, &["attach", "claude", "--json"]).json();
    assert_eq!(
        (&plan["session_name"], &plan["window_id"], &plan["pane_id"]),
        (&"work-2".into(), &"@2".into(), &"%3".into())
    );
    assert_eq!(plan["sessions"].as_array().map(Vec::len), Some(1));
}

/// A shell in the session, and a client that looks at it.
fn shell_in(server: &TestTmuxServer, session: &str) -> (String, AttachedClient) {
    let name = format!("={session}:");
    let pane = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", &name, "PS1='ready> ' exec sh -i"]);
    let client = server.attach(session);
    wait_for_text(server, &pane, "ready>");
    (pane, client)
}

#[test]
fn inside_the_same_server_the_client_goes_there_and_stays_in_its_group() {
    let (world, server) = world_with_hidden_agent();
    let (pane, client) = shell_in(&server, "work");
    server.run(&["send-keys", "-t", &pane, &format!("{AGTMUX} attach claude; echo code=$?"), "Enter"]);
    wait_for_client_at(&server, "work-2 @2 %3");
    wait_for_text(&server, &pane, "code=0");
    drop(client);

    // A twin of that session: whoever is in it wants to stay in it.
    server.run(&["new-session", "-d", "-s", "twin", "-t", "=work-2"]);
    wait_for("the twin to be seen", SOON, || {
        let listing = list(&world).to_string();
        if listing.contains("twin") { Ok(()) } else { Err(listing) }
    });
    let (pane, _client) = shell_in(&server, "twin");
    assert_ne!(client_location(&server), "twin @2 %3");
    server.run(&["send-keys", "-t", &pane, &format!("{AGTMUX} attach claude; echo code=$?"), "Enter"]);
    wait_for_client_at(&server, "twin @2 %3");
}

#[test]
fn inside_another_server_it_says_where_to_run_it() {
    let (world, server) = world_with_hidden_agent();
    let other = world.tmux("other");
    other.new_session("here", &format!("{AGTMUX} attach claude; echo code=$?; exec cat"));
    let said = wait_for_text(&other, "%0", "code=1");
    assert!(said.contains("another tmux server") && said.contains("in another terminal"), "{said}");
    assert!(server.client_pids().is_empty());
}

/// A shell in a pane, with a `claude` that notes how it was started, and how to tell of its session.
struct ResumeFixture {
    world: TestWorld,
    server: TestTmuxServer,
    project: PathBuf,
}

fn resume_fixture(command: &str) -> ResumeFixture {
    let world = world();
    configure(&world, "[actions]\nallow_from_agents = true\n");
    let project = world.home().join("it's \\ #(a) $HOME");
    fs::create_dir(&project).expect("the world is writable");
    fs::create_dir(world.home().join("bin")).expect("the world is writable");
    let body = format!(
        "echo \"$PWD: $*\" >> {}/started\nwhile read -r line; do [ \"$line\" = quit ] && exit; done",
        world.home().display()
    );
    script(&world, "bin/claude", &body);
    let server = world.tmux("default");
    let path = format!("{}:{}", world.home().join("bin").display(), std::env::var("PATH").expect("there is one"));
    server.run(&["new-session", "-d", "-s", "other", "cat"]);
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let project_text = project.to_str().expect("text").to_owned();
    // tmux would take it for a format.
    let cwd = project_text.replace('#', "##");
    // What is started has the PATH of whoever asked for it.
    let mut open = server.command();
    open.args(["new-session", "-d", "-x", "200", "-y", "24", "-s", "work", "-c", &cwd, command]);
    for command in [&mut open, world.agtmux().args(["daemon", "start"])] {
        let done = run(command.env("PATH", &path));
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    ResumeFixture { world, server, project }
}

impl ResumeFixture {
    fn type_line(&self, text: &str) {
        self.server.run(&["send-keys", "-t", "%1", "-l", text]);
        self.server.run(&["send-keys", "-t", "%1", "Enter"]);
    }

    /// The agent says which session it is.
    fn report_session(&self, session: &str) -> String {
        let runtime = runtime_in(&self.world, "%1");
        wait_for("where it is", SOON, || {
            let listing = list(&self.world);
            let known =
                items(&listing).iter().any(|item| item["identity"]["pane_id"] == "%1" && item["cwd"].is_string());
            if known { Ok(()) } else { Err(listing.to_string()) }
        });
        let payload = self.world.home().join("payload");
        fs::write(&payload, format!("{{\"session_id\": \"{session}\"}}")).expect("writable");
        let args = ["emit", "--pane", "%1", "--agent", "claude", "--source", "hook", "--event-type", "SessionStart"];
        let told = run(self.world.agtmux().args(args).args(["--dedupe-key", session, "--payload"]).arg(&payload));
        assert!(told.code == Some(0) && told.text().contains("taken"), "{told:?}");
        runtime
    }

    fn agent_starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.home().join("started")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn resume(&self, reference: &str, more: &[&str]) -> Done {
        agtmux(&self.world, &[&["resume", reference], more].concat())
    }
}

#[test]
fn an_agent_is_resumed_in_its_shell_and_directory() {
    let desk = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&desk.server, "%1", "ready>");
    let nobody = desk.resume("%1", &[]);
    assert!(nobody.code == Some(5) && nobody.stderr.contains("no agent has lived"), "{nobody:?}");
    desk.type_line("claude");
    let first = desk.report_session("abc-1");
    let alive = desk.resume(&format!("runtime:{first}"), &[]);
    assert!(alive.code == Some(5) && alive.stderr.contains("claude lives in %1"), "{alive:?}");
    desk.type_line("quit");
    wait_for_no_agent(&desk.world, "%1");
    // It is somewhere else by now, is busy, and somebody has begun to type.
    desk.type_line("cd /; sleep 1000");
    wait_until("the shell to be busy", SOON, || {
        desk.server.run(&["display-message", "-p", "-t", "%1", "#{pane_current_command}"]) == "sleep"
    });
    let busy = desk.resume("%1", &[]);
    assert!(busy.code == Some(5) && busy.stderr.contains("'sleep' has its terminal"), "{busy:?}");
    desk.server.run(&["send-keys", "-t", "%1", "C-c"]);
    wait_until("the shell to wait", SOON, || {
        desk.server.run(&["display-message", "-p", "-t", "%1", "#{pane_current_command}"]) == "sh"
    });
    desk.server.run(&["send-keys", "-t", "%1", "-l", "echo half a line"]);
    let resumed = desk.resume(&format!("runtime:{first}"), &["--json"]).json();
    assert_eq!(resumed["session"], "abc-1");
    assert_eq!(resumed["resumed_runtime_id"].as_str(), Some(runtime_in(&desk.world, "%1").as_str()));
    let project = desk.project.display();
    assert_eq!(desk.agent_starts(), [format!("{project}: "), format!("{project}: --resume abc-1")]);
    let audit = agtmux(&desk.world, &["audit", "--json"]).json();
    assert!(items(&audit).iter().any(|item| item["kind"] == "resume" && item["status"] == "done"), "{audit}");
}

#[test]
fn an_agent_is_not_resumed_into_a_question_or_half_a_command() {
    let desk = resume_fixture("PS1='ready> ' PS2='more> ' exec bash --norc --noprofile -i");
    wait_for_text(&desk.server, "%1", "ready>");
    desk.type_line("claude");
    desk.report_session("abc-2");
    desk.type_line("quit");
    wait_for_no_agent(&desk.world, "%1");
    // The shell itself asks, and what is typed would be the answer.
    desk.type_line("read -p 'delete all? ' answer; echo got $answer");
    wait_for_text(&desk.server, "%1", "delete all?");
    let asked = desk.resume("%1", &[]);
    assert!(asked.code == Some(5) && asked.stderr.contains("'bash' runs something, or has asked"), "{asked:?}");
    desk.type_line("no");
    wait_for_text(&desk.server, "%1", "got no");
    // What has been begun is not to be ended by what is typed.
    let begun = desk.world.home().join("begun");
    desk.type_line(&format!("echo it is >{} \\", begun.display()));
    wait_for_text(&desk.server, "%1", "more>");
    let resumed = desk.resume("%1", &["--json"]).json();
    assert_eq!(resumed["resumed_runtime_id"].as_str(), Some(runtime_in(&desk.world, "%1").as_str()), "{resumed}");
    assert!(!begun.exists(), "half a command was run: {:?}", fs::read_to_string(&begun));
    assert_eq!(desk.agent_starts().last(), Some(&format!("{}: --resume abc-2", desk.project.display())));
}

#[test]
fn an_agent_is_resumed_in_the_pane_that_died_with_it() {
    let desk = resume_fixture("exec claude");
    desk.report_session("ses_2");
    desk.type_line("quit");
    wait_for_no_agent(&desk.world, "%1");
    let resumed = desk.resume("%1", &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let second = runtime_in(&desk.world, "%1");
    assert!(resumed.text().contains("claude --resume ses_2") && resumed.text().contains(&second), "{resumed:?}");
    let project = desk.project.display();
    assert_eq!(desk.agent_starts(), [format!("{project}: "), format!("{project}: --resume ses_2")]);
}

#[test]
fn what_is_not_the_same_or_not_known_is_not_resumed() {
    let desk = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&desk.server, "%1", "ready>");
    desk.type_line("claude");
    let unnamed = runtime_in(&desk.world, "%1");
    desk.type_line("quit");
    wait_for_no_agent(&desk.world, "%1");
    let silent = desk.resume(&format!("runtime:{unnamed}"), &[]);
    assert!(silent.code == Some(5) && silent.stderr.contains("did not say which session"), "{silent:?}");
    desk.type_line("claude");
    let hostile = desk.report_session("x;touch pwned");
    desk.type_line("quit");
    wait_for_no_agent(&desk.world, "%1");
    let refused = desk.resume("%1", &[]);
    assert!(refused.code == Some(5) && refused.stderr.contains("without a usable id"), "{refused:?}");
    desk.server.run(&["respawn-pane", "-k", "-t", "%1", "PS1='ready> ' exec sh -i"]);
    let pid = desk.server.run(&["display-message", "-p", "-t", "%1", "#{pane_pid}"]);
    wait_until("the new shell to be known", SOON, || process::is_alive(pid.parse().expect("a pid")));
    let other = wait_for("the new life to be seen", SOON, || {
        let done = desk.resume(&format!("runtime:{hostile}"), &[]);
        if done.stderr.contains("is not the pane that it was") { Ok(done) } else { Err(done) }
    });
    assert_eq!(other.code, Some(5));
    assert_eq!(desk.agent_starts().len(), 2, "nobody was started");
    assert_eq!(desk.resume("runtime:feed", &[]).code, Some(5));
    assert_eq!(agtmux(&desk.world, &["resume"]).code, Some(2));
}
