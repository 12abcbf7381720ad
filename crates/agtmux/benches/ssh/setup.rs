//! Sets up a hub, two hosts with agtmux, one agentless host, and a background load.

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
use crate::connection::LoadConnection;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// The background load over all hosts with agtmux.
const EVENTS_PER_SECOND: u32 = 10;

// Fields are dropped in order: `watch` would restart the daemon, so it ends first; then the hosts, the hub, the link.
pub(crate) struct SshBench {
    _watch: ChildGuard,
    pub(crate) bench_hosts: Vec<BenchHost>,
    pub(crate) lines: Receiver<(Instant, Value)>,
    hosts: Vec<TestHost>,
    pub(crate) hub: TestWorld,
    /// The link to vm2, if this machine can create one.
    pub(crate) link: Option<NetworkLink>,
}

impl SshBench {
    pub(crate) fn build() -> Self {
        let hub = TestWorld::with_agtmux(binary());
        let hosts_of_hub = TestHosts::for_hub(&hub);
        let link = NetworkLink::new().inspect_err(|why| eprintln!("cannot create a network link: {why}")).ok();
        let second = TestHostOptions { agtmux: Some(binary().into()), ..TestHostOptions::default() };
        let second = link.iter().fold(second, |options, link| link.place_behind(options));
        let hosts = vec![
            hosts_of_hub.with_agtmux("vm1", binary()),
            hosts_of_hub.start("vm2", second),
            hosts_of_hub.agentless("vm3"),
        ];
        let mut bench_hosts = vec![BenchHost::create("this host", "host", true, &hub)];
        bench_hosts.push(BenchHost::create("a host with agtmux", "vm1", true, hosts[0].world()));
        bench_hosts.push(BenchHost::create("another host with agtmux", "vm2", true, hosts[1].world()));
        bench_hosts.push(BenchHost::create("an agentless host", "vm3", false, hosts[2].world()));
        for host in &hosts {
            let added = hub.agtmux().args(["target", "add", host.alias()]).stdout(Stdio::null()).status();
            assert!(added.is_ok_and(|status| status.success()), "{} can be reached", host.alias());
        }
        wait_until("every agent in the list", STARTUP_TIMEOUT, || {
            let listed = hub.agtmux().args(["list", "panes", "--json"]).output();
            let listed = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            listed.matches("\"agent_type\":\"claude\"").count() == 2 * bench_hosts.len()
        });
        let (watch, lines) = start_watch(&hub);
        Self { _watch: watch, bench_hosts, lines, hosts, hub, link }
    }

    pub(crate) fn host(&self, alias: &str) -> &TestHost {
        self.hosts.iter().find(|host| host.alias() == alias).expect("the host exists")
    }

    pub(crate) fn link(&self) -> &NetworkLink {
        self.link.as_ref().expect("the link exists")
    }

    /// Posts events of the second agent of each host until the result is dropped.
    pub(crate) fn start_load(&self) -> BackgroundLoad {
        let stop = Arc::new(AtomicBool::new(false));
        let sockets: Vec<_> =
            self.bench_hosts.iter().filter(|host| host.has_agtmux).map(|host| host.socket.clone()).collect();
        let stopping = stop.clone();
        let thread = thread::spawn(move || {
            let mut connections: Vec<LoadConnection> =
                sockets.iter().map(|socket| LoadConnection::open(socket).expect("the daemon listens")).collect();
            for n in 0_usize.. {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let kind = ["running", "waiting_input"][n / sockets.len() % 2];
                let body =
                    json!({"pane": "%1", "source": "hook", "event_type": kind, "dedupe_key": format!("load-{n}")});
                let index = n % connections.len();
                if connections[index].post(&body.to_string()).is_err() {
                    connections[index] = LoadConnection::open(&sockets[index]).expect("the daemon listens");
                }
                thread::sleep(Duration::from_secs(1) / EVENTS_PER_SECOND);
            }
        });
        BackgroundLoad { stop, thread: Some(thread) }
    }
}

/// The background load. Dropping it stops the load.
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
    let out = watch.stdout.take().expect("stdout is piped");
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
