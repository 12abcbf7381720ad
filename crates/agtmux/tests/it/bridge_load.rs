//! Many readers of the bridge stream over TCP, some of which stop reading. `cargo bench --bench all -- bridge` measures
//! the latency.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux_testkit::agtmux::{SOON, items, list, pid, soak, world};
use agtmux_testkit::bridge::{hook, session_start};
use agtmux_testkit::hook_load::HookLoad;
use agtmux_testkit::stream_readers::{self, StreamReaders, StreamSubscription};
use agtmux_testkit::web::start_with_web;
use agtmux_testkit::{process, wait_for, wait_until};

struct LoadSize {
    readers: usize,
    stalled: usize,
    agents: usize,
    hooks_per_second: f64,
    duration: Duration,
}

const SHORT: LoadSize =
    LoadSize { readers: 20, stalled: 2, agents: 4, hooks_per_second: 100.0, duration: Duration::from_secs(2) };
/// The size of a soak run. Each turn of an agent causes two hooks and five events.
const LONG: LoadSize =
    LoadSize { readers: 190, stalled: 10, agents: 10, hooks_per_second: 200.0, duration: Duration::from_secs(60) };
/// How much more memory the daemon may use for its event buffer.
const EVENT_BUFFER_MIB: usize = 8;
/// How many connections may together use one more MiB of the daemon's memory.
const CONNECTIONS_PER_MIB: usize = 4;
/// How long to wait for the last events. The time is long, because the machine may be busy.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn readers_receive_every_event_while_others_stall() {
    let size = if soak() { LONG } else { SHORT };
    let world = world();
    let web = start_with_web(&world);
    let tmux = world.tmux("default");
    let sessions: Vec<String> = (0..size.agents).map(|n| format!("s{n}")).collect();
    let panes: Vec<String> =
        sessions.iter().map(|name| tmux.new_session(name, &world.fake_agent_command("claude"))).collect();
    wait_for("the agents", SOON, || {
        let known = items(&list(&world)).iter().filter(|item| item["agent_type"] == "claude").count();
        if known == size.agents { Ok(()) } else { Err(known) }
    });
    let report_start = |(session, pane): (&String, &String)| {
        hook(&world, "session-start", &session_start(session, pane, tmux.socket()))
    };
    let agent_ids: Arc<[String]> = sessions.iter().zip(&panes).map(report_start).collect();
    let load = Arc::new(HookLoad::new(&sessions, size.hooks_per_second, size.duration));
    let subscription = StreamSubscription { address: web.address, bearer: web.bearer(), agent_ids, load: load.clone() };
    let clients = StreamReaders::connect(&subscription, size.readers, size.stalled);
    let memory = || process::resident_memory(pid(&world)).unwrap_or_default() >> 20;
    let before = memory();
    let took = load.run(&world.socket());
    let turns = load.turns() as u64;
    wait_until("every reader to receive every prompt", DELIVERY_TIMEOUT, || clients.have_received(turns));
    let each = |reader: &Arc<stream_readers::ReaderProgress>| reader.prompts.load(Ordering::SeqCst);
    assert!(clients.readers().iter().all(|reader| each(reader) == turns), "each reader receives each prompt once");
    assert_eq!((clients.missed(), clients.lags().len() as u64), (0, turns * size.readers as u64));
    let (readers, stalled, after) = (size.readers, size.stalled, memory());
    let bound = before + (EVENT_BUFFER_MIB + (readers + stalled).div_ceil(CONNECTIONS_PER_MIB)) as u64;
    assert!(after <= bound, "the daemon uses {after} MiB, {before} MiB before; the limit is {bound} MiB");
    println!("{turns} turns in {took:?}, {readers} readers and {stalled} stalled; {before} MiB, then {after}");
}
