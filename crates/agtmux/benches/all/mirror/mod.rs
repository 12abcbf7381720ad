//! Measures `agtmux mirror exec` in a shared terminal, beside the same command without it.

mod report;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};
use report::MirrorTimes;

use crate::harness::BenchRun;
use crate::harness::world::{self, STARTUP_TIMEOUT};

/// The size of the large output.
const LARGE_LINES: usize = 95_000;

/// Fields are dropped in order: the server before the world.
struct SharedTerminalBench {
    server: TestTmuxServer,
    world: TestWorld,
    caller: String,
}

pub(crate) fn run(run: &BenchRun) {
    let mut all = Vec::new();
    for shell in ["bash", "zsh", "fish"] {
        if Command::new(shell).args(["-c", "true"]).status().is_err() {
            eprintln!("{shell} is not installed");
            continue;
        }
        let bench = SharedTerminalBench::start(shell);
        let mut times = MirrorTimes { shell, ..MirrorTimes::default() };
        for _ in 0..run.plan(300, 20) {
            times.exec.push(timed(&mut bench.exec("true")));
            times.plain.push(timed(Command::new("bash").args(["-c", "true"])));
        }
        let large = bench.world.home().join("large");
        fs::write(&large, "0123456789 the quick brown fox jumps over the lazy dog\n".repeat(LARGE_LINES))
            .expect("written");
        for round in 0..run.plan(10, 2) {
            times.large.push(timed(&mut bench.exec(&format!("cat {}", large.display()))));
            times.large_plain.push(bench.cat_in_pane(&large.display().to_string(), round));
        }
        all.push(times);
    }
    run.finish("benchmarks-mirror.md", &report::render(&run.machine, &all));
}

fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    start.elapsed()
}

impl SharedTerminalBench {
    fn start(shell: &str) -> Self {
        let world = world::world();
        fs::write(world.home().join(".zshrc"), "PS1='%# '\n").expect("the world is writable");
        let server = world.tmux("default");
        let caller = server.new_session("work", "cat");
        server.run(&["resize-window", "-t", "=work:", "-x", "200", "-y", "50"]);
        let bench = Self { server, world, caller };
        timed(bench.command().args(["start", "--shell", shell]));
        bench
    }

    fn command(&self) -> Command {
        let mut command = self.world.agtmux();
        let tmux = format!("{},{},0", self.server.socket().display(), self.server.pid());
        command.arg("mirror").env("TMUX", tmux).env("TMUX_PANE", &self.caller).current_dir(self.world.home());
        command
    }

    fn exec(&self, line: &str) -> Command {
        let mut command = self.command();
        command.args(["exec", line]);
        command
    }

    /// The time of `cat` in a pane without a pipe.
    fn cat_in_pane(&self, file: &str, round: usize) -> Duration {
        let done = self.world.home().join(format!("done-{round}"));
        let line = format!("exec sh -c 'cat {file}; touch {}; sleep 100000'", done.display());
        let start = Instant::now();
        let pane = self.server.run(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=work:", &line]);
        wait_for("the end of cat", STARTUP_TIMEOUT, || done.exists().then_some(()));
        let elapsed = start.elapsed();
        self.server.run(&["kill-pane", "-t", &pane]);
        elapsed
    }
}
