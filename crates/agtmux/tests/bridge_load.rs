//! Many readers of the bridge's stream over TCP, some of which stop reading.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_web.rs"]
mod web;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agtmux::{SOON, items, list, pid, soak, world};
use agtmux_testkit::{process, wait_until};
use bridge::{follow, hook, session_start};
use http::{Event, Events};
use serde_json::json;
use web::{Web, open};

struct Size {
    readers: usize,
    stalled: usize,
    hooks: u64,
    per_second: u64,
}

const SHORT: Size = Size { readers: 20, stalled: 2, hooks: 300, per_second: 500 };
const LONG: Size = Size { readers: 190, stalled: 10, hooks: 15_000, per_second: 500 };

fn begin(web: &Web) -> TcpStream {
    let mut stream = TcpStream::connect(web.address).expect("the port is open");
    let request = format!("GET /api/events/stream HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n", web.address, web.bearer());
    stream.write_all(request.as_bytes()).expect("it is read");
    stream
}

/// Reads until it is told to end, and fails at the first gap. `last` is what it has read.
fn read(stream: TcpStream, last: &AtomicU64) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        assert!(!line.starts_with("event: resync"), "a reader that keeps up never has to start over");
        let Some(id) = line.strip_prefix("id: ").and_then(|id| id.parse::<u64>().ok()) else { continue };
        let before = last.swap(id, Ordering::SeqCst);
        assert!(before == 0 || id == before + 1, "{id} came after {before}");
    }
}

/// The ends of turns, in their order.
struct Completions(Events);

impl Completions {
    fn next(&self) -> Option<Event> {
        self.0.until("the end of a turn", |event| event.data["intent"] == "COMPLETION").pop()
    }
}

#[test]
fn readers_miss_nothing_whatever_others_do() {
    let size = if soak() { LONG } else { SHORT };
    let world = world();
    let web = open(&world);
    let tmux = world.tmux("default");
    let pane = tmux.new_session("work", &world.stand_in("claude"));
    wait_until("the agent", SOON, || items(&list(&world)).iter().any(|item| item["agent_type"] == "claude"));
    hook(&world, "session-start", &session_start("s1", &pane, tmux.socket()));
    let completed = Completions(follow(&world, "?types=turn_created", None));
    let stalled: Vec<TcpStream> = (0..size.stalled).map(|_| begin(&web)).collect();
    let lasts: Vec<Arc<AtomicU64>> = (0..size.readers).map(|_| Arc::default()).collect();
    let readers: Vec<_> = lasts.iter().cloned().map(|last| (begin(&web), last)).collect();
    let readers: Vec<_> =
        readers.into_iter().map(|(stream, last)| thread::spawn(move || read(stream, &last))).collect();
    let memory = |what| (what, process::resident_memory(pid(&world)).unwrap_or_default() >> 20);
    let (before, start) = (memory("MiB before"), Instant::now());
    for n in 0..size.hooks {
        let event = if n % 2 == 0 { "user-prompt-submit" } else { "stop" };
        hook(&world, event, &json!({"session_id": "s1", "prompt": n.to_string()}));
        let due = Duration::from_micros(1_000_000 / size.per_second * n);
        thread::sleep(due.saturating_sub(start.elapsed()));
    }
    let took = start.elapsed();
    let turns = size.hooks / 2;
    let last = (0..turns).map(|_| completed.next().and_then(|event| event.id).expect("a turn that ends")).max();
    wait_until("every reader to have everything", SOON, || {
        lasts.iter().all(|read| Some(read.load(Ordering::SeqCst)) >= last)
    });
    println!(
        "{} hooks in {took:?}, {} readers and {} stalled; {before:?}, {:?}",
        size.hooks,
        size.readers,
        size.stalled,
        memory("after")
    );
    drop(stalled);
    agtmux::stop(&world);
    for reader in readers {
        reader.join().expect("no gap");
    }
}
