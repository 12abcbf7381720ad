//! Measures the time from an agent's action to a line of `agtmux watch`, and the cost of a hook for the agent.
//!
//! A scripted agent calls a hook or draws the recorded screen of a real agent.

#[path = "../support/bench_report.rs"]
mod bench_report;
mod hook;
mod report;
mod scripted_agent;
#[path = "../support/stats.rs"]
mod stats;

use std::time::Duration;

use scripted_agent::BenchAgent;

/// The number of rounds of each measurement.
struct AgentsBenchPlan {
    rounds: usize,
    hooks: usize,
}

fn main() {
    let quick = bench_report::is_quick();
    let plan = if quick { AgentsBenchPlan { rounds: 3, hooks: 5 } } else { AgentsBenchPlan { rounds: 60, hooks: 100 } };
    let agent = BenchAgent::start();
    eprintln!("hooks");
    let hook_lags = measure_lags(&agent, plan.rounds, &["running", "completed"], BenchAgent::send_hook);
    eprintln!("screens");
    let screen_lags = measure_lags(&agent, plan.rounds, &["waiting_approval", "idle"], BenchAgent::draw_screen);
    eprintln!("cost of a hook");
    let cost = hook::measure(&agent, plan.hooks);
    let report = report::AgentsReport { hook_lags, screen_lags, cost };
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

fn measure_lags(agent: &BenchAgent, rounds: usize, states: &[&str], make: fn(&BenchAgent, &str)) -> Vec<Duration> {
    let mut lags = Vec::new();
    for round in 0..rounds * states.len() {
        // A different delay each time, so that the measurement does not synchronize with a timer of the daemon.
        let spread = (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        std::thread::sleep(Duration::from_millis(700 + spread % 600));
        let state = states[round % states.len()];
        lags.push(agent.measure_lag(state, || make(agent, state)));
    }
    lags
}
