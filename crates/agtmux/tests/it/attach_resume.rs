//! `agtmux attach` and `agtmux resume`.

use std::fs;
use std::path::PathBuf;

use agtmux_testkit::agtmux::{CommandResult, SOON, agtmux, configure, items, list, run, script, start, world};
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
    wait_for(&format!("no agent in {pane}"), SOON, || {
        let listing = list(world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == pane).cloned();
        item.filter(|item| item["runtime_id"].is_null()).map(drop).ok_or_else(|| listing.to_string())
    });
}

/// The session, window and pane that the first client shows.
fn client_location(server: &TestTmuxServer) -> String {
    let place = server.run(&["list-clients", "-F", "#{session_name} #{window_id} #{pane_id}"]);
    place.lines().next().unwrap_or_default().to_owned()
}

#[track_caller]
fn wait_for_client_at(server: &TestTmuxServer, place: &str) {
    wait_for(&format!("a client at {place}"), SOON, || {
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

/// Two sessions with a common name prefix. The agent runs in a hidden pane of a hidden window.
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
fn attach_outside_tmux_selects_window_and_pane() {
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
fn attach_is_refused_after_the_pane_is_respawned() {
    let (world, server) = world_with_hidden_agent();
    let command = agtmux(&world, &["attach", "claude", "--print"]);
    assert_eq!(command.code, Some(0), "{command:?}");
    server.run(&["respawn-pane", "-k", "-t", "%3", "cat"]);
    let terminal = world.tmux("terminal");
    terminal.new_session("here", &format!("unset TMUX TMUX_PANE; {}; echo code=$?; exec cat", command.text().trim()));
    let shown = wait_for_text(&terminal, "%0", "code=");
    assert!(shown.contains("another program was started in that pane") && shown.contains("code=1"), "{shown}");
    assert!(server.client_pids().is_empty());
}

#[test]
fn attach_without_a_terminal_prints_the_command() {
    let (world, server) = world_with_hidden_agent();
    let printed = agtmux(&world, &["attach", "claude"]);
    assert_eq!(printed.code, Some(1), "{printed:?}");
    assert!(
        printed.stderr.contains("not a terminal") && printed.stderr.contains("try: agtmux attach runtime:"),
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

/// Opens a shell in the session and attaches a client to it.
fn shell_in(server: &TestTmuxServer, session: &str) -> (String, AttachedClient) {
    let name = format!("={session}:");
    let pane = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", &name, "PS1='ready> ' exec sh -i"]);
    let client = server.attach(session);
    wait_for_text(server, &pane, "ready>");
    (pane, client)
}

#[test]
fn attach_inside_the_server_switches_the_client_within_its_group() {
    let (world, server) = world_with_hidden_agent();
    let (pane, client) = shell_in(&server, "work");
    server.run(&["send-keys", "-t", &pane, &format!("{AGTMUX} attach claude; echo code=$?"), "Enter"]);
    wait_for_client_at(&server, "work-2 @2 %3");
    wait_for_text(&server, &pane, "code=0");
    drop(client);

    // A client in a grouped session must stay in that session.
    server.run(&["new-session", "-d", "-s", "grouped", "-t", "=work-2"]);
    wait_for("the grouped session to be listed", SOON, || {
        let listing = list(&world).to_string();
        if listing.contains("grouped") { Ok(()) } else { Err(listing) }
    });
    let (pane, _client) = shell_in(&server, "grouped");
    assert_ne!(client_location(&server), "grouped @2 %3");
    server.run(&["send-keys", "-t", &pane, &format!("{AGTMUX} attach claude; echo code=$?"), "Enter"]);
    wait_for_client_at(&server, "grouped @2 %3");
}

#[test]
fn attach_in_a_pane_that_no_client_shows_moves_no_client() {
    let (world, server) = world_with_hidden_agent();
    let other = world.tmux("other");
    let _client = server.attach("work");
    let before = client_location(&server);
    other.new_session("here", &format!("{AGTMUX} attach claude; echo code=$?; exec cat"));
    let shown = wait_for_text(&other, "%0", "code=1");
    assert!(shown.contains("no client shows this pane") && shown.contains("--client TTY"), "{shown}");
    assert_eq!(client_location(&server), before);
}

/// A pane with a fake `claude` that records how it was started.
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
    let path = format!("{}:{}", world.home().join("bin").display(), std::env::var("PATH").expect("PATH is set"));
    server.run(&["new-session", "-d", "-s", "other", "cat"]);
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let project_text = project.to_str().expect("text").to_owned();
    // tmux expands `#` in the directory as a format.
    let cwd = project_text.replace('#', "##");
    // tmux and the daemon need the PATH with the fake `claude`.
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

    /// Reports the agent's session id by a hook event. Returns the runtime id.
    fn report_session(&self, session: &str) -> String {
        let runtime = runtime_in(&self.world, "%1");
        wait_for("the agent's directory", SOON, || {
            let listing = list(&self.world);
            let known =
                items(&listing).iter().any(|item| item["identity"]["pane_id"] == "%1" && item["cwd"].is_string());
            if known { Ok(()) } else { Err(listing.to_string()) }
        });
        let payload = self.world.home().join("payload");
        fs::write(&payload, format!("{{\"session_id\": \"{session}\"}}")).expect("writable");
        let args = ["emit", "--pane", "%1", "--agent", "claude", "--source", "hook", "--event-type", "SessionStart"];
        let emitted = run(self.world.agtmux().args(args).args(["--dedupe-key", session, "--payload"]).arg(&payload));
        assert!(emitted.code == Some(0) && emitted.text().contains("accepted"), "{emitted:?}");
        runtime
    }

    fn agent_starts(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.home().join("started")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn resume(&self, reference: &str, more: &[&str]) -> CommandResult {
        agtmux(&self.world, &[&["resume", reference], more].concat())
    }
}

#[test]
fn resume_starts_the_agent_in_its_shell_and_directory() {
    let fixture = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    let no_agent = fixture.resume("%1", &[]);
    assert!(no_agent.code == Some(5) && no_agent.stderr.contains("no agent has run"), "{no_agent:?}");
    fixture.type_line("claude");
    let first = fixture.report_session("abc-1");
    let alive = fixture.resume(&format!("runtime:{first}"), &[]);
    assert!(alive.code == Some(5) && alive.stderr.contains("claude is already running in %1"), "{alive:?}");
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    // The shell changes its directory, runs a program, and then holds a half-typed line.
    fixture.type_line("cd /; sleep 1000");
    wait_until("the shell to be busy", SOON, || {
        fixture.server.run(&["display-message", "-p", "-t", "%1", "#{pane_current_command}"]) == "sleep"
    });
    let busy = fixture.resume("%1", &[]);
    assert!(busy.code == Some(5) && busy.stderr.contains("'sleep' runs in the foreground of the pane"), "{busy:?}");
    fixture.server.run(&["send-keys", "-t", "%1", "C-c"]);
    wait_until("the shell to be idle", SOON, || {
        fixture.server.run(&["display-message", "-p", "-t", "%1", "#{pane_current_command}"]) == "sh"
    });
    fixture.server.run(&["send-keys", "-t", "%1", "-l", "echo half a line"]);
    let other = fixture.resume("%1", &["--if-runtime", "feed"]);
    assert!(other.code == Some(5) && other.stderr.contains("not runtime:feed"), "{other:?}");
    let resumed = fixture.resume("%1", &["--if-runtime", &first, "--json"]).json();
    assert_eq!(resumed["session"], "abc-1");
    assert_eq!(resumed["resumed_runtime_id"].as_str(), Some(runtime_in(&fixture.world, "%1").as_str()));
    let project = fixture.project.display();
    assert_eq!(fixture.agent_starts(), [format!("{project}: "), format!("{project}: --resume abc-1")]);
    let audit = agtmux(&fixture.world, &["audit", "--json"]).json();
    assert!(items(&audit).iter().any(|item| item["kind"] == "resume" && item["status"] == "done"), "{audit}");
}

#[test]
fn resume_types_nothing_into_a_shell_prompt_or_partial_command() {
    let fixture = resume_fixture("PS1='ready> ' PS2='more> ' exec bash --norc --noprofile -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    fixture.type_line("claude");
    fixture.report_session("abc-2");
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    // The shell runs `read`, so typed text would be its answer.
    fixture.type_line("read -p 'delete all? ' answer; echo got $answer");
    wait_for_text(&fixture.server, "%1", "delete all?");
    let refused = fixture.resume("%1", &[]);
    assert!(
        refused.code == Some(5) && refused.stderr.contains("'bash' is running a command or reading input"),
        "{refused:?}"
    );
    fixture.type_line("no");
    wait_for_text(&fixture.server, "%1", "got no");
    // A partial command must not be completed by the typed text.
    let begun = fixture.world.home().join("begun");
    fixture.type_line(&format!("echo it is >{} \\", begun.display()));
    wait_for_text(&fixture.server, "%1", "more>");
    let resumed = fixture.resume("%1", &["--json"]).json();
    assert_eq!(resumed["resumed_runtime_id"].as_str(), Some(runtime_in(&fixture.world, "%1").as_str()), "{resumed}");
    assert!(!begun.exists(), "the partial command was run: {:?}", fs::read_to_string(&begun));
    assert_eq!(fixture.agent_starts().last(), Some(&format!("{}: --resume abc-2", fixture.project.display())));
}

#[test]
fn resume_respawns_the_dead_pane_of_the_agent() {
    let fixture = resume_fixture("exec claude");
    fixture.report_session("ses_2");
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    // The only ended agent of this type.
    let resumed = fixture.resume("claude", &[]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let second = runtime_in(&fixture.world, "%1");
    assert!(resumed.text().contains("claude --resume ses_2") && resumed.text().contains(&second), "{resumed:?}");
    let project = fixture.project.display();
    assert_eq!(fixture.agent_starts(), [format!("{project}: "), format!("{project}: --resume ses_2")]);
}

#[test]
fn resume_is_refused_for_unknown_sessions_and_changed_panes() {
    let fixture = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    fixture.type_line("claude");
    let unnamed = runtime_in(&fixture.world, "%1");
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    let silent = fixture.resume(&format!("runtime:{unnamed}"), &[]);
    assert!(silent.code == Some(5) && silent.stderr.contains("the session id of claude is not known"), "{silent:?}");
    fixture.type_line("claude");
    let hostile = fixture.report_session("x;touch pwned");
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    let refused = fixture.resume("%1", &[]);
    assert!(refused.code == Some(5) && refused.stderr.contains("is not usable on a command line"), "{refused:?}");
    fixture.server.run(&["respawn-pane", "-k", "-t", "%1", "PS1='ready> ' exec sh -i"]);
    let pid = fixture.server.run(&["display-message", "-p", "-t", "%1", "#{pane_pid}"]);
    wait_until("the new shell to be known", SOON, || process::is_alive(pid.parse().expect("a pid")));
    let other = wait_for("the new shell to be noticed", SOON, || {
        let done = fixture.resume(&format!("runtime:{hostile}"), &[]);
        if done.stderr.contains("another program has run in pane") { Ok(done) } else { Err(done) }
    });
    assert_eq!(other.code, Some(5));
    assert_eq!(fixture.agent_starts().len(), 2, "no agent was started");
    assert_eq!(fixture.resume("runtime:feed", &[]).code, Some(5));
    assert_eq!(agtmux(&fixture.world, &["resume"]).code, Some(2));
}

#[test]
fn resume_keeps_the_options_of_the_agent_but_not_its_prompt() {
    let fixture = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    fixture.type_line("claude --model 'it'\\''s; touch pwned' --continue 'fix it' --dangerously-skip-permissions");
    fixture.report_session("abc-3");
    let project = fixture.project.display();
    let kept = "--model it's; touch pwned --dangerously-skip-permissions";
    // The second time, the command line already contains the session and the options.
    for _ in 0..2 {
        fixture.type_line("quit");
        wait_for_no_agent(&fixture.world, "%1");
        let resumed = fixture.resume("%1", &["--json"]).json();
        assert_eq!(fixture.agent_starts().last(), Some(&format!("{project}: --resume abc-3 {kept}")), "{resumed}");
        fixture.report_session("abc-3");
    }
    assert!(!fixture.project.join("pwned").exists(), "an argument was run as a command");
}

#[test]
fn resume_starts_a_wrapped_agent_in_its_wrapper() {
    let fixture = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    std::os::unix::fs::symlink(AGTMUX, fixture.world.home().join("bin/agtmux")).expect("the world is writable");
    fixture.type_line("agtmux run --name reviewer -- claude --model opus");
    fixture.report_session("abc-4");
    let is_named = || {
        let listing = list(&fixture.world);
        let named = items(&listing).iter().any(|item| item["name"] == "reviewer");
        if named { Ok(()) } else { Err(listing.to_string()) }
    };
    wait_for("the name of the agent", SOON, is_named);
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    let resumed = fixture.resume("%1", &["--json"]).json();
    assert_eq!(resumed["command"], "agtmux run --name reviewer -- claude --resume abc-4 --model opus");
    wait_for("the name of the resumed agent", SOON, is_named);
}

#[test]
fn resume_uses_the_session_in_the_status_file_of_an_agent_without_hooks() {
    let fixture = resume_fixture("PS1='ready> ' exec sh -i");
    wait_for_text(&fixture.server, "%1", "ready>");
    let sessions = fixture.world.home().join(".claude/sessions");
    fs::create_dir_all(&sessions).expect("the world is writable");
    fixture.type_line("claude");
    runtime_in(&fixture.world, "%1");
    let shell = fixture.server.run(&["display-message", "-p", "-t", "%1", "#{pane_pid}"]);
    let agent = process::descendants(shell.trim().parse().expect("a pid")).into_iter().next().expect("an agent");
    let now = jiff::Timestamp::now().as_millisecond();
    let status =
        format!("{{\"pid\": {agent}, \"sessionId\": \"abc-5\", \"status\": \"idle\", \"statusUpdatedAt\": {now}}}");
    fs::write(sessions.join(format!("{agent}.json")), status).expect("the world is writable");
    wait_for("the session", SOON, || {
        // The daemon looks for the file again when the pane has output.
        fixture.server.run(&["send-keys", "-t", "%1", "Enter"]);
        let listing = list(&fixture.world);
        let known = items(&listing).iter().any(|item| item["agent_id"].is_string());
        if known { Ok(()) } else { Err(listing.to_string()) }
    });
    fixture.type_line("quit");
    wait_for_no_agent(&fixture.world, "%1");
    assert_eq!(fixture.resume("%1", &["--json"]).json()["session"], "abc-5");
}
