//! Many readers of the bridge's stream over TCP, some of which stop reading. How soon they are told is measured by
//! `cargo bench --bench bridge`.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_bridge.rs"]
mod bridge;
#[path = "support/trial_crowd.rs"]
mod crowd;
#[path = "support/trial_http.rs"]
mod http;
#[path = "support/trial_posts.rs"]
mod posts;
#[path = "support/trial_web.rs"]
mod web;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agtmux::{SOON, items, list, pid, soak, world};
use agtmux_testkit::{process, wait_for, wait_until};
use bridge::{hook, session_start};
use crowd::{Crowd, Following};
use posts::Posts;
use web::open;

struct LoadSize {
    readers: usize,
    stalled: usize,
    agents: usize,
    hooks_per_second: f64,
    duration: Duration,
}

const SHORT: LoadSize =
    LoadSize { readers: 20, stalled: 2, agents: 4, hooks_per_second: 100.0, duration: Duration::from_secs(2) };
/// A turn is two hooks and five events.
const LONG: LoadSize =
    LoadSize { readers: 190, stalled: 10, agents: 10, hooks_per_second: 200.0, duration: Duration::from_secs(60) };
/// What is kept of the last events, and for each connection; a quarter of a MiB each.
const EVENT_BUFFER_MIB: usize = 8;
const CONNECTIONS_PER_MIB: usize = 4;
/// A busy machine takes longer than planned, and everything comes all the same.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn readers_miss_nothing_whatever_others_do() {
    let size = if soak() { LONG } else { SHORT };
    let world = world();
    let web = open(&world);
    let tmux = world.tmux("default");
    let sessions: Vec<String> = (0..size.agents).map(|n| format!("s{n}")).collect();
    let panes: Vec<String> =
        sessions.iter().map(|name| tmux.new_session(name, &world.fake_agent_command("claude"))).collect();
    wait_for("the agents", SOON, || {
        let known = items(&list(&world)).iter().filter(|item| item["agent_type"] == "claude").count();
        if known == size.agents { Ok(()) } else { Err(known) }
    });
    let begin = |(session, pane): (&String, &String)| {
        hook(&world, "session-start", &session_start(session, pane, tmux.socket()))
    };
    let agent_ids: Arc<[String]> = sessions.iter().zip(&panes).map(begin).collect();
    let posts = Arc::new(Posts::new(&sessions, size.hooks_per_second, size.duration));
    let following = Following { address: web.address, bearer: web.bearer(), agent_ids, posts: posts.clone() };
    let crowd = Crowd::gather(&following, size.readers, size.stalled);
    let memory = || process::resident_memory(pid(&world)).unwrap_or_default() >> 20;
    let before = memory();
    let took = posts.run(&world.socket());
    let turns = posts.turns() as u64;
    wait_until("every reader to be told of every prompt", DELIVERY_TIMEOUT, || crowd.has_heard(turns));
    let each = |reader: &Arc<crowd::Progress>| reader.prompts.load(Ordering::SeqCst);
    assert!(crowd.readers().iter().all(|reader| each(reader) == turns), "each prompt once");
    assert_eq!((crowd.missed(), crowd.lags().len() as u64), (0, turns * size.readers as u64));
    let (readers, stalled, after) = (size.readers, size.stalled, memory());
    let bound = before + (EVENT_BUFFER_MIB + (readers + stalled).div_ceil(CONNECTIONS_PER_MIB)) as u64;
    assert!(after <= bound, "it holds {after} MiB, after {before} and with a bound of {bound}");
    println!("{turns} turns in {took:?}, {readers} readers and {stalled} stalled; {before} MiB, then {after}");
}
