//! `agtmux list` against one `tmux list-panes -a`.

use std::process::Command;
use std::time::Instant;

use crate::plan::SpineBenchPlan;
use crate::setup::SpineBench;
use crate::stats::{median, millis};

/// Medians in milliseconds.
#[derive(Debug)]
pub(crate) struct ListTimes {
    pub(crate) tmux: f64,
    pub(crate) all: f64,
    pub(crate) agents: f64,
}

/// In turns, so that a busy moment of the machine meets each of them.
pub(crate) fn compare(room: &SpineBench, plan: &SpineBenchPlan) -> ListTimes {
    let (mut tmux, mut all, mut agents) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.list_pairs {
        tmux.push(time(room.tmux_list()));
        all.push(time(room.list(&["--all"])));
        agents.push(time(room.list(&[])));
    }
    ListTimes { tmux: median(&tmux), all: median(&all), agents: median(&agents) }
}

fn time(mut command: Command) -> f64 {
    let start = Instant::now();
    let output = command.output().expect("it can be started");
    let took = start.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    millis(took)
}
