//! Counts the tmux processes that the daemon starts. The daemon's tmux program is a script that counts how often it is
//! called.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use super::plan::SpineBenchPlan;
use super::setup::SpineBench;
use super::writers::BusyWriters;

/// How long to wait before counting, because a daemon that has just started checks everything several times.
const WARM_UP: Duration = Duration::from_secs(4);

/// The number of tmux processes that the daemon starts per second while panes are busy.
pub(crate) fn per_second(bench: &mut SpineBench, plan: &SpineBenchPlan) -> f64 {
    eprintln!("{} panes: counting processes", bench.size);
    let (script, count) = (bench.world.home().join("tmux"), bench.world.home().join("calls"));
    let text = format!("#!/bin/sh\nprintf . >> {}\nexec tmux \"$@\"\n", count.display());
    let written =
        fs::write(&script, text).and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)));
    written.expect("the directory is writable");
    bench.restart_daemon(&format!("[tmux]\nprogram = '{}'\n", script.display()));
    let writers = BusyWriters::start(bench.busy_panes());
    thread::sleep(WARM_UP);
    let calls = || fs::metadata(&count).map_or(0, |meta| meta.len());
    let before = calls();
    let window = plan.busy_window * 2;
    thread::sleep(window);
    let made = calls() - before;
    drop(writers);
    made as f64 / window.as_secs_f64()
}
