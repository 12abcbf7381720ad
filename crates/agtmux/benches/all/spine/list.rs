//! Compares `agtmux list` with `tmux list-panes -a`.

use std::process::Command;
use std::time::Instant;

use super::plan::SpineBenchPlan;
use super::setup::SpineBench;
use crate::harness::stats::{median, millis};

/// Medians in milliseconds.
#[derive(Debug)]
pub(crate) struct ListTimes {
    pub(crate) tmux: f64,
    pub(crate) all: f64,
    pub(crate) agents: f64,
}

/// Alternates between the commands, so that load on the machine affects all of them.
pub(crate) fn compare(bench: &SpineBench, plan: &SpineBenchPlan) -> ListTimes {
    let (mut tmux, mut all, mut agents) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.list_pairs {
        tmux.push(time(bench.tmux_list()));
        all.push(time(bench.list(&["--all"])));
        agents.push(time(bench.list(&[])));
    }
    ListTimes { tmux: median(&tmux), all: median(&all), agents: median(&agents) }
}

fn time(mut command: Command) -> f64 {
    let start = Instant::now();
    let output = command.output().expect("the command starts");
    let took = start.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    millis(took)
}
