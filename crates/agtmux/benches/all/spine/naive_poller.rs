//! A naive poller: lists all panes and captures the busy ones every second.

use std::process::Stdio;

use agtmux_testkit::{ChildGuard, TestPane};

use super::setup::{COMPARABLE_FORMAT, SpineBench};

const SCRIPT: &str = r#"
format=$1; socket=$2; shift 2
while :; do
    tmux -S "$socket" list-panes -a -F "$format"
    for pane; do tmux -S "$socket" capture-pane -p -t "$pane"; done
    sleep 1
done"#;

pub(crate) fn start(bench: &SpineBench, busy: &[TestPane]) -> ChildGuard {
    let mut command = bench.world.command("sh");
    command.args(["-c", SCRIPT, "naive", COMPARABLE_FORMAT]).arg(bench.tmux.socket());
    command.args(busy.iter().map(|pane| &pane.pane_id));
    ChildGuard::start(command.stdin(Stdio::null()).stdout(Stdio::null()))
}
