use std::time::Duration;

use crate::harness::met;
use crate::harness::stats::{mebibytes, percentile, percentile_ms};

/// The figures of servers that run at the same time.
pub(crate) struct McpFigures {
    /// From the start of each process to its answer to `initialize`.
    pub(crate) started_in: Vec<Duration>,
    /// The memory of each server at rest.
    pub(crate) memory: Vec<u64>,
    /// The CPU use of one server at rest, in percent of a core.
    pub(crate) cpu: f64,
}

const GOAL_START_MS: f64 = 50.0;
const GOAL_MEMORY_MIB: f64 = 8.0;
const GOAL_CPU: f64 = 0.01;

pub(crate) fn render(machine: &str, figures: &McpFigures) -> String {
    let McpFigures { started_in, memory, cpu } = figures;
    let count = started_in.len();
    let (start_p50, start_p95) = (percentile_ms(started_in, 0.5), percentile_ms(started_in, 0.95));
    let memory: Vec<f64> = memory.iter().map(|bytes| mebibytes(*bytes)).collect();
    let (memory_p50, memory_max) = (percentile(&memory, 0.5), percentile(&memory, 1.0));
    format!(
        "# Benchmarks: the MCP server\n\n\
         Measured by `make bench`: {count} servers (`agtmux mcp`) at the same time, as {count} agents would have them. The start ends \
         with the answer to\n`initialize`. The other figures are those of a server at rest that has answered one call. Memory is \
         PSS: it counts a page that several servers\nuse once.\n\n\
         {machine}\n\n| measured | p50 | p95 or largest | goal | |\n|---|---|---|---|---|\n\
         | start | {start_p50:.1} ms | {start_p95:.1} ms | {GOAL_START_MS} ms | {} |\n\
         | memory of one server | {memory_p50:.1} MiB | {memory_max:.1} MiB | {GOAL_MEMORY_MIB} MiB | {} |\n\
         | CPU of one server | {cpu:.3} % | | 0 | {} |\n",
        met(Some(start_p95 <= GOAL_START_MS)),
        met(Some(memory_max <= GOAL_MEMORY_MIB)),
        met(Some(*cpu <= GOAL_CPU)),
    )
}
