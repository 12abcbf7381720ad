//! Sets up a hub, two hosts with agtmux, one agentless host, and a background load.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agtmux_testkit::{ChildGuard, NetworkLink, TestHost, TestHostOptions, TestHosts, TestWorld, wait_until};
use serde_json::json;

use super::bench_host::BenchHost;
use crate::harness::connection::LoadConnection;
use crate::harness::world::{self, STARTUP_TIMEOUT, TimedLines, list_panes, program};

/// The background load over all hosts with agtmux.
const EVENTS_PER_SECOND: u32 = 10;

// Fields are dropped in order: `watch` would restart the daemon, so it ends first; then the hosts, the hub, the link.
pub(crate) struct SshBench {
    _watch: ChildGuard,
    pub(crate) bench_hosts: Vec<BenchHost>,
    pub(crate) lines: TimedLines,
    hosts: Vec<TestHost>,
    pub(crate) hub: TestWorld,
    /// The link to vm2, if this machine can create one.
    pub(crate) link: Option<NetworkLink>,
}

impl SshBench {
    pub(crate) fn build() -> Self {
        let hub = world::world();
        let hosts_of_hub = TestHosts::for_hub(&hub);
        let link = NetworkLink::new().inspect_err(|why| eprintln!("cannot create a network link: {why}")).ok();
        let second = TestHostOptions { agtmux: Some(program()), ..TestHostOptions::default() };
        let second = link.iter().fold(second, |options, link| link.place_behind(options));
        let hosts = vec![
            hosts_of_hub.with_agtmux("vm1", program()),
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
            let agents = list_panes(&hub, &[]).iter().filter(|item| item["agent_type"] == "claude").count();
            agents == 2 * bench_hosts.len()
        });
        let (watch, lines) = world::watch(&hub, &[]);
        Self { _watch: watch, bench_hosts, lines, hosts, hub, link }
    }

    pub(crate) fn host(&self, alias: &str) -> &TestHost {
        self.hosts.iter().find(|host| host.alias() == alias).expect("the host exists")
    }

    pub(crate) fn link(&self) -> &NetworkLink {
        self.link.as_ref().expect("the link exists")
    }

    /// Posts events of the second agent of each host with agtmux. Stops when the result is dropped.
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
