//! A hub, two hosts with agtmux, one without, and whoever makes noise there.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use agtmux_testkit::{ChildGuard, NetworkLink, TestHost, TestHostOptions, TestHosts, TestWorld, wait_until};
use serde_json::{Value, json};

use crate::bench_host::BenchHost;
use crate::connection::Connection;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// Over all places that can be told of something.
const EVENTS_PER_SECOND: u32 = 10;

// The order counts: `watch` would start the daemon anew, so it ends first; then the hosts, then the hub, then the link.
pub(crate) struct SshBench {
    _watch: ChildGuard,
    pub(crate) bench_hosts: Vec<BenchHost>,
    pub(crate) lines: Receiver<(Instant, Value)>,
    hosts: Vec<TestHost>,
    pub(crate) hub: TestWorld,
    /// The one to vm2, where there may be such.
    pub(crate) link: Option<NetworkLink>,
}

impl SshBench {
    pub(crate) fn build() -> Self {
        let hub = TestWorld::with_agtmux(binary());
        let reach = TestHosts::for_hub(&hub);
        let link = NetworkLink::new().inspect_err(|why| eprintln!("no link can be cut here: {why}")).ok();
        let second = TestHostOptions { agtmux: Some(binary().into()), ..TestHostOptions::default() };
        let second = link.iter().fold(second, |options, link| link.place_behind(options));
        let hosts = vec![reach.with_agtmux("vm1", binary()), reach.start("vm2", second), reach.agentless("vm3")];
        let mut places = vec![BenchHost::create("this host", "host", true, &hub)];
        places.push(BenchHost::create("a host with agtmux", "vm1", true, hosts[0].world()));
        places.push(BenchHost::create("another with agtmux", "vm2", true, hosts[1].world()));
        places.push(BenchHost::create("a bare host", "vm3", false, hosts[2].world()));
        for host in &hosts {
            let added = hub.agtmux().args(["target", "add", host.alias()]).stdout(Stdio::null()).status();
            assert!(added.is_ok_and(|status| status.success()), "{} can be reached", host.alias());
        }
        wait_until("every agent in the list", STARTUP_TIMEOUT, || {
            let listed = hub.agtmux().args(["list", "panes", "--json"]).output();
            let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            listed.matches("\"agent_type\":\"claude\"").count() == 2 * places.len()
        });
        let (watch, lines) = start_watch(&hub);
        Self { _watch: watch, bench_hosts: places, lines, hosts, hub, link }
    }

    pub(crate) fn host(&self, alias: &str) -> &TestHost {
        self.hosts.iter().find(|host| host.alias() == alias).expect("it was built")
    }

    pub(crate) fn link(&self) -> &NetworkLink {
        self.link.as_ref().expect("it can be cut")
    }

    /// Tells of the other agent of each place, all the time.
    pub(crate) fn start_load(&self) -> BackgroundLoad {
        let stop = Arc::new(AtomicBool::new(false));
        let sockets: Vec<_> =
            self.bench_hosts.iter().filter(|place| place.has_agtmux).map(|place| place.socket.clone()).collect();
        let stopping = stop.clone();
        let thread = thread::spawn(move || {
            let mut lines: Vec<Connection> =
                sockets.iter().map(|socket| Connection::open(socket).expect("a daemon listens")).collect();
            for n in 0_usize.. {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let kind = ["running", "waiting_input"][n / sockets.len() % 2];
                let body =
                    json!({"pane": "%1", "source": "hook", "event_type": kind, "dedupe_key": format!("load-{n}")});
                let place = n % lines.len();
                if lines[place].post(&body.to_string()).is_err() {
                    lines[place] = Connection::open(&sockets[place]).expect("a daemon listens");
                }
                thread::sleep(Duration::from_secs(1) / EVENTS_PER_SECOND);
            }
        });
        BackgroundLoad { stop, thread: Some(thread) }
    }
}

/// Ends when it is dropped.
pub(crate) struct BackgroundLoad {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn start_watch(world: &TestWorld) -> (ChildGuard, Receiver<(Instant, Value)>) {
    let mut command = world.agtmux();
    command.args(["watch", "--format", "jsonl"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = ChildGuard::start(&mut command);
    let out = watch.stdout.take().expect("its output is piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let at = Instant::now();
            let Ok(line) = serde_json::from_str(&line) else { continue };
            if sender.send((at, line)).is_err() {
                return;
            }
        }
    });
    (watch, lines)
}

pub(crate) fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_agtmux")
}
