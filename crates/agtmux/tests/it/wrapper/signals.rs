//! Each signal reaches the wrapped program exactly once.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agtmux_testkit::agtmux::{SOON, run, script, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

use super::{AGTMUX, screen, start_shell, type_line, wait_for_file, wait_for_text};

#[test]
fn signals_sent_to_the_wrapper_reach_the_child() {
    let world = world();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::INT, "INT")] {
        let signal_file = world.home().join(format!("received-{name}"));
        let body = format!(
            "trap 'echo {name} > {}; exit 7' {name}; echo ready > {0}.ready; while :; do sleep 0.05; done",
            signal_file.display()
        );
        // In its own session no terminal can signal both processes.
        let mut command: Command = world.command("setsid");
        command.args(["-w", AGTMUX, "run", "--", "sh", "-c", &body]).stdin(Stdio::null());
        let mut running = agtmux_testkit::ChildGuard::start(&mut command);
        wait_for_file(&signal_file.with_file_name(format!("received-{name}.ready")));
        let wrapper = wrapper_below(running.id());
        assert!(process::signal(wrapper, signal), "the wrapper is alive");
        assert_eq!(wait_for_file(&signal_file), name);
        assert_eq!(running.wait().expect("the wrapper ends").code(), Some(7), "{name}");
    }
}

/// The process of `agtmux run`: a descendant of `pid`, or `pid` itself if `setsid` has replaced itself with the
/// wrapper.
fn wrapper_below(pid: u32) -> u32 {
    let is_wrapper = |pid: &u32| process::argv(*pid).get(1).is_some_and(|word| word == b"run");
    let below = process::descendants(pid);
    [pid].into_iter().chain(below).find(is_wrapper).expect("the wrapper runs")
}

/// A wrapped program in the foreground of a pane that logs each signal it receives.
struct SignalLogger {
    server: TestTmuxServer,
    signal_file: PathBuf,
    wrapper: u32,
    program: u32,
}

impl SignalLogger {
    fn start(world: &TestWorld) -> Self {
        let (server, signal_file, pid_file) =
            (start_shell(world), world.home().join("signals"), world.home().join("pid"));
        let traps = ["INT", "QUIT", "TERM", "USR1", "USR2"]
            .map(|s| format!("trap 'echo {s} >> {}' {s}", signal_file.display()));
        let body = format!(
            "{}; echo $$ > {}; while [ ! -e {} ]; do sleep 0.02; done; kill -USR2 0; while :; do sleep 0.02; done",
            traps.join("; "),
            pid_file.display(),
            world.home().join("signal-group").display()
        );
        let program = script(world, "program", &body);
        type_line(&server, &format!("{AGTMUX} run -- {}", program.display()));
        let program: u32 = wait_for_file(&pid_file).parse().expect("a pid");
        Self { server, signal_file, wrapper: process::parent(program).expect("the program has a parent"), program }
    }

    fn received(&self) -> Vec<String> {
        fs::read_to_string(&self.signal_file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn wait_for(&self, expected: &[&str]) {
        wait_for(&format!("{expected:?}"), SOON, || {
            let received = self.received();
            if received == expected { Ok(()) } else { Err(format!("{received:?}")) }
        });
    }
}

impl Drop for SignalLogger {
    fn drop(&mut self) {
        process::signal(self.program, Signal::KILL);
    }
}

#[test]
fn each_foreground_signal_arrives_once() {
    let world = world();
    let logger = SignalLogger::start(&world);
    let sent = |signal| assert!(process::signal(logger.wrapper, signal), "the wrapper is alive");
    sent(Signal::INT);
    logger.wait_for(&["INT"]);
    sent(Signal::QUIT);
    logger.wait_for(&["INT", "QUIT"]);
    logger.server.run(&["send-keys", "-t", "%0", "C-c"]);
    logger.wait_for(&["INT", "QUIT", "INT"]);
    // Signals are forwarded in order, so a duplicate would appear before this one.
    sent(Signal::USR1);
    logger.wait_for(&["INT", "QUIT", "INT", "USR1"]);
}

#[test]
fn a_signal_to_the_own_group_is_not_forwarded_back() {
    let world = world();
    let logger = SignalLogger::start(&world);
    fs::write(world.home().join("signal-group"), "").expect("written");
    wait_until("the signal to its own group", SOON, || !logger.received().is_empty());
    assert!(process::signal(logger.wrapper, Signal::TERM), "the wrapper is alive");
    logger.wait_for(&["USR2", "TERM"]);
}

#[test]
fn a_stop_signal_from_outside_stops_the_job() {
    let world = world();
    let logger = SignalLogger::start(&world);
    assert!(process::signal(logger.wrapper, Signal::TSTP), "the wrapper is alive");
    wait_until("both to stop", SOON, || process::is_stopped(logger.program) && process::is_stopped(logger.wrapper));
    wait_for_text(&logger.server, "Stopped");
    type_line(&logger.server, "fg");
    wait_until("both to continue", SOON, || {
        !process::is_stopped(logger.program) && !process::is_stopped(logger.wrapper)
    });
    assert!(process::signal(logger.wrapper, Signal::TERM), "the wrapper is alive");
    logger.wait_for(&["TERM"]);
    assert_eq!(screen(&logger.server).matches("Stopped").count(), 1);
}

/// If a process ignores SIGCHLD, the programs that it starts ignore SIGCHLD too. Not every sh passes this setting on,
/// so this test uses bash.
#[test]
fn the_exit_code_is_returned_when_sigchld_is_ignored() {
    let world = world();
    let ignoring = format!("trap '' CHLD; exec {AGTMUX} run -- sh -c 'exit 7'");
    assert_eq!(run(world.command("bash").args(["-c", &ignoring])).code, Some(7));
}
