//! The benchmarks. `make bench` runs all of them and writes `docs/benchmarks*.md`.
//!
//! `cargo bench -p agtmux --bench all -- spine load` runs only the named benchmarks. With `--quick`, they take seconds
//! to minutes and write no file.

mod agents;
mod bridge;
mod harness;
mod interface;
mod load;
mod mcp;
mod mirror;
mod send;
mod spine;
mod ssh;
mod tasks;

use harness::BenchRun;

/// The name of a benchmark, and the function that runs it.
type Benchmark = (&'static str, fn(&BenchRun));

const BENCHMARKS: [Benchmark; 10] = [
    ("spine", spine::run),
    ("load", load::run),
    ("agents", agents::run),
    ("send", send::run),
    ("bridge", bridge::run),
    ("tasks", tasks::run),
    ("mirror", mirror::run),
    ("mcp", mcp::run),
    ("ssh", ssh::run),
    ("interface", interface::run),
];

fn main() {
    let names = BENCHMARKS.map(|(name, _)| name);
    let selected = harness::selected(&names).unwrap_or_else(|unknown| {
        eprintln!("there is no benchmark '{unknown}'; there are {}", names.join(", "));
        std::process::exit(2);
    });
    for (name, run) in BENCHMARKS.into_iter().filter(|(name, _)| selected.contains(name)) {
        eprintln!("benchmark {name}");
        run(&BenchRun::start());
    }
}
