//! Signals: each reaches the program once, whoever sent it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

use super::agtmux::{SOON, run, script, world};
use super::{AGTMUX, screen, start_shell, type_line, wait_for_file, wait_for_text};

#[test]
fn signals_sent_to_it_reach_the_child() {
    let world = world();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::USR1, "USR1"), (Signal::INT, "INT")] {
        let said = world.home().join(format!("said-{name}"));
        let body = format!(
            "trap 'echo {name} > {}; exit 7' {name}; echo ready > {0}.ready; while :; do sleep 0.05; done",
            said.display()
        );
        // In a session of its own there is no terminal that could have sent the signal to both.
        let mut command: Command = world.command("setsid");
        command.args(["-w", AGTMUX, "run", "--", "sh", "-c", &body]).stdin(Stdio::null());
        let mut running = agtmux_testkit::ChildGuard::start(&mut command);
        wait_for_file(&said.with_file_name(format!("said-{name}.ready")));
        let wrapper = wrapper_below(running.id());
        assert!(process::signal(wrapper, signal), "the wrapper is there");
        assert_eq!(wait_for_file(&said), name);
        assert_eq!(running.wait().expect("it ends").code(), Some(7), "{name}");
    }
}

/// The process that runs `agtmux run`, which `setsid` may have become.
fn wrapper_below(pid: u32) -> u32 {
    let is_wrapper = |pid: &u32| process::argv(*pid).get(1).is_some_and(|word| word == b"run");
    let below = process::descendants(pid);
    [pid].into_iter().chain(below).find(is_wrapper).expect("the wrapper runs")
}

/// A program in the foreground of a pane that writes down each signal that it gets.
struct SignalLogger {
    server: TestTmuxServer,
    signal_file: PathBuf,
    wrapper: u32,
    program: u32,
}

impl SignalLogger {
    fn start(world: &TestWorld) -> Self {
        let (server, heard, pid_file) = (start_shell(world), world.home().join("heard"), world.home().join("pid"));
        let traps =
            ["INT", "QUIT", "TERM", "USR1", "USR2"].map(|s| format!("trap 'echo {s} >> {}' {s}", heard.display()));
        let body = format!(
            "{}; echo $$ > {}; while [ ! -e {} ]; do sleep 0.02; done; kill -USR2 0; while :; do sleep 0.02; done",
            traps.join("; "),
            pid_file.display(),
            world.home().join("speak").display()
        );
        let program = script(world, "program", &body);
        type_line(&server, &format!("{AGTMUX} run -- {}", program.display()));
        let program: u32 = wait_for_file(&pid_file).parse().expect("a pid");
        Self { server, signal_file: heard, wrapper: process::parent(program).expect("it has a parent"), program }
    }

    fn received(&self) -> Vec<String> {
        fs::read_to_string(&self.signal_file).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn wait_for(&self, expected: &[&str]) {
        wait_for(&format!("{expected:?}"), SOON, || {
            let heard = self.received();
            if heard == expected { Ok(()) } else { Err(format!("{heard:?}")) }
        });
    }
}

impl Drop for SignalLogger {
    fn drop(&mut self) {
        process::signal(self.program, Signal::KILL);
    }
}

#[test]
fn each_signal_in_the_foreground_arrives_once_whoever_sent_it() {
    let world = world();
    let witness = SignalLogger::start(&world);
    let sent = |signal| assert!(process::signal(witness.wrapper, signal), "the wrapper is there");
    sent(Signal::INT);
    witness.wait_for(&["INT"]);
    sent(Signal::QUIT);
    witness.wait_for(&["INT", "QUIT"]);
    witness.server.run(&["send-keys", "-t", "%0", "C-c"]);
    witness.wait_for(&["INT", "QUIT", "INT"]);
    // Those before it were passed on before it, if they were.
    sent(Signal::USR1);
    witness.wait_for(&["INT", "QUIT", "INT", "USR1"]);
}

#[test]
fn what_a_program_sends_to_its_own_group_is_not_sent_back() {
    let world = world();
    let witness = SignalLogger::start(&world);
    fs::write(world.home().join("speak"), "").expect("written");
    wait_until("its own signal", SOON, || !witness.received().is_empty());
    assert!(process::signal(witness.wrapper, Signal::TERM), "the wrapper is there");
    witness.wait_for(&["USR2", "TERM"]);
}

#[test]
fn a_stop_from_outside_stops_the_job() {
    let world = world();
    let witness = SignalLogger::start(&world);
    assert!(process::signal(witness.wrapper, Signal::TSTP), "the wrapper is there");
    wait_until("both to stop", SOON, || process::is_stopped(witness.program) && process::is_stopped(witness.wrapper));
    wait_for_text(&witness.server, "Stopped");
    type_line(&witness.server, "fg");
    wait_until("both to go on", SOON, || {
        !process::is_stopped(witness.program) && !process::is_stopped(witness.wrapper)
    });
    assert!(process::signal(witness.wrapper, Signal::TERM), "the wrapper is there");
    witness.wait_for(&["TERM"]);
    assert_eq!(screen(&witness.server).matches("Stopped").count(), 1);
}

/// Whoever ignores SIGCHLD hands that on to what he starts; not every sh does.
#[test]
fn the_end_is_seen_also_where_ends_of_children_are_ignored() {
    let world = world();
    let ignoring = format!("trap '' CHLD; exec {AGTMUX} run -- sh -c 'exit 7'");
    assert_eq!(run(world.command("bash").args(["-c", &ignoring])).code, Some(7));
}
