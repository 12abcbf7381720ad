//! How long it takes from what an agent does to a line of `agtmux watch`, and what a hook costs the agent.
//!
//! The agent is a stand-in that does what it is told: call a hook, or draw a screen that a real agent drew.

mod hook;
#[path = "../support/paper.rs"]
mod paper;
mod report;
mod scripted_agent;
#[path = "../support/stats.rs"]
mod stats;

use std::time::Duration;

use scripted_agent::BenchAgent;

/// How often each is measured.
struct AgentsBenchPlan {
    rounds: usize,
    hooks: usize,
}

fn main() {
    let quick = paper::is_quick();
    let plan = if quick { AgentsBenchPlan { rounds: 3, hooks: 5 } } else { AgentsBenchPlan { rounds: 60, hooks: 100 } };
    let puppet = BenchAgent::start();
    eprintln!("what agents say");
    let native = measure_lags(&puppet, plan.rounds, &["running", "completed"], BenchAgent::send_hook);
    eprintln!("what agents show");
    let shown = measure_lags(&puppet, plan.rounds, &["waiting_approval", "idle"], BenchAgent::draw_screen);
    eprintln!("what a hook costs");
    let cost = hook::measure(&puppet, plan.hooks);
    let report = report::AgentsReport { hook_lags: native, screen_lags: shown, cost };
    println!("{}", report.table());
    if !quick {
        report.write();
    }
}

fn measure_lags(puppet: &BenchAgent, rounds: usize, states: &[&str], make: fn(&BenchAgent, &str)) -> Vec<Duration> {
    let mut lags = Vec::new();
    for round in 0..rounds * states.len() {
        // Different each time, so that no rhythm of the daemon is met or missed by habit.
        let spread = (round as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        std::thread::sleep(Duration::from_millis(700 + spread % 600));
        let state = states[round % states.len()];
        lags.push(puppet.measure_lag(state, || make(puppet, state)));
    }
    lags
}
