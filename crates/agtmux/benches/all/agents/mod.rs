//! Measures two things: the time from an agent's action to the line of `agtmux watch` that reports it, and the cost of
//! a hook for the agent.
//!
//! A scripted agent calls a hook or draws the recorded screen of a real agent.

mod hook;
mod report;

use agtmux_testkit::wait_until;

use crate::harness::BenchRun;
use crate::harness::bench_agent::BenchAgent;
use crate::harness::world::{self, STARTUP_TIMEOUT};

pub(crate) fn run(run: &BenchRun) {
    let (rounds, hooks) = run.plan((60, 100), (3, 5));
    // Declared first, so that it is dropped last: dropping the world stops the daemon, and `watch` would restart it.
    let _daemon;
    let world = world::world();
    let agent = BenchAgent::start("host", &world, &world.tmux("bench"));
    _daemon = world::start_daemon(&world);
    wait_until("the agent in the list", STARTUP_TIMEOUT, || world::list_panes(&world, &[]).len() == 1);
    let (_watch, lines) = world::watch(&world, &[]);
    eprintln!("hooks");
    let hook_lags = agent.measure_hook_lags(&lines, rounds);
    eprintln!("screens");
    let screen_lags = agent.measure_screen_lags(&lines, rounds);
    eprintln!("cost of a hook");
    let cost = hook::measure(&world, hooks);
    run.finish("benchmarks-agents.md", &report::render(&hook_lags, &screen_lags, &cost));
}
