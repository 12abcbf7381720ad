//! `agtmux run` is transparent for the program it runs.

mod signals;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use agtmux_testkit::agtmux::{SOON, run, script, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::{Value, json};

const AGTMUX: &str = env!("CARGO_BIN_EXE_agtmux");

fn type_line(server: &TestTmuxServer, line: &str) {
    server.run(&["send-keys", "-t", "%0", "-l", line]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
}

fn screen(server: &TestTmuxServer) -> String {
    server.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"])
}

#[track_caller]
fn wait_for_text(server: &TestTmuxServer, text: &str) {
    wait_for(&format!("'{text}' on the screen"), SOON, || {
        let screen = screen(server);
        if screen.contains(text) { Ok(()) } else { Err(screen) }
    });
}

#[track_caller]
fn wait_for_file(path: &Path) -> String {
    wait_for(&format!("{}", path.display()), SOON, || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')))
        .trim()
        .to_owned()
}

/// All wrapper events in the spool of a world without a daemon, the oldest first.
fn spooled_events(world: &TestWorld) -> Vec<Value> {
    let Ok(entries) = fs::read_dir(world.state_dir().join("spool")) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON")).collect()
}

fn start_shell(world: &TestWorld) -> TestTmuxServer {
    let server = world.tmux("default");
    server.new_session("work", "PS1='ready> ' exec sh -i");
    wait_for_text(&server, "ready>");
    server
}

#[test]
fn exit_codes_and_signals_are_passed_on() {
    let world = world();
    for code in [0, 1, 2, 42, 255] {
        let done = run(world.agtmux().args(["run", "--", "sh", "-c", &format!("echo out; echo err >&2; exit {code}")]));
        assert_eq!((done.code, done.text().as_str(), done.stderr.as_str()), (Some(code), "out\n", "err\n"));
    }
    for (signal, number) in [("KILL", 9), ("TERM", 15), ("INT", 2), ("SEGV", 11)] {
        let status =
            world.agtmux().args(["run", "sh", "-c", &format!("kill -{signal} $$")]).status().expect("agtmux starts");
        assert_eq!(status.signal(), Some(number), "{signal}: {status}");
    }
    let missing = run(world.agtmux().args(["run", "--", "no-such-program-at-all"]));
    assert_eq!(missing.code, Some(127));
    assert!(missing.stderr.contains("no-such-program-at-all") && missing.stderr.contains("try:"), "{}", missing.stderr);
    let file = world.home().join("no-program");
    fs::write(&file, "exit 0\n").expect("the world is writable");
    assert_eq!(run(world.agtmux().args(["run", "--"]).arg(&file)).code, Some(126));
}

#[test]
fn a_script_without_a_shebang_runs() {
    let world = world();
    world.install_script("plain", "echo \"$# $2\"; exit 3\n");
    world.install_script("foreign", "\u{7f}ELF\u{1}\u{1}\u{1}\u{0}\u{0}\necho never\n");
    let path = world.bin().join("plain");
    for program in ["plain", path.to_str().expect("plain")] {
        let done = run(world.agtmux().args(["run", "--", program, "-x", "two words"]));
        assert_eq!((done.code, done.text().as_str()), (Some(3), "2 two words\n"), "{program}: {}", done.stderr);
    }
    let foreign = run(world.agtmux().args(["run", "--", "foreign"]));
    assert_eq!(
        (foreign.code, foreign.text().as_str()),
        (Some(126), ""),
        "a binary for another machine is not run as a script"
    );
    assert!(foreign.stderr.contains("foreign"), "{}", foreign.stderr);
}

#[test]
fn start_and_exit_events_contain_no_arguments() {
    let world = world();
    let secret = "--prompt=keep-this-to-yourself";
    run(world.agtmux().args(["run", "--name", "reviewer", "--", "sh", "-c", "exit 3", secret]).env("TMUX_PANE", "%7"));
    let events = spooled_events(&world);
    let types: Vec<_> = events.iter().map(|e| (e["source"].as_str(), e["event_type"].as_str())).collect();
    assert_eq!(types, [(Some("wrapper"), Some("agent-started")), (Some("wrapper"), Some("agent-exited"))]);
    let pid = &events[0]["payload"]["pid"];
    assert_eq!(events[1]["payload"], json!({"program": "sh", "pid": pid, "name": "reviewer", "exit_code": 3}));
    assert_eq!((&events[0]["pane"], &events[0]["pid"]), (&json!("%7"), pid));
    assert!(!format!("{events:?}").contains("keep-this"));
    let mut killed = world.agtmux();
    killed.args(["run", "sh", "-c", "kill -KILL $$"]).status().expect("agtmux starts");
    assert_eq!(spooled_events(&world)[3]["payload"]["signal_name"], "SIGKILL");
}

#[test]
fn the_daemon_records_wrapper_events() {
    let world = world();
    let server = start_shell(&world);
    start(&world);
    let agent = world.shell_copy("claude");
    type_line(&server, &format!("{AGTMUX} run -- {} -c 'read x; exit 5'", agent.display()));
    let events = || -> Vec<(String, bool)> {
        let db = world.state_dir().join("state.db");
        let Ok(db) = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return Vec::new() };
        let Ok(mut query) =
            db.prepare("SELECT event_type, runtime_id IS NOT NULL FROM events WHERE source = 'wrapper'")
        else {
            return Vec::new();
        };
        query
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .map(|rows| rows.flatten().collect())
            .unwrap_or_default()
    };
    wait_for("the start event with its runtime", SOON, || {
        if events().contains(&("agent-started".into(), true)) { Ok(()) } else { Err(format!("{:?}", events())) }
    });
    type_line(&server, "go");
    wait_until("the end", SOON, || events().iter().any(|(event, _)| event == "agent-exited"));
    type_line(&server, "echo code=$?");
    wait_for_text(&server, "code=5");
}

#[test]
fn a_wrapped_program_has_the_terminal_and_job_control() {
    let world = world();
    let server = start_shell(&world);
    let pid_file = world.home().join("pid");
    let body = format!(
        "echo $$ > {}; trap 'echo caught-int' INT; trap 'echo size=$(stty size)' WINCH; \
                        [ -t 0 ] && echo on-a-terminal; while :; do read -r line && echo got=$line; done",
        pid_file.display()
    );
    let program = script(&world, "program", &body);
    type_line(&server, &format!("{AGTMUX} run -- {} ", program.display()));
    wait_for_text(&server, "on-a-terminal");
    let child: u32 = wait_for_file(&pid_file).parse().expect("a pid");
    let wrapper = process::parent(child).expect("the child has a parent");
    type_line(&server, "hello");
    wait_for_text(&server, "got=hello");
    server.run(&["send-keys", "-t", "%0", "C-c"]);
    wait_for_text(&server, "caught-int");
    server.run(&["resize-window", "-t", "work", "-x", "91", "-y", "17"]);
    type_line(&server, "after");
    wait_for_text(&server, "size=17 91");
    for round in 0..3 {
        server.run(&["send-keys", "-t", "%0", "C-z"]);
        wait_until("both to stop", SOON, || process::is_stopped(child) && process::is_stopped(wrapper));
        wait_until("the shell to say so", SOON, || screen(&server).matches("Stopped").count() > round);
        type_line(&server, &format!("echo stopped=$? shell={round}"));
        // 148 is 128 + SIGTSTP, the same as without agtmux.
        wait_for_text(&server, &format!("stopped=148 shell={round}"));
        type_line(&server, "fg");
        wait_until("both to continue", SOON, || !process::is_stopped(child) && !process::is_stopped(wrapper));
        type_line(&server, &format!("again{round}"));
        wait_for_text(&server, &format!("got=again{round}"));
    }
    assert!(process::signal(child, Signal::KILL), "the child is alive");
    wait_until("the wrapper to end as well", SOON, || !process::is_alive(wrapper));
    type_line(&server, "echo code=$?");
    wait_for_text(&server, "code=137");
}

#[test]
fn a_stopped_child_stops_the_whole_job() {
    let world = world();
    let server = start_shell(&world);
    let pid_file = world.home().join("pid");
    type_line(
        &server,
        &format!("{AGTMUX} run -- sh -c 'echo $$ > {}; while read -r x; do echo got=$x; done'", pid_file.display()),
    );
    let child: u32 = wait_for_file(&pid_file).parse().expect("a pid");
    assert!(process::signal(child, Signal::STOP), "the child is alive");
    wait_for_text(&server, "Stopped (signal)");
    type_line(&server, "echo shell=again");
    wait_for_text(&server, "shell=again");
    type_line(&server, "fg");
    wait_until("the child to continue", SOON, || !process::is_stopped(child));
    type_line(&server, "hello");
    wait_for_text(&server, "got=hello");
    server.run(&["send-keys", "-t", "%0", "C-d"]);
    wait_until("the child's end", SOON, || !process::is_alive(child));
    type_line(&server, "echo code=$?");
    wait_for_text(&server, "code=0");
}

#[test]
fn a_wrapper_without_a_shell_does_not_stop_itself() {
    let world = world();
    let server = world.tmux("default");
    let (pid_file, code_file) = (world.home().join("pid"), world.home().join("code"));
    // The shell writes the exit code, because tmux sometimes loses it.
    let save_code = format!("echo $? > {}", code_file.display());
    let command = format!("{AGTMUX} run -- sh -c 'echo $$ > {}; read x; exit 9'; {save_code}", pid_file.display());
    server.new_session("work", &command);
    let child: u32 = wait_for_file(&pid_file).parse().expect("a pid");
    let wrapper = process::parent(child).expect("the child has a parent");
    assert!(process::signal(child, Signal::STOP), "the child is alive");
    wait_until("the child to stop", SOON, || process::is_stopped(child));
    assert!(process::signal(child, Signal::CONT), "the child is alive");
    wait_until("the child to continue", SOON, || !process::is_stopped(child));
    type_line(&server, "x");
    wait_until("the wrapper's end", SOON, || !process::is_alive(wrapper));
    assert_eq!(wait_for_file(&code_file), "9");
}

#[test]
fn a_name_given_to_run_can_be_used_as_a_reference() {
    let world = world();
    let server = start_shell(&world);
    start(&world);
    let agent = world.shell_copy("claude");
    server.new_session("other", &world.fake_agent_command("claude"));
    type_line(&server, &format!("{AGTMUX} run --name reviewer -- {} -c 'read x; exit 5'", agent.display()));
    let named = wait_for("the name to be known", SOON, || {
        let done = run(world.agtmux().args(["explain", "reviewer", "--json"]));
        if done.code == Some(0) { Ok(done.json()) } else { Err(done.stderr) }
    });
    assert_eq!(named["pane_id"], "%0");
    wait_for("the name in the list", SOON, || {
        let listed = run(world.agtmux().args(["list", "panes"])).text();
        if listed.contains("claude reviewer") { Ok(()) } else { Err(listed) }
    });
    agtmux_testkit::agtmux::kill(agtmux_testkit::agtmux::pid(&world));
    start(&world);
    let again = run(world.agtmux().args(["list", "panes", "--json"])).json();
    let names: Vec<&Value> = agtmux_testkit::agtmux::items(&again).iter().map(|item| &item["name"]).collect();
    assert!(names.contains(&&json!("reviewer")), "the next daemon knows the name: {again}");
    type_line(&server, "x");
    wait_for("the name to be unknown again", SOON, || {
        let done = run(world.agtmux().args(["explain", "reviewer"]));
        if done.stderr.contains("no agent matches 'reviewer'") { Ok(()) } else { Err(done) }
    });
}
