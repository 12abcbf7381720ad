//! Hooks of several agents store events at the same time.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::thread;

use agtmux_testkit::agtmux::{SOON, soak, world};
use agtmux_testkit::wait_until;

#[test]
fn the_limit_of_the_spool_holds_with_eight_writers_at_once() {
    const MAX_FILES: usize = 1000;
    let world = world();
    let spool = world.state_dir().join("spool");
    fs::create_dir_all(&spool).expect("created");
    for n in 0..MAX_FILES - 4 {
        fs::write(spool.join(format!("{n:020}-old.json")), "{}").expect("written");
    }
    let rounds = if soak() { 100 } else { 4 };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let mut hook = world.agtmux();
                    hook.args(["hook", "claude", "Stop"]).stdin(Stdio::piped());
                    let mut hook = hook.spawn().expect("the hook starts");
                    hook.stdin.take().expect("a pipe").write_all(b"{}").expect("written");
                    assert!(hook.wait().expect("it ends").success());
                }
            });
        }
    });
    // Background processes store the events.
    wait_until("every event to be stored", SOON, || world.processes().is_empty());
    let stored = fs::read_dir(&spool).expect("readable").count();
    assert_eq!(stored, MAX_FILES);
}
