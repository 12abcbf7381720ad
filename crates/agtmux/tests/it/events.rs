//! The event stream: no event is missed or repeated, and stalled readers do not affect others.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use agtmux_testkit::agtmux::{SOON, health, kill, list, pid, soak, start, stop, wait_for_panes, world};
use agtmux_testkit::http::{self, SseClient, SseEvent, connect, get, open_stream, request, send, send_then_close};
use agtmux_testkit::seeded_random::SeededRandom;
use agtmux_testkit::{TestTmuxServer, TestWorld, process, skip_outside_soak, wait_for, wait_until};

/// Creates a session with this many windows.
fn create_windows(server: &TestTmuxServer, count: usize) {
    let begin = ["start-server", ";", "set-option", "-g", "automatic-rename", "off", ";", "new-session", "-d"];
    server.run(&[&begin[..], &["-x", "80", "-y", "24", "-s", "work", "cat"]].concat());
    for _ in 1..count {
        server.run(&["new-window", "-d", "-t", "=work:", "cat"]);
    }
}

/// Renames every window in one call.
fn rename_all(server: &TestTmuxServer, count: usize, name: &str) {
    let targets: Vec<String> = (0..count).map(|n| format!("=work:{n}")).collect();
    let renames = targets.iter().flat_map(|target| [";", "rename-window", "-t", target, name]);
    let command: Vec<&str> = renames.skip(1).collect();
    server.run(&command);
}

#[track_caller]
fn seq(world: &TestWorld) -> u64 {
    health(world)["seq"].as_u64().expect("a number")
}

/// Waits until no more events are published. Returns the last seq.
#[track_caller]
fn wait_until_quiet(world: &TestWorld, server: &TestTmuxServer) -> u64 {
    let panes = agtmux_testkit::agtmux::tmux_pane_ids(server);
    wait_for_panes(world, server.name(), &panes);
    let mut last = (seq(world), 0);
    wait_for("no new events", SOON, || {
        let now = seq(world);
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        if last.1 > 20 { Ok(now) } else { Err(last) }
    })
}

/// The parts of an event that are the same for all readers.
fn event_key(event: &SseEvent) -> (u64, Option<String>, String) {
    (event.seq(), event.kind.clone(), event.data["item"]["identity"].to_string())
}

#[track_caller]
fn read_up_to_seq(events: &SseClient, last: u64) -> Vec<SseEvent> {
    events.until(&format!("event {last}"), |event| event.seq() >= last)
}

#[test]
fn every_seq_is_published_once_in_order() {
    let world = world();
    let server = world.tmux("default");
    create_windows(&server, 10);
    start(&world);
    wait_until_quiet(&world, &server);
    let readers = ["panes", "windows", "sessions"]
        .map(|scope| SseClient::open(&world.socket(), &format!("?all=true&scope={scope}"), None));
    let begun = readers.each_ref().map(|reader| reader.snapshot().1);
    let from = *begun.iter().max().expect("three");
    for round in 0..10 {
        rename_all(&server, 10, &format!("round-{round}"));
        server.run(&["new-session", "-d", "-s", &format!("session-{round}"), "cat"]);
    }
    let last = wait_until_quiet(&world, &server);
    let mut published = BTreeMap::new();
    for event in readers.iter().flat_map(|reader| drain_up_to_seq(reader, last)).filter(|event| event.seq() > from) {
        let before = published.insert(event.seq(), event_key(&event));
        assert!(before.is_none(), "{before:?} and {event:?} have the same seq");
        assert_eq!(event.id, Some(event.seq()));
    }
    let numbers: Vec<u64> = published.keys().copied().collect();
    assert_eq!(numbers, (from + 1..=last).collect::<Vec<_>>(), "every number, once");
}

/// Reads events up to this seq. Also stops if no event arrives for a second, because the event with this seq may belong
/// to a scope that this reader does not follow.
#[track_caller]
fn drain_up_to_seq(reader: &SseClient, last: u64) -> Vec<SseEvent> {
    let mut received = Vec::new();
    while let Some(event) = reader.next_within(Duration::from_secs(1)) {
        received.push(event);
        if received.last().is_some_and(|event| event.seq() >= last) {
            break;
        }
    }
    assert!(received.is_sorted_by(|a, b| a.seq() < b.seq()), "in order");
    received
}

#[test]
fn a_resumed_stream_sends_exactly_the_missed_events() {
    let world = world();
    let server = world.tmux("default");
    create_windows(&server, 6);
    server.run(&["new-session", "-d", "-s", "untouched", "cat"]);
    start(&world);
    wait_until_quiet(&world, &server);
    let steady = SseClient::open(&world.socket(), "?all=true", None);
    steady.snapshot();
    let passing = SseClient::open(&world.socket(), "?all=true", None);
    let (items, _) = passing.snapshot();
    assert_eq!(items.len(), 7);
    rename_all(&server, 6, "before");
    let left_at = passing.until("some events", |event| event.is("upsert")).pop().and_then(|event| event.id);
    drop(passing);

    // Every kind of change while the reader is away: removed, changed, changed and removed, added, added and removed.
    server.run(&["kill-session", "-t", "=untouched"]);
    wait_until_quiet(&world, &server);
    rename_all(&server, 6, "while away");
    server.run(&["kill-window", "-t", "=work:5"]);
    server.run(&["new-window", "-t", "=work:", "cat"]);
    wait_until_quiet(&world, &server);
    server.run(&["kill-window", "-t", "=work:5"]);
    server.run(&["new-session", "-d", "-s", "more", "cat"]);
    wait_until_quiet(&world, &server);
    let back = SseClient::open(&world.socket(), "?all=true", left_at);
    rename_all(&server, 5, "after");
    server.run(&["kill-session", "-t", "=more"]);
    wait_until_quiet(&world, &server);
    let after = |events: Vec<SseEvent>| -> Vec<_> {
        events.iter().map(event_key).filter(|(seq, ..)| Some(*seq) > left_at).collect()
    };
    let is_end = |event: &SseEvent| event.is("remove") && event.data["item"]["identity"]["session_name"] == "more";
    let missed = after(back.until("the last removal", is_end));
    assert_eq!(missed, after(steady.until("the last removal", is_end)));
    assert_eq!(missed.iter().filter(|(_, kind, _)| kind.as_deref() == Some("remove")).count(), 4);
}

#[test]
fn an_unknown_last_event_id_resets_the_stream() {
    let world = world();
    let server = world.tmux("default");
    create_windows(&server, 3);
    start(&world);
    let first = SseClient::open(&world.socket(), "?all=true", None);
    let (_, previous_daemon_id) = first.snapshot();
    agtmux_testkit::agtmux::agtmux(&world, &["daemon", "restart"]);
    wait_until_quiet(&world, &server);
    for unknown in [previous_daemon_id, 0, seq(&world) + 1_000_000, u64::MAX] {
        let events = SseClient::open(&world.socket(), "?all=true", Some(unknown));
        let reset = events.next().expect("a stream");
        assert!(reset.is("reset") && reset.data["item"].is_null(), "{unknown}: {reset:?}");
        let (items, last) = events.snapshot();
        assert_eq!((items.len(), items.iter().all(|item| item.is("snapshot"))), (3, true), "{items:?}");
        rename_all(&server, 1, &format!("after {unknown}"));
        let next = read_up_to_seq(&events, last + 1);
        assert!(next[0].is("upsert"), "the stream continues: {next:?}");
    }
    // A stream that resumes at the current seq gets no reset.
    let current = wait_until_quiet(&world, &server);
    let events = SseClient::open(&world.socket(), "?all=true", Some(current));
    rename_all(&server, 1, "the next");
    assert!(events.next().is_some_and(|event| event.is("upsert") && event.seq() > current));
}

#[test]
fn seq_increases_across_daemon_restarts() {
    let world = world();
    let server = world.tmux("default");
    create_windows(&server, 2);
    start(&world);
    let mut last = 0;
    for round in 0..4 {
        rename_all(&server, 2, &format!("round-{round}"));
        let events = SseClient::open(&world.socket(), "?all=true", None);
        let (_, begun) = events.snapshot();
        assert!(begun >= last, "{begun} after {last}");
        rename_all(&server, 2, &format!("round-{round}-again"));
        let next = events.until("a change", |event| event.is("upsert")).pop().expect("an event").seq();
        assert!(next > last, "{next} after {last}");
        last = wait_until_quiet(&world, &server);
        if round % 2 == 0 {
            kill(pid(&world));
        } else {
            stop(&world);
        }
        start(&world);
    }
}

#[test]
fn a_stalled_reader_does_not_affect_other_readers() {
    let world = world();
    let server = world.tmux("default");
    let (count, rounds) = if soak() { (60, 500) } else { (60, 90) };
    create_windows(&server, count);
    let daemon = start(&world);
    wait_until_quiet(&world, &server);
    let memory_before = process::resident_memory(daemon).expect("alive");
    let stalled: Vec<UnixStream> = (0..10).map(|_| open_stream(&world.socket(), "?all=true", None)).collect();
    (0..if soak() { 190 } else { 20 })
        .for_each(|_| discard_in_background(open_stream(&world.socket(), "?all=true", None)));
    let readers = ["panes", "panes", "windows", "sessions"]
        .map(|scope| SseClient::open(&world.socket(), &format!("?all=true&scope={scope}"), None));
    let from = readers.each_ref().map(|reader| reader.snapshot().1).into_iter().max().expect("some");
    let mut received: [Vec<SseEvent>; 4] = Default::default();
    let mut most = 0;
    for round in 0..rounds {
        let name = format!("round-{round}");
        rename_all(&server, count, &name);
        // Wait until this round is published so that two rounds are not merged.
        received[0].extend(readers[0].until(&name, |event| event.is("upsert")));
        wait_for_name(&readers[2], &mut received[2], &name, count);
        most = most.max(process::resident_memory(daemon).expect("alive"));
    }
    let last = wait_until_quiet(&world, &server);
    for (reader, received) in readers.iter().zip(&mut received) {
        received.extend(drain_up_to_seq(reader, last));
        assert!(!received.iter().any(|event| event.is("reset")), "a reader that keeps up is never reset");
    }
    assert_complete(&received, from, last);
    let megabytes = |bytes: u64| bytes / (1 << 20);
    println!("{} events; memory {} MB, at most {} MB", last - from, megabytes(memory_before), megabytes(most));
    assert!(most < memory_before + (120 << 20), "memory went from {memory_before} to {most}");
    assert!(last - from > 8192, "enough events to overflow the stalled readers: {}", last - from);
    for stream in stalled {
        assert_dropped_or_reset(stream);
    }
    assert_eq!(pid(&world), daemon);
}

/// Reads and discards the stream in the background.
fn discard_in_background(mut stream: UnixStream) {
    stream.set_read_timeout(None).expect("a socket takes a timeout");
    thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
}

/// Reads until all windows have this name.
#[track_caller]
fn wait_for_name(reader: &SseClient, received: &mut Vec<SseEvent>, name: &str, count: usize) {
    let named = |event: &SseEvent| event.data["item"]["window_name"] == name;
    let mut missing = count;
    while missing > 0 {
        let event = reader.next().expect("the stream continues");
        missing -= usize::from(named(&event));
        received.push(event);
    }
}

/// Checks that the two readers of panes received the same events, and that the readers of all scopes together received
/// every seq once.
#[track_caller]
fn assert_complete(received: &[Vec<SseEvent>; 4], from: u64, last: u64) {
    let later =
        |events: &Vec<SseEvent>| -> Vec<_> { events.iter().map(event_key).filter(|(seq, ..)| *seq > from).collect() };
    let [panes, the_same, windows, sessions] = received.each_ref().map(later);
    assert_eq!(panes, the_same);
    let mut numbers: Vec<u64> = [panes, windows, sessions].concat().into_iter().map(|(seq, ..)| seq).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (from + 1..=last).collect::<Vec<_>>(), "every number, once");
}

/// Checks that the stalled reader was disconnected or received a reset.
#[track_caller]
fn assert_dropped_or_reset(stream: UnixStream) {
    let events = SseClient::from_stream(stream);
    let mut seen = 0;
    while let Some(event) = events.next() {
        seen += 1;
        if event.is("reset") {
            let (items, _) = events.snapshot();
            assert!(!items.is_empty() && items.iter().all(|item| item.is("snapshot")));
            return;
        }
    }
    assert!(seen < 8192, "the reader was disconnected before it received all events");
}

#[test]
fn a_reader_that_never_reads_is_disconnected() {
    // This test takes half a minute.
    if skip_outside_soak() {
        return;
    }
    let world = world();
    let server = world.tmux("default");
    create_windows(&server, 60);
    let daemon = start(&world);
    wait_until_quiet(&world, &server);
    let sockets = || process::open_fds(daemon).len();
    let before = sockets();
    let _stalled: Vec<UnixStream> = (0..10).map(|_| open_stream(&world.socket(), "?all=true", None)).collect();
    wait_until("ten more connections", SOON, || sockets() >= before + 10);
    let mut round = 0;
    wait_until("the ten to be disconnected", Duration::from_secs(120), || {
        round += 1;
        rename_all(&server, 60, &format!("round-{round}"));
        sockets() <= before
    });
}

#[test]
fn a_pane_that_leaves_the_filter_is_removed_from_the_stream() {
    let world = world();
    let server = world.tmux("default");
    let agent = world.fake_agent_command("claude");
    // The pane stays open when the agent exits.
    server.new_session("work", &format!("sh -c \"$(printf '%s' \"{agent}\")\"; exec cat"));
    server.new_session("other", &world.fake_agent_command("codex"));
    start(&world);
    let queries = ["", "?agent=claude", "?state=unknown&session=work", "?target_session=host/work"];
    let readers = queries.map(|query| {
        let events = SseClient::open(&world.socket(), query, None);
        wait_for_agent(&events);
        events
    });
    // Wait until both screens are judged, so that only the removal follows.
    wait_until("both agents to be judged", Duration::from_secs(20), || {
        let listing = list(&world);
        let items = listing["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.len() == 2 && items.iter().all(|item| item["reason_code"] == "unsupported_signal")
    });
    let resume_at = seq(&world);
    server.run(&["send-keys", "-t", "=work:", "C-d"]);
    for (reader, query) in readers.iter().zip(queries) {
        let seen = reader.until(&format!("the removal from '{query}'"), |event| event.is("remove"));
        assert_eq!(seen.last().map(SseEvent::pane), Some("%0"), "{seen:?}");
    }
    // A resumed stream sends the removal too.
    let back = SseClient::open(&world.socket(), "?agent=claude", Some(resume_at));
    assert_eq!(back.until("the removal", |event| event.is("remove")).last().map(SseEvent::pane), Some("%0"));
    let fresh = SseClient::open(&world.socket(), "?agent=claude", None);
    assert_eq!(fresh.snapshot().0.len(), 0);
    assert_eq!(list(&world)["items"].as_array().map(Vec::len), Some(2), "the pane itself is still listed");
}

#[track_caller]
fn wait_for_agent(events: &SseClient) {
    let has_agent = |event: &SseEvent| event.pane() == "%0" && event.data["item"]["agent_type"] == "claude";
    events.until("the agent", |event| has_agent(event) && event.data["item"]["identity"]["session_name"] == "work");
}

#[test]
fn a_resumed_stream_sends_the_removal_of_a_closed_pane() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    server.new_session("stays", "cat");
    start(&world);
    let events = SseClient::open(&world.socket(), "", None);
    wait_for_agent(&events);
    drop(events);
    let left_at = seq(&world);
    server.run(&["kill-session", "-t", "=work"]);
    wait_for_panes(&world, "default", &["%1".into()]);
    let back = SseClient::open(&world.socket(), "", Some(left_at));
    let seen = back.until("the removal", |event| event.is("remove"));
    assert_eq!(seen.last().map(SseEvent::pane), Some("%0"), "{seen:?}");
}

#[test]
fn invalid_requests_are_refused_with_code_and_hint() {
    let world = world();
    start(&world);
    let socket = world.socket();
    let bad = [
        ("/v1/panes?colour=red", 400, "E_BAD_REQUEST"),
        ("/v1/panes?state=busy", 400, "E_BAD_REQUEST"),
        ("/v1/panes?all=maybe", 400, "E_BAD_REQUEST"),
        ("/v1/panes?target_session=nosession", 400, "E_BAD_REQUEST"),
        ("/v1/panes?target_session=host/a&session=b", 400, "E_BAD_REQUEST"),
        ("/v1/windows?agent=claude", 400, "E_BAD_REQUEST"),
        ("/v1/events?scope=everything", 400, "E_BAD_REQUEST"),
        ("/v1/events?last_event_id=soon", 400, "E_BAD_REQUEST"),
        ("/v1/events?last_event_id=-1", 400, "E_BAD_REQUEST"),
        ("/v1/sessions?group_by=colour", 400, "E_BAD_REQUEST"),
        ("/v1/panes?target=mars", 404, "E_TARGET_NOT_FOUND"),
        ("/v1/events?target=mars", 404, "E_TARGET_NOT_FOUND"),
        ("/v1/nothing", 404, "E_NOT_FOUND"),
        ("/", 404, "E_NOT_FOUND"),
        ("/v1/panes/../../etc/passwd", 404, "E_NOT_FOUND"),
        ("/v1/%2e%2e%2fpanes", 404, "E_NOT_FOUND"),
    ];
    for (path, status, code) in bad {
        assert_refusal(&get(&socket, path), path, status, code);
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let answer = send(&socket, &request(method, "/v1/panes", "content-length: 0\r\n")).expect("an answer");
        assert_refusal(&answer, method, 405, "E_METHOD");
    }
    let answer = send(&socket, &request("GET", "/v1/events", "last-event-id: soon\r\n")).expect("an answer");
    assert_refusal(&answer, "Last-Event-ID", 400, "E_BAD_REQUEST");
}

#[track_caller]
fn assert_refusal(answer: &http::HttpResponse, what: &str, status: u16, code: &str) {
    let error = answer.json();
    assert_eq!((answer.status, &error["code"]), (status, &code.into()), "{what}: {error}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{what}: {error}");
    assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{what}: {error}");
    assert!(
        answer.head.contains("agtmux-api: 2") && answer.head.contains("application/json"),
        "{what}: {}",
        answer.head
    );
}

#[test]
fn the_daemon_survives_garbage_and_floods() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    let daemon = start(&world);
    wait_for_panes(&world, "default", &["%0".into()]);
    let before = process::resident_memory(daemon).expect("alive");
    let socket = world.socket();
    let mut chance = SeededRandom::new();
    for _ in 0..if soak() { 2000 } else { 100 } {
        let length = chance.below(4000);
        let noise: Vec<u8> = (0..length).map(|_| u8::try_from(chance.below(256)).expect("a byte")).collect();
        send_then_close(&socket, &noise);
        send_then_close(&socket, &[b"GET /v1/panes HTTP/1.1\r\n", noise.as_slice()].concat());
    }
    let long = "x".repeat(4 << 20);
    for endless in [
        format!("GET /{long} HTTP/1.1\r\n\r\n"),
        format!("GET /v1/panes?session={long} HTTP/1.1\r\nhost: x\r\n\r\n"),
        format!("GET /v1/panes HTTP/1.1\r\nhost: x\r\nlong: {long}\r\n\r\n"),
        format!("GET /v1/panes HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100_000)),
        long.clone(),
    ] {
        if let Some(answer) = send_then_close(&socket, endless.as_bytes()) {
            assert!((400..500).contains(&answer.status), "{}", answer.head);
        }
    }
    flood_with_body(&socket, 100 << 20);
    let half = hold_half_a_request(&socket, 300);
    assert_eq!(
        agtmux_testkit::agtmux::pane_ids(&list(&world), "default"),
        ["%0"],
        "other clients are served meanwhile"
    );
    drop(half);
    let after = process::resident_memory(daemon).expect("alive");
    println!("memory {} MB before, {} MB after", before >> 20, after >> 20);
    assert!(after < before + (50 << 20), "memory went from {before} to {after}");
    assert_eq!(pid(&world), daemon);
    assert_eq!(health(&world)["status"], "ok");
}

/// Sends a large body to a path that accepts none. The daemon may close the connection at any time.
fn flood_with_body(socket: &std::path::Path, size: usize) {
    let mut stream = connect(socket);
    let head = format!("POST /v1/panes HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n");
    let block = vec![b'x'; 1 << 16];
    let mut sent = 0;
    let mut broken = stream.write_all(head.as_bytes()).is_err();
    while !broken && sent < size {
        broken = stream.write_all(&block).is_err();
        sent += block.len();
    }
}

fn hold_half_a_request(socket: &std::path::Path, count: usize) -> Vec<UnixStream> {
    let hold = |_| {
        let mut stream = connect(socket);
        stream.write_all(b"GET /v1/panes HTTP/1.1\r\nhost:").expect("the daemon accepts the bytes");
        stream
    };
    (0..count).map(hold).collect()
}

#[test]
fn the_daemon_stops_in_time_with_open_connections() {
    let world = world();
    world.tmux("default").new_session("work", "cat");
    start(&world);
    let half = hold_half_a_request(&world.socket(), 5);
    let stalled: Vec<UnixStream> = (0..5).map(|_| open_stream(&world.socket(), "?all=true", None)).collect();
    let reader = SseClient::open(&world.socket(), "?all=true", None);
    reader.snapshot();
    // `daemon stop` fails if the daemon does not stop in time.
    stop(&world);
    while let Some(event) = reader.next() {
        assert!(!event.is("reset"), "{event:?}");
    }
    drop((half, stalled));
}
