//! Events from outside: taken once, never lost once acknowledged, never stored with their secrets.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_http.rs"]
mod http;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use agtmux::{SOON, agtmux, items, kill, list, soak, start, stop, world};
use agtmux_testkit::{World, wait_for};
use http::{Answer, request, send};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// A world with one agent in it, and the id of its runtime.
fn world_with_agent() -> (World, String) {
    let world = world();
    world.tmux("default").new_session("work", &world.stand_in("claude"));
    start(&world);
    let runtime = wait_for("the agent", SOON, || agent(&world).map(|item| text(&item["runtime_id"])));
    (world, runtime)
}

fn agent(world: &World) -> Option<Value> {
    items(&list(world)).iter().find(|item| item["agent_type"] == "claude").cloned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn state(world: &World) -> String {
    agent(world).map(|item| text(&item["state"])).unwrap_or_default()
}

fn post(socket: &Path, body: &[u8]) -> Option<Answer> {
    let mut bytes = request("POST", "/v1/events", &format!("content-length: {}\r\n", body.len()));
    bytes.extend_from_slice(body);
    send(socket, &bytes)
}

fn event(runtime: &str, event_type: &str, key: &str) -> Value {
    json!({"runtime_id": runtime, "source": "hook", "event_type": event_type, "dedupe_key": key})
}

#[track_caller]
fn taken(world: &World, event: &Value) -> Value {
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
    let states: Vec<String> = history["items"].as_array().expect("items").iter().map(|i| text(&i["state"])).collect();
    assert_eq!(states, ["unknown", "running", "waiting_approval"]);
    assert!(agtmux(&world, &["explain", "%0"]).text().contains("waiting_approval"));
    assert!(agtmux(&world, &["history", "claude"]).text().contains("running"));
}

#[test]
fn bad_events_are_refused_with_a_code_and_change_nothing() {
    let (world, runtime) = world_with_agent();
    taken(&world, &event(&runtime, "running", "k"));
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
        (strange("runtime_id", json!("nobody")), 404, "E_RUNTIME_NOT_FOUND"),
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
    assert_eq!(post(&world.socket(), &day_off).expect("an answer").status, 202, "a clock that is off is not believed");
    assert_eq!(state(&world), "idle");
    let unknown = event(&runtime, "something-new", "later");
    taken(&world, &unknown);
    assert_eq!(state(&world), "idle", "an event of an unknown type is kept and changes nothing");
}

#[test]
fn no_secret_reaches_the_disk_and_unknown_fields_are_kept() {
    let (world, runtime) = world_with_agent();
    let secret = "sk-ant-api03-AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH1111222233334444";
    let mut event = event(&runtime, "running", "k");
    event["payload"] = json!({"prompt": format!("use {secret} please"), "password": "hunter2hunter2"});
    event["extra_field"] = json!("kept-as-it-is");
    taken(&world, &event);
    stop(&world);
    let mut stored = Vec::new();
    for entry in std::fs::read_dir(world.state_dir()).expect("the state directory").flatten() {
        stored.extend(std::fs::read(entry.path()).unwrap_or_default());
    }
    let stored = String::from_utf8_lossy(&stored).into_owned();
    assert!(stored.contains("kept-as-it-is"), "the rest of the event is there");
    for gone in [secret, "hunter2hunter2"] {
        assert!(!stored.contains(gone), "{gone} was stored");
    }
}

#[test]
fn an_event_for_nobody_waits_and_says_so() {
    let (world, _) = world_with_agent();
    let waiting = json!({"pane": "%99", "source": "hook", "event_type": "running", "dedupe_key": "k"});
    assert_eq!(taken(&world, &waiting)["status"], "pending_bind");
    assert_eq!(state(&world), "unknown");
}

/// Posts events one after the other until told to stop, and notes which were acknowledged.
fn sender(
    world: &World,
    runtime: &str,
    acknowledged: &Arc<Mutex<Vec<u64>>>,
    over: &Arc<AtomicBool>,
) -> thread::JoinHandle<()> {
    let (socket, runtime) = (world.socket(), runtime.to_owned());
    let (acknowledged, over) = (acknowledged.clone(), over.clone());
    let first = acknowledged.lock().expect("no panic").last().map_or(0, |n| n + 100_000);
    thread::spawn(move || {
        for n in first.. {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let kind =
                ["running", "waiting_input", "completed", "idle", "error"][usize::try_from(n % 5).expect("small")];
            let mut event = event(&runtime, kind, &format!("k{n}"));
            event["source_seq"] = json!(n);
            if post_quietly(&socket, &event) == Some(202) {
                acknowledged.lock().expect("no panic").push(n);
            }
        }
    })
}

/// The daemon may die at any moment of this.
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

#[test]
fn nothing_acknowledged_is_lost_when_the_daemon_is_killed() {
    let (world, runtime) = world_with_agent();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let kills = if soak() { 200 } else { 20 };
    for round in 0..kills {
        let daemon = if round == 0 { agtmux::pid(&world) } else { start(&world) };
        let over = Arc::new(AtomicBool::new(false));
        let before = acknowledged.lock().expect("no panic").len();
        let sending = sender(&world, &runtime, &acknowledged, &over);
        let enough = before + 5 + (round * 7) % 60;
        wait_for("some events to be acknowledged", SOON, || {
            (acknowledged.lock().expect("no panic").len() >= enough).then_some(())
        });
        kill(daemon);
        over.store(true, Ordering::Relaxed);
        sending.join().expect("the sender ends");
    }
    start(&world);
    let shown = wait_for("the agent after the last start", Duration::from_secs(20), || agent(&world));
    stop(&world);
    let db = world.state_dir().join("state.db");
    check_database(&db, &runtime, &acknowledged.lock().expect("no panic"), &shown);
    let replayed = agtmux(&world, &["replay", "--db", db.to_str().expect("a plain path")]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.stderr);
    println!(
        "{kills} kills, {} events acknowledged; {}",
        acknowledged.lock().expect("no panic").len(),
        replayed.text()
    );
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
        assert_eq!(found, 1, "event k{n} was acknowledged");
    }
    let stored: String = connection
        .query_row("SELECT state FROM states WHERE runtime_id = ?1", [runtime], |row| row.get(0))
        .expect("a state");
    assert_eq!(Some(stored.as_str()), shown["state"].as_str());
}
