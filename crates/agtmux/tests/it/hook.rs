//! `agtmux hook`, which agents call: it never fails, never blocks the agent, and loses no event.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, agtmux, script, start, stop, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stored_payloads;

/// The time limit for a hook. It is far longer than a hook needs, and far shorter than a blocked request would take.
const HOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// A pane with an agent that executes typed lines, in a world without a daemon.
fn world_with_agent() -> (TestWorld, TestTmuxServer) {
    let world = world();
    let agent = world.shell_copy("claude");
    let server = world.tmux("default");
    server.new_session("work", &format!("exec {} -c 'while read -r line; do eval \"$line\"; done'", agent.display()));
    (world, server)
}

/// Makes the agent in the pane call a hook with this payload on stdin.
fn call_hook_in_pane(world: &TestWorld, server: &TestTmuxServer, event: &str, payload: &Value) {
    call_hook_in_pane_through(world, server, "", event, payload);
}

/// Like `call_hook_in_pane`, but through a wrapper command.
fn call_hook_in_pane_through(world: &TestWorld, server: &TestTmuxServer, by: &str, event: &str, payload: &Value) {
    let file = world.home().join(format!("{event}.json"));
    fs::write(&file, payload.to_string()).expect("the world is writable");
    let line = format!("{by} {} hook claude {event} < {}", env!("CARGO_BIN_EXE_agtmux"), file.display());
    server.run(&["send-keys", "-t", "%0", "-l", &line]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
}

#[derive(Debug, PartialEq)]
struct StoredEventRow {
    event_type: String,
    source: String,
    bound: bool,
    event: Value,
}

fn stored_events(world: &TestWorld) -> Vec<StoredEventRow> {
    let Ok(db) = Connection::open_with_flags(world.state_dir().join("state.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)
    else {
        return Vec::new();
    };
    let read = || -> rusqlite::Result<Vec<StoredEventRow>> {
        let mut query =
            db.prepare("SELECT event_type, source, runtime_id, payload FROM events ORDER BY ingested_at, rowid")?;
        let rows = query.query_map([], |row| {
            let payload = stored_payloads::payload(row, 3)?;
            Ok(StoredEventRow {
                event_type: row.get(0)?,
                source: row.get(1)?,
                bound: row.get::<_, Option<String>>(2)?.is_some(),
                event: payload.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default(),
            })
        })?;
        rows.collect()
    };
    read().unwrap_or_default()
}

fn spool_files(world: &TestWorld) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(world.state_dir().join("spool")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Waits until the spool has this many events. A background process writes them after the hook has returned.
#[track_caller]
fn wait_for_spooled(world: &TestWorld, count: usize) -> Vec<PathBuf> {
    wait_for(&format!("{count} events in the spool"), SOON, || {
        let files: Vec<PathBuf> =
            spool_files(world).into_iter().filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
        if files.len() == count { Ok(files) } else { Err(format!("{files:?}")) }
    })
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("readable")).expect("JSON")
}

/// Runs a hook with this stdin. With `keep_open`, stdin is not closed after the text. The hook must exit quickly with
/// code 0 and print nothing.
#[track_caller]
fn run_quiet(command: &mut Command, stdin: &[u8], keep_open: bool) -> Duration {
    let began = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let (pid, stdin) = (child.id(), stdin.to_vec());
    let writer = thread::spawn(move || -> Option<ChildStdin> {
        let _ = pipe.write_all(&stdin);
        keep_open.then_some(pipe)
    });
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let output: Output = ended
        .recv_timeout(HOOK_TIMEOUT)
        .unwrap_or_else(|_| {
            process::signal(pid, Signal::KILL);
            panic!("{command:?} did not end within {HOOK_TIMEOUT:?}")
        })
        .expect("the output can be read");
    let took = began.elapsed();
    drop(writer.join());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "agents read the hook's stdout: {}", String::from_utf8_lossy(&output.stdout));
    took
}

fn hook_command(world: &TestWorld, args: &[&str]) -> Command {
    let mut command = world.agtmux();
    command.arg("hook").args(args).env("TMUX_PANE", "%0");
    command
}

#[test]
fn an_event_names_its_origin_and_contains_no_environment() {
    let (world, server) = world_with_agent();
    server.run(&["send-keys", "-t", "%0", "-l", "export SECRET_OF_THE_AGENT=do-not-tell; cd /tmp"]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    start(&world);
    call_hook_in_pane(&world, &server, "UserPromptSubmit", &json!({"session_id": "s1", "prompt": "hello"}));
    let row = wait_for("the event to be bound", SOON, || {
        stored_events(&world).into_iter().find(|row| row.bound).ok_or(stored_events(&world))
    });
    let event = &row.event;
    assert_eq!((row.event_type.as_str(), row.source.as_str()), ("UserPromptSubmit", "hook"));
    assert_eq!((&event["agent_type"], &event["pane"], &event["cwd"]), (&json!("claude"), &json!("%0"), &json!("/tmp")));
    assert_eq!(event["socket"], json!(server.socket()));
    assert_eq!(event["payload"], json!({"session_id": "s1", "prompt": "hello"}));
    assert!(event["event_time"].is_string() && event["dedupe_key"].is_string(), "{event}");
    let pids = event["pids"].as_array().expect("pids");
    assert_eq!(pids.first(), Some(&json!(server.panes()[0].pid)), "the nearest process first: {pids:?}");
    assert!(pids.contains(&json!(server.pid())), "up to the tmux server: {pids:?}");
    assert!(!event.to_string().contains("do-not-tell") && !event.to_string().contains("AGTMUX_WORLD"), "{event}");
    assert_eq!(spool_files(&world), Vec::<PathBuf>::new(), "the event was delivered directly");
}

/// The listed state and agent id of the only agent.
fn listed_state(world: &TestWorld) -> Value {
    let listed = agtmux(world, &["list", "panes", "--json"]).json();
    let item = agtmux_testkit::agtmux::items(&listed).first().cloned().unwrap_or_default();
    json!({"state": item["state"], "agent_id": item["agent_id"]})
}

#[track_caller]
fn wait_for_state(world: &TestWorld, state: &str) -> Value {
    wait_for(state, SOON, || {
        let known = listed_state(world);
        if known["state"] == state { Ok(known) } else { Err(format!("{known} {:?}", stored_events(world))) }
    })
}

/// A shell line that calls a hook like an agent, without consuming the script's stdin.
fn hook_call_line(world: &TestWorld, event: &str, payload: &Value) -> String {
    let file = world.home().join(format!("{}-{event}.json", payload["session_id"].as_str().expect("a session")));
    fs::write(&file, payload.to_string()).expect("the world is writable");
    format!("sh -c 'exec {} hook claude {event} < {}'\n", env!("CARGO_BIN_EXE_agtmux"), file.display())
}

/// Makes the agent run a nested agent that calls hooks for its own session.
fn run_nested_agent(world: &TestWorld, server: &TestTmuxServer, by: &str, session: &str) {
    let calls = hook_call_line(world, "SessionStart", &json!({"session_id": session, "source": "resume"}))
        + &hook_call_line(world, "UserPromptSubmit", &json!({"session_id": session, "prompt": "go"}))
        + &hook_call_line(world, "Stop", &json!({"session_id": session, "background_tasks": []}));
    let script = world.home().join(format!("{session}.sh"));
    fs::write(&script, calls).expect("the world is writable");
    let line = by.replace("NESTED", &format!("{} {}", world.shell_copy("claude").display(), script.display()));
    server.run(&["send-keys", "-t", "%0", "-l", &line]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    wait_for("the last hook of the nested agent", SOON, || {
        let found = |row: &StoredEventRow| row.event_type == "Stop" && row.event["payload"]["session_id"] == session;
        if stored_events(world).iter().any(found) { Ok(()) } else { Err(stored_events(world)) }
    });
}

#[test]
fn hooks_of_a_nested_agent_do_not_affect_the_outer_agent() {
    let (world, server) = world_with_agent();
    start(&world);
    call_hook_in_pane(&world, &server, "UserPromptSubmit", &json!({"session_id": "outer", "prompt": "go"}));
    let before = wait_for_state(&world, "running");
    // The nested agent runs as a child of a tool's shell, and in place of that shell (with `exec`).
    for (session, by) in
        [("within-a-shell", "sh -c 'NESTED; true'"), ("in-its-place", "sh -c 'exec NESTED < /dev/null'")]
    {
        run_nested_agent(&world, &server, by, session);
        assert_eq!(listed_state(&world), before, "{session}");
        let is_nested = |row: &StoredEventRow| row.event["payload"]["session_id"] == session;
        assert!(
            stored_events(&world).iter().filter(|row| is_nested(row)).all(|row| !row.bound),
            "{session}: {:?}",
            stored_events(&world)
        );
    }
    call_hook_in_pane(&world, &server, "Stop", &json!({"session_id": "outer", "background_tasks": []}));
    assert_eq!(wait_for_state(&world, "completed")["agent_id"], before["agent_id"]);
}

#[test]
fn a_launcher_and_its_agent_are_one_runtime() {
    let world = world();
    let agent = world.shell_copy("claude");
    let server = world.tmux("default");
    let inner = world.home().join("inner.sh");
    fs::write(&inner, "while read -r line; do eval \"$line\"; done").expect("the world is writable");
    server.new_session("work", &format!("exec {0} -c '{0} {1}; true'", agent.display(), inner.display()));
    start(&world);
    let line = hook_call_line(&world, "UserPromptSubmit", &json!({"session_id": "s", "prompt": "go"}));
    server.run(&["send-keys", "-t", "%0", "-l", line.trim_end()]);
    server.run(&["send-keys", "-t", "%0", "Enter"]);
    wait_for_state(&world, "running");
}

/// A hook has no pane if its environment was cleaned, or if it runs in an agent server started outside of tmux.
#[test]
fn a_hook_without_a_pane_is_bound_by_its_process() {
    let (world, server) = world_with_agent();
    let other = server.new_session("other", &world.fake_agent_command("claude"));
    start(&world);
    let payload = json!({"session_id": "s1", "background_tasks": []});
    call_hook_in_pane_through(&world, &server, "env -u TMUX -u TMUX_PANE", "Stop", &payload);
    let state = |pane: &str| {
        let listed = agtmux(&world, &["list", "panes", "--json"]).json();
        agtmux_testkit::agtmux::items(&listed)
            .iter()
            .find(|item| item["identity"]["pane_id"] == pane)
            .map(|item| item["state"].clone())
    };
    wait_for("the end of the turn", SOON, || {
        if state("%0") == Some(json!("completed")) {
            Ok(())
        } else {
            Err(format!("{:?} {:?}", state("%0"), stored_events(&world)))
        }
    });
    assert!(state(&other).is_some_and(|state| state != "completed"), "the other agent is unchanged");
    let row = stored_events(&world).into_iter().find(|row| row.event_type == "Stop").expect("the event is stored");
    assert_eq!((&row.event["pane"], &row.event["socket"]), (&Value::Null, &Value::Null));
    // This caller has no agent among its ancestors.
    let unrelated = payload.to_string();
    run_quiet(hook_command(&world, &["claude", "SubagentStop"]).env_remove("TMUX_PANE"), unrelated.as_bytes(), false);
    let row = wait_for("the unrelated event", SOON, || {
        stored_events(&world).into_iter().find(|row| row.event_type == "SubagentStop").ok_or(stored_events(&world))
    });
    assert!(!row.bound, "a known session id is not enough: {row:?}");
}

#[test]
fn the_hook_command_exits_silently_in_every_case() {
    let world = world();
    let payload = br#"{"session_id": "s"}"#;
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), payload, false);
    assert_eq!(
        read_json(&wait_for_spooled(&world, 1)[0])["payload"],
        json!({"session_id": "s"}),
        "without a daemon the event is spooled"
    );
    assert_eq!(world.daemons(), Vec::<u32>::new(), "a hook starts no daemon");
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"", false);
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"no json \xff\0", false);
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"", true);
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"{\"half\":", true);
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), payload, true);
    assert_eq!(
        read_json(&wait_for_spooled(&world, 6)[5])["payload"],
        json!({"session_id": "s"}),
        "complete JSON needs no end of input"
    );
    run_quiet(&mut hook_command(&world, &["unknown", "Nothing", "more", "words"]), payload, false);
    for words in [&[][..], &["claude"], &["--nonsense"]] {
        run_quiet(&mut hook_command(&world, words), b"", false);
    }
    let huge = format!("{{\"session_id\": \"s\", \"tool_response\": \"{}\", \"last\": 1}}", "x".repeat(3 << 20));
    run_quiet(&mut hook_command(&world, &["claude", "PostToolUse"]), huge.as_bytes(), false);
    let largest = read_json(wait_for_spooled(&world, 8).last().expect("the event is spooled"));
    assert_eq!(largest["payload"], json!({"session_id": "s", "agtmux": {"truncated": true}}));
    let file = world.home().join("a-file");
    fs::write(&file, "").expect("the world is writable");
    run_quiet(hook_command(&world, &["claude", "Stop"]).env("AGTMUX_STATE_DIR", file.join("below")), payload, false);
    run_quiet(hook_command(&world, &["claude", "Stop"]).env("AGTMUX_STATE_DIR", "relative"), payload, false);
    run_quiet(hook_command(&world, &["claude", "Stop"]).env("AGTMUX_SOCKET", &file), payload, false);
    run_quiet(hook_command(&world, &["claude", "Stop"]).env_clear(), payload, false);
    for path in spool_files(&world) {
        assert_eq!(fs::metadata(&path).expect("the file exists").permissions().mode() & 0o777, 0o600);
    }
    let dir = fs::metadata(world.state_dir().join("spool")).expect("the file exists");
    assert_eq!(dir.permissions().mode() & 0o777, 0o700);
}

/// Reads one whole request and answers with this status.
fn answer_once(listener: &UnixListener, status: u16) {
    let (mut stream, _) = listener.accept().expect("a caller");
    let mut request = BufReader::new(stream.try_clone().expect("cloned"));
    let head: Vec<String> =
        request.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).expect("a length");
    request.take(length).read_to_end(&mut Vec::new()).expect("a body");
    // The hook may close the connection before it reads the whole response.
    let _ = stream.write_all(format!("HTTP/1.1 {status} Told\r\ncontent-length: 0\r\n\r\n").as_bytes());
}

#[test]
fn an_event_is_spooled_when_the_daemon_answers_5xx() {
    let world = world();
    fs::create_dir_all(world.socket().parent().expect("a directory")).expect("made");
    let listener = UnixListener::bind(world.socket()).expect("bound");
    for status in [500, 503, 504] {
        thread::scope(|scope| {
            scope.spawn(|| answer_once(&listener, status));
            run_quiet(&mut hook_command(&world, &["claude", &format!("Event{status}")]), b"{}", false);
        });
    }
    let event_types: Vec<Value> =
        wait_for_spooled(&world, 3).iter().map(|path| read_json(path)["event_type"].clone()).collect();
    assert_eq!(event_types, ["Event500", "Event503", "Event504"]);
}

#[test]
fn a_hung_daemon_does_not_block_hooks_and_gets_each_event_once() {
    let (world, server) = world_with_agent();
    let daemon = start(&world);
    wait_for("the agent", SOON, || agtmux(&world, &["list", "--json"]).text().contains("claude").then_some(()));
    assert!(process::signal(daemon, Signal::STOP), "the daemon runs");
    wait_until("the daemon to hang", SOON, || process::is_stopped(daemon));
    for n in 0..3 {
        call_hook_in_pane(&world, &server, &format!("Event{n}"), &json!({"n": n}));
        wait_for("the event in the spool", SOON, || (spool_files(&world).len() == n + 1).then_some(()));
    }
    run_quiet(&mut hook_command(&world, &["claude", "Direct"]), b"{}", false);
    assert!(process::signal(daemon, Signal::CONT), "the daemon runs");
    wait_for("the spool to be empty", SOON, || spool_files(&world).is_empty().then_some(()));
    let stored_count =
        |name: &str| stored_events(&world).iter().filter(|row| row.event_type == name && row.bound).count();
    wait_until("all events", SOON, || (0..3).all(|n| stored_count(&format!("Event{n}")) > 0));
    // The daemon receives each event twice: from the spool, and from a request that waited in its socket. The dedupe
    // key drops the second copy.
    agtmux(&world, &["list"]);
    assert_eq!((0..3).map(|n| stored_count(&format!("Event{n}"))).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn spooled_events_are_delivered_when_the_daemon_starts() {
    let (world, server) = world_with_agent();
    for n in 0..3 {
        call_hook_in_pane(
            &world,
            &server,
            &format!("Event{n}"),
            &json!({"n": n, "key": "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1111222233334444"}),
        );
        wait_for("the event in the spool", SOON, || (spool_files(&world).len() == n + 1).then_some(()));
    }
    let files = wait_for_spooled(&world, 3);
    for path in &files {
        assert!(!fs::read_to_string(path).expect("readable").contains("sk-ant-api03-AAAA"), "secrets are not spooled");
    }
    let bad = files[0].with_file_name("00000000000000000001-bad.json");
    fs::write(&bad, "no event").expect("written");
    fs::write(files[0].with_file_name(".draft.tmp"), "half").expect("written");
    start(&world);
    wait_for("all events, in their order", SOON, || {
        let types: Vec<String> =
            stored_events(&world).into_iter().filter(|r| r.bound).map(|row| row.event_type).collect();
        if types == ["Event0", "Event1", "Event2"] { Ok(()) } else { Err(format!("{:?}", stored_events(&world))) }
    });
    let left = |world: &TestWorld| {
        spool_files(world).into_iter().filter(|path| path.extension().is_some_and(|e| e == "json")).count()
    };
    wait_until("the spool to be empty", SOON, || left(&world) == 0);
    assert!(
        bad.with_file_name("bad").join(bad.file_name().expect("a name")).exists(),
        "the invalid file is moved to bad/"
    );
    stop(&world);
    run_quiet(&mut hook_command(&world, &["claude", "Late"]), b"{}", false);
    wait_for_spooled(&world, 1);
    start(&world);
    wait_until("the late event to be delivered", SOON, || left(&world) == 0);
}

/// A cleanup tool may delete the spool. The daemon, or the next hook that cannot deliver, creates it again.
#[test]
fn a_removed_spool_is_recreated_and_watched() {
    let (world, _server) = world_with_agent();
    start(&world);
    let spool = world.state_dir().join("spool");
    for round in 0..3 {
        fs::remove_dir_all(&spool).expect("the spool exists");
        wait_until("the spool", SOON, || spool.is_dir());
        let event = json!({"source": "hook", "agent_type": "claude", "pane": "%0", "event_type": format!("Round{round}"),
            "dedupe_key": format!("round-{round}"), "payload": {}});
        let draft = spool.join(".draft.tmp");
        fs::write(&draft, event.to_string()).expect("written");
        let kept = spool.join(format!("{round:020}-kept.json"));
        fs::rename(draft, &kept).expect("renamed");
        wait_until("the event to be delivered", SOON, || !kept.exists());
        let types: Vec<String> = stored_events(&world).into_iter().map(|row| row.event_type).collect();
        assert!(types.contains(&format!("Round{round}")), "{types:?}");
    }
}

#[test]
fn the_spool_is_limited_in_files_and_bytes() {
    let world = world();
    let spool = world.state_dir().join("spool");
    fs::create_dir_all(&spool).expect("made");
    for n in 0..1000 {
        fs::write(spool.join(format!("{n:020}-old.json")), "{}").expect("written");
    }
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"{}", false);
    let oldest = |n: u32| spool.join(format!("{n:020}-old.json"));
    wait_until("the oldest file to be removed", SOON, || !oldest(0).exists());
    assert_eq!((wait_for_spooled(&world, 1000).len(), oldest(1).exists()), (1000, true));
    fs::write(spool.join(format!("{:020}-large.json", 0)), vec![b' '; 17 << 20]).expect("written");
    run_quiet(&mut hook_command(&world, &["claude", "Stop"]), b"{}", false);
    wait_until("the oversized file to be removed", SOON, || !spool.join(format!("{:020}-large.json", 0)).exists());
}

#[test]
fn codex_notify_also_runs_the_previous_notify_program() {
    let world = world();
    let record = world.home().join("arguments");
    let previous =
        script(&world, "previous", &format!("printf '%s\\n' \"$#\" \"$@\" > {}.new; mv {0}.new {0}", record.display()));
    let notification = json!({"type": "agent-turn-complete", "thread-id": "t 'x' \"y\""}).to_string();
    let previous = previous.to_str().expect("plain");
    run_quiet(
        &mut hook_command(&world, &["codex", "notify", "--then", previous, "-a", "two words", &notification]),
        b"",
        true,
    );
    let arguments = wait_for("the previous notify program", SOON, || fs::read_to_string(&record).ok());
    assert_eq!(arguments, format!("3\n-a\ntwo words\n{notification}\n"));
    run_quiet(&mut hook_command(&world, &["codex", "notify", &notification]), b"", true);
    run_quiet(&mut hook_command(&world, &["codex", "notify", "--then", "/does/not/exist", &notification]), b"", false);
    run_quiet(&mut hook_command(&world, &["codex", "notify"]), b"", true);
    for event in wait_for_spooled(&world, 3).iter().map(|path| read_json(path)) {
        assert_eq!((&event["source"], &event["event_type"]), (&json!("notify"), &json!("agent-turn-complete")));
        assert_eq!((&event["agent_type"], event["payload"].to_string()), (&json!("codex"), notification.clone()));
    }
}

#[test]
fn the_gemini_transcript_shows_how_the_turn_ended() {
    let world = world();
    let transcript = world.home().join("chat.jsonl");
    let records = [
        json!({"type": "user", "content": [{"text": "SLOW 15"}]}),
        json!({"$set": {}}),
        json!({"type": "info", "content": "Request cancelled."}),
    ];
    fs::write(&transcript, records.map(|record| format!("{record}\n")).concat()).expect("written");
    let payload = json!({"hook_event_name": "AfterAgent", "transcript_path": transcript}).to_string();
    for event in ["AfterAgent", "BeforeAgent"] {
        run_quiet(&mut hook_command(&world, &["gemini", event]), payload.as_bytes(), false);
    }
    let added: Vec<Value> =
        wait_for_spooled(&world, 2).iter().map(|path| read_json(path)["payload"]["agtmux"].clone()).collect();
    assert_eq!(added[0]["last_record"], json!({"type": "info", "text": "Request cancelled."}));
    assert_eq!(added[1], Value::Null, "other hooks do not read the transcript");
}

/// Prints the time and CPU cost of a hook. The values depend on the machine, so nothing is asserted.
#[test]
fn print_the_cost_of_a_hook() {
    let world = world();
    start(&world);
    let me = std::process::id();
    let measure = |name: &str, command: &dyn Fn() -> Command| {
        let before = process::cpu_time_with_children(me).unwrap_or_default();
        let mut took: Vec<Duration> =
            (0..50).map(|_| run_quiet(&mut command(), br#"{"session_id":"s"}"#, false)).collect();
        took.sort();
        let cpu = process::cpu_time_with_children(me).unwrap_or_default().saturating_sub(before);
        println!("{name}: median {:?}, slowest {:?}, cpu with its start {:?} each", took[25], took[49], cpu / 50);
    };
    measure("true", &|| world.command("true"));
    measure("hook, daemon there", &|| hook_command(&world, &["claude", "Stop"]));
    stop(&world);
    measure("hook, no daemon", &|| hook_command(&world, &["claude", "Stop"]));
}
