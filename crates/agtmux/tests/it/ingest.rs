//! Posted events: accepted once, never lost after the acknowledgement, stored without secrets.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::{SOON, agtmux, items, kill, list, soak, start, stop, world};
use agtmux_testkit::http::{HttpResponse, request, send, send_then_close};
use agtmux_testkit::{TestWorld, wait_for};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::stored_payloads::stored_payloads;

/// A world with one agent. Returns the world and the runtime id.
fn world_with_agent() -> (TestWorld, String) {
    let world = world();
    world.tmux("default").new_session("work", &world.fake_agent_command("claude"));
    start(&world);
    let runtime = wait_for("the agent", SOON, || agent(&world).map(|item| text(&item["runtime_id"])));
    (world, runtime)
}

fn agent(world: &TestWorld) -> Option<Value> {
    items(&list(world)).iter().find(|item| item["agent_type"] == "claude").cloned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn state(world: &TestWorld) -> String {
    agent(world).map(|item| text(&item["state"])).unwrap_or_default()
}

fn post(socket: &Path, body: &[u8]) -> Option<HttpResponse> {
    let mut bytes = request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len()));
    bytes.extend_from_slice(body);
    send(socket, &bytes)
}

fn event(runtime: &str, event_type: &str, key: &str) -> Value {
    json!({"runtime_id": runtime, "source": "hook", "event_type": event_type, "dedupe_key": key})
}

#[track_caller]
fn post_accepted(world: &TestWorld, event: &Value) -> Value {
    let answer = post(&world.socket(), event.to_string().as_bytes()).expect("an answer");
    assert_eq!(answer.status, 202, "{}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

#[test]
fn an_emitted_event_sets_the_state_and_can_be_explained() {
    let (world, runtime) = world_with_agent();
    let emit = |event_type: &str, key: &str| {
        let args = ["emit", "--server", "default", "--pane", "%0", "--agent", "claude", "--source", "hook"];
        agtmux(&world, &[&args[..], &["--event-type", event_type, "--dedupe-key", key, "--json"]].concat()).json()
    };
    let receipt = emit("running", "k1");
    assert_eq!((text(&receipt["status"]), text(&receipt["runtime_id"])), ("bound".into(), runtime.clone()));
    assert_eq!(state(&world), "running");
    assert_eq!(emit("running", "k1")["status"], "duplicate");
    emit("waiting_approval", "k2");
    assert_eq!(agent(&world).expect("the agent")["needs_action"], true);
    let why = agtmux(&world, &["explain", "%0", "--json"]).json();
    assert_eq!(
        (why["state"].as_str(), why["candidates"].as_array().map(Vec::len)),
        (Some("waiting_approval"), Some(2))
    );
    let history = agtmux(&world, &["history", &format!("runtime:{runtime}"), "--json"]).json();
    assert_eq!(states(&history), ["unknown", "running", "waiting_approval"]);
    assert!(agtmux(&world, &["explain", "%0"]).text().contains("waiting_approval"));
    assert!(agtmux(&world, &["history", "claude"]).text().contains("running"));
}

#[test]
fn bad_events_are_refused_with_a_code_and_change_nothing() {
    let (world, runtime) = world_with_agent();
    post_accepted(&world, &event(&runtime, "running", "k"));
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let huge = vec![b'x'; (1 << 20) + 10];
    let strange = |field: &str, value: Value| {
        let mut event = event(&runtime, "idle", "other");
        event[field] = value;
        event.to_string().into_bytes()
    };
    let cases: Vec<(Vec<u8>, u16, &str)> = vec![
        (b"".to_vec(), 400, "E_BAD_REQUEST"),
        (b"{\"source\":".to_vec(), 400, "E_BAD_REQUEST"),
        (b"[1,2]".to_vec(), 400, "E_BAD_REQUEST"),
        (b"{\"a\":\"\xff\xfe\"}".to_vec(), 400, "E_BAD_REQUEST"),
        (deep.into_bytes(), 400, "E_BAD_REQUEST"),
        (huge, 413, "E_TOO_LARGE"),
        (strange("source", json!("gossip")), 400, "E_BAD_REQUEST"),
        (strange("event_type", json!("")), 400, "E_BAD_REQUEST"),
        (strange("dedupe_key", json!("k".repeat(600))), 400, "E_BAD_REQUEST"),
        (strange("dedupe_key", Value::Null), 400, "E_BAD_REQUEST"),
        (strange("event_time", json!("yesterday")), 400, "E_BAD_REQUEST"),
        (strange("runtime_id", json!("unknown")), 404, "E_RUNTIME_NOT_FOUND"),
        (strange("dedupe_key", json!("k")), 409, "E_IDEMPOTENCY_CONFLICT"),
        (json!({"source": "hook", "event_type": "idle", "dedupe_key": "x"}).to_string().into(), 400, "E_BAD_REQUEST"),
        (
            json!({"pane": "0", "source": "hook", "event_type": "idle", "dedupe_key": "x"}).to_string().into(),
            400,
            "E_BAD_REQUEST",
        ),
    ];
    for (body, status, code) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let answer = post(&world.socket(), &body).unwrap_or_else(|| panic!("no answer to {shown}"));
        let error = answer.json();
        assert_eq!((answer.status, error["code"].as_str()), (status, Some(code)), "{shown}: {error}");
        assert!(error["hint"].is_string(), "{shown}: {error}");
    }
    assert_eq!(state(&world), "running");
    let day_off = strange("event_time", json!("2031-01-01T00:00:00Z"));
    assert_eq!(post(&world.socket(), &day_off).expect("an answer").status, 202, "a wrong event_time is ignored");
    assert_eq!(state(&world), "idle");
    let unknown = event(&runtime, "something-new", "later");
    post_accepted(&world, &unknown);
    assert_eq!(state(&world), "idle", "an event of an unknown type does not change the state");
}

#[test]
fn secrets_are_not_stored_and_unknown_fields_are() {
    let (world, runtime) = world_with_agent();
    let secret = "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1111222233334444";
    let mut event = event(&runtime, "running", "k");
    event["payload"] = json!({"prompt": format!("use {secret} please"), "password": "hunter2hunter2"});
    event["extra_field"] = json!("kept-as-it-is");
    post_accepted(&world, &event);
    stop(&world);
    let mut stored = Vec::new();
    for entry in std::fs::read_dir(world.state_dir()).expect("the state directory").flatten() {
        stored.extend(std::fs::read(entry.path()).unwrap_or_default());
    }
    let payloads = stored_payloads(&world).concat();
    assert!(payloads.contains("kept-as-it-is"), "unknown fields are stored");
    let stored = payloads + &String::from_utf8_lossy(&stored);
    for gone in [secret, "hunter2hunter2"] {
        assert!(!stored.contains(gone), "{gone} was stored");
    }
}

#[test]
fn a_large_event_is_stored_with_its_secrets_redacted() {
    let (world, runtime) = world_with_agent();
    let secret = |n: u32| format!("ghp_{n:036}");
    let mut event = event(&runtime, "running", "k");
    event["payload"] = json!({"lines": (0..20_000).map(|n| format!("token {}", secret(n))).collect::<Vec<_>>()});
    assert!((900_000..1 << 20).contains(&event.to_string().len()), "{}", event.to_string().len());
    post_accepted(&world, &event);
    assert_eq!(state(&world), "running");
    let payload = stored_payloads(&world).concat();
    assert_eq!(payload.matches("[redacted:").count(), 20_000);
    assert!(!payload.contains("ghp_"));
}

#[test]
fn an_incomplete_body_changes_nothing() {
    let (world, runtime) = world_with_agent();
    let body = event(&runtime, "running", "k").to_string();
    let mut cut = request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len() + 10));
    cut.extend_from_slice(body.as_bytes());
    let mut garbled =
        b"POST /v1/events HTTP/1.1\r\nhost: agtmux\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".to_vec();
    garbled.extend_from_slice(format!("{:x}\r\n{body}\r\nno number\r\n", body.len()).as_bytes());
    for bytes in [cut, garbled] {
        if let Some(answer) = send_then_close(&world.socket(), &bytes) {
            let error = answer.json();
            assert_eq!((answer.status, error["code"].as_str()), (400, Some("E_BAD_REQUEST")), "{error}");
        }
    }
    assert_eq!(state(&world), "unknown");
    post_accepted(&world, &event(&runtime, "running", "k"));
}

/// The states of a history in order. Equal states in a row are returned once: the history repeats `unknown` if its
/// reason changes.
fn states(history: &Value) -> Vec<String> {
    let mut states: Vec<String> =
        history["items"].as_array().expect("items").iter().map(|item| text(&item["state"])).collect();
    states.dedup();
    states
}

#[test]
fn history_since_shows_only_later_changes() {
    let (world, runtime) = world_with_agent();
    post_accepted(&world, &event(&runtime, "running", "k1"));
    let since = |since: &str| states(&agtmux(&world, &["history", "claude", "--since", since, "--json"]).json());
    assert_eq!(since("1h"), ["unknown", "running"]);
    let all = agtmux(&world, &["history", "claude", "--json"]).json();
    let last = text(&all["items"].as_array().and_then(|items| items.last()).expect("an item")["at"]);
    assert_eq!(since(&last), ["running"], "--since is inclusive");
    assert_eq!(since("2100-01-01T00:00:00Z"), Vec::<String>::new());
    post_accepted(&world, &event(&runtime, "waiting_input", "k2"));
    assert_eq!(since(&last), ["running", "waiting_input"]);
    let wrong = agtmux(&world, &["history", "claude", "--since", "yesterday"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("such as 10m"), "{}", wrong.stderr);
}

/// Checks that late events of the ended runtime do not change the new runtime in the same pane.
#[track_caller]
fn assert_runtimes_are_separate(world: &TestWorld, old: &Value, new: &Value) {
    let place = |item: &Value| (text(&item["identity"]["server"]), text(&item["identity"]["pane_id"]));
    assert_eq!(place(old), place(new));
    let old_id = text(&old["runtime_id"]);
    let refused = post(&world.socket(), event(&old_id, "running", "late").to_string().as_bytes()).expect("an answer");
    assert_eq!((refused.status, refused.json()["code"].as_str()), (404, Some("E_RUNTIME_NOT_FOUND")));
    let now = agent(world).expect("the new agent");
    assert_eq!((text(&now["runtime_id"]), text(&now["state"])), (text(&new["runtime_id"]), "unknown".into()));
    post_accepted(world, &event(&text(&new["runtime_id"]), "idle", "new"));
    assert_eq!(state(world), "idle");
    let before = agtmux(world, &["history", &format!("runtime:{old_id}"), "--json"]).json();
    assert_eq!(states(&before), ["unknown", "running"], "the old runtime keeps its history");
}

fn wait_for_new_runtime(world: &TestWorld, old: &Value) -> Value {
    wait_for("another agent in the pane", SOON, || agent(world).filter(|new| new["runtime_id"] != old["runtime_id"]))
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_pane_respawn() {
    let (world, runtime) = world_with_agent();
    post_accepted(&world, &event(&runtime, "running", "k"));
    let old = agent(&world).expect("the agent");
    world.tmux("default").run(&["respawn-pane", "-k", "-t", "%0", &world.fake_agent_command("claude")]);
    let new = wait_for_new_runtime(&world, &old);
    assert_runtimes_are_separate(&world, &old, &new);
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_server_restart_same_pane_id() {
    let (world, runtime) = world_with_agent();
    post_accepted(&world, &event(&runtime, "running", "k"));
    let old = agent(&world).expect("the agent");
    let server = world.tmux("default");
    server.kill_server();
    server.new_session("work", &world.fake_agent_command("claude"));
    let new = wait_for_new_runtime(&world, &old);
    assert_runtimes_are_separate(&world, &old, &new);
}

#[test]
fn events_of_an_ended_runtime_never_touch_the_new_one_two_servers() {
    let (world, _) = world_with_agent();
    world.tmux("other").new_session("work", &world.fake_agent_command("claude"));
    let state_on = |server: &str| {
        let listing = list(&world);
        let found =
            items(&listing).iter().find(|item| item["identity"]["server"] == server && !item["state"].is_null());
        found.map(|item| text(&item["state"]))
    };
    wait_for("the agent on the other server", SOON, || state_on("other"));
    let about = |server: &str, key: &str| json!({"pane": "%0", "server": server, "source": "hook", "event_type": "running", "dedupe_key": key});
    assert_eq!(post_accepted(&world, &about("other", "k1"))["status"], "bound");
    assert_eq!((state_on("other"), state_on("default")), (Some("running".into()), Some("unknown".into())));
    let other = world.tmux("other");
    other.run(&["kill-server"]);
    wait_for("the end of the other agent", SOON, || state_on("other").is_none().then_some(()));
    assert_eq!(post_accepted(&world, &about("other", "k2"))["status"], "pending_bind");
    assert_eq!(state_on("default"), Some("unknown".into()));
}

#[test]
fn an_event_for_an_unknown_pane_is_pending() {
    let (world, _) = world_with_agent();
    let waiting = json!({"pane": "%99", "source": "hook", "event_type": "running", "dedupe_key": "k"});
    assert_eq!(post_accepted(&world, &waiting)["status"], "pending_bind");
    assert_eq!(state(&world), "unknown");
}

/// Posts events until `over` is set, and records the acknowledged ones.
fn send_until_stopped(
    socket: &Path,
    runtime: &str,
    next: &AtomicU64,
    acknowledged: &Mutex<Vec<u64>>,
    over: &AtomicBool,
) {
    while !over.load(Ordering::Relaxed) {
        let n = next.fetch_add(1, Ordering::Relaxed);
        let kind = ["running", "waiting_input", "completed", "idle", "error"][usize::try_from(n % 5).expect("small")];
        let mut event = event(runtime, kind, &format!("k{n}"));
        event["source_seq"] = json!(n);
        if post_quietly(socket, &event) == Some(202) {
            acknowledged.lock().expect("no panic").push(n);
        }
    }
}

/// Posts an event. Returns None if the daemon dies meanwhile.
fn post_quietly(socket: &Path, event: &Value) -> Option<u16> {
    use std::io::{Read, Write};
    let body = event.to_string();
    let mut bytes = request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len()));
    bytes.extend_from_slice(body.as_bytes());
    let mut stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    stream.write_all(&bytes).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    String::from_utf8_lossy(&answer).split(' ').nth(1)?.parse().ok()
}

/// The number of concurrent senders. Together they send more events per second than the daemon could store with one
/// commit per event. The test prints the rate.
const SENDERS: usize = 4;

#[test]
fn kill_9_loses_no_acknowledged_event() {
    let (world, runtime) = world_with_agent();
    let (acknowledged, next) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let kills = if soak() { 200 } else { 20 };
    let mut sending_for = Duration::ZERO;
    for round in 0..kills {
        let daemon = if round == 0 { agtmux_testkit::agtmux::pid(&world) } else { start(&world) };
        let over = AtomicBool::new(false);
        let count = || acknowledged.lock().expect("no panic").len();
        let enough = count() + 20 + (round * 37) % 400;
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..SENDERS {
                scope.spawn(|| send_until_stopped(&world.socket(), &runtime, &next, &acknowledged, &over));
            }
            wait_for("some events to be acknowledged", SOON, || (count() >= enough).then_some(()));
            kill(daemon);
            sending_for += begun.elapsed();
            over.store(true, Ordering::Relaxed);
        });
    }
    start(&world);
    let shown = wait_for("the agent after the last start", SOON, || agent(&world));
    stop(&world);
    let db = world.state_dir().join("state.db");
    let acknowledged = acknowledged.into_inner().expect("no panic");
    check_database(&db, &runtime, &acknowledged, &shown);
    let replayed = agtmux(&world, &["replay", "--db", db.to_str().expect("a plain path")]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.stderr);
    let rate = acknowledged.len() as f64 / sending_for.as_secs_f64();
    println!("{kills} kills, {} events acknowledged at {rate:.0}/s; {}", acknowledged.len(), replayed.text());
}

fn check_database(db: &Path, runtime: &str, acknowledged: &[u64], shown: &Value) {
    let connection = Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("opened");
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(verdict, "ok");
    let mut count = connection
        .prepare("SELECT count(*) FROM events WHERE runtime_id = ?1 AND dedupe_key = ?2")
        .expect("a statement");
    for n in acknowledged {
        let found: i64 = count.query_row((runtime, format!("k{n}")), |row| row.get(0)).expect("counted");
        assert_eq!(found, 1, "acknowledged event k{n} is not stored once");
    }
    let stored: String = connection
        .query_row("SELECT state FROM states WHERE runtime_id = ?1", [runtime], |row| row.get(0))
        .expect("a state");
    assert_eq!(Some(stored.as_str()), shown["state"].as_str());
}
