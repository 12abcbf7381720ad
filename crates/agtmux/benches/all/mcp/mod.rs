//! Measures many MCP servers at rest, as many agents have them.

mod report;

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use agtmux_testkit::agtmux::start;
use agtmux_testkit::{ChildGuard, TestWorld};
use report::McpFigures;
use serde_json::{Value, json};

use crate::harness::meter::{CpuScope, percent};
use crate::harness::{BenchRun, world};

/// A server and its client.
struct BenchServer {
    process: ChildGuard,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    started_in: Duration,
}

pub(crate) fn run(run: &BenchRun) {
    let world = world::world();
    start(&world);
    let mut servers: Vec<BenchServer> = (0..run.plan(50, 5)).map(|_| BenchServer::start(&world)).collect();
    // Each server has answered a question to the daemon before it rests.
    for server in &mut servers {
        server.request(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "list_agents", "arguments": {}}}));
    }
    let resting = Duration::from_secs(run.plan(20, 1));
    let mut cpu = 0.0;
    let pids: Vec<u32> = servers.iter().map(|server| server.process.id()).collect();
    // All servers rest at the same time, so the first one stands for all.
    if let Some(first) = pids.first() {
        [cpu] = percent([CpuScope::Alone(*first)], || std::thread::sleep(resting));
    }
    let figures = McpFigures {
        started_in: servers.iter().map(|server| server.started_in).collect(),
        memory: pids.iter().map(|pid| proportional_memory(*pid)).collect(),
        cpu,
    };
    run.finish("benchmarks-mcp.md", &report::render(&run.machine, &figures));
}

impl BenchServer {
    fn start(world: &TestWorld) -> Self {
        let mut command = world.agtmux();
        let begun = Instant::now();
        let mut process = ChildGuard::start(command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()));
        let input = process.stdin.take().expect("stdin is piped");
        let output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut server = Self { process, input, output, started_in: Duration::ZERO };
        server.request(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}));
        server.started_in = begun.elapsed();
        server.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("the server reads");
    }

    fn request(&mut self, message: &Value) {
        self.write(message);
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the server answers");
        assert!(line.contains("\"result\""), "{line}");
    }
}

/// The memory of a process in bytes, with its share of the pages that several processes use.
fn proportional_memory(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("the process runs");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).expect("the kernel reports it");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}
