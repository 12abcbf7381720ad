//! Measures the terminal interface with 1,000 panes. For comparison, the same run measures `cat` on such a terminal, and
//! the list of panes of tmux itself (`choose-tree`) on the same server.

mod changes;
mod report;
mod terminal;

use std::process::Command;
use std::time::Duration;

use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for};

use crate::harness::meter::{CpuScope, percent};
use crate::harness::world::{STARTUP_TIMEOUT, add_panes, list_panes, start_daemon, world};
use crate::harness::{BenchRun, spread};
use changes::StateChanges;
use report::InterfaceMeasurement;
use terminal::TimedTerminal;

const KEY_TIMEOUT: Duration = Duration::from_secs(5);
/// Keys come at most as fast as a person presses them.
const KEY_GAP: Duration = Duration::from_millis(60);
const MAX_EXTRA_GAP: Duration = Duration::from_millis(90);
/// How many panes change their state.
const CHANGING: usize = 50;
const PANES: usize = 1000;

#[derive(Debug)]
struct InterfaceBenchPlan {
    keys: usize,
    starts: usize,
    busy: Duration,
    idle: Duration,
    settle: Duration,
}

const FULL: InterfaceBenchPlan = InterfaceBenchPlan {
    keys: 400,
    starts: 30,
    busy: Duration::from_secs(30),
    idle: Duration::from_secs(60),
    settle: Duration::from_secs(75),
};

const QUICK: InterfaceBenchPlan = InterfaceBenchPlan {
    keys: 60,
    starts: 5,
    busy: Duration::from_secs(5),
    idle: Duration::from_secs(10),
    settle: Duration::from_secs(75),
};

pub(crate) fn run(run: &BenchRun) {
    let plan = run.plan(FULL, QUICK);
    eprintln!("{PANES} panes: building");
    let world = world();
    let tmux = world.tmux("bench");
    let agent = world.fake_agent_command("claude");
    add_panes(&tmux, &vec![agent; PANES]);
    let _daemon = start_daemon(&world);
    wait_for("the daemon to list every agent", STARTUP_TIMEOUT, || {
        let agents = list_panes(&world, &[]).len();
        if agents == PANES { Ok(()) } else { Err(format!("{agents} agents")) }
    });
    let measured = measure(&world, &tmux, &plan);
    run.finish("benchmarks-interface.md", &report::render(&measured, &run.machine));
}

fn measure(world: &TestWorld, tmux: &TestTmuxServer, plan: &InterfaceBenchPlan) -> InterfaceMeasurement {
    eprintln!("starts");
    let starts = (0..plan.starts).map(|_| time_of_start(world)).collect();
    let mut seat = open(world);
    eprintln!("at rest");
    // The ages of agents at rest become times of day after a minute.
    seat.wait_until_quiet(plan.settle, 2 * plan.settle);
    let mut idle_bytes = 0;
    let [idle_cpu] = percent([CpuScope::Alone(seat.process.id())], || idle_bytes = seat.bytes_within(plan.idle));
    eprintln!("keys at rest");
    let keys_at_rest = keys(&mut seat, plan.keys, None);
    let changes = StateChanges::start(world, CHANGING);
    eprintln!("keys during changes");
    let keys_busy = keys(&mut seat, plan.keys, Some("\u{1b}[7m"));
    let [busy_cpu] = percent([CpuScope::Alone(seat.process.id())], || {
        seat.bytes_within(plan.busy);
    });
    let rate = changes.rate();
    let choose_tree = choose_tree(tmux, plan.keys.min(100));
    drop(changes);
    seat.press("q");
    let cat = keys(&mut TimedTerminal::start(&mut Command::new("cat")), plan.keys, None);
    InterfaceMeasurement { starts, keys_at_rest, keys_busy, choose_tree, cat, idle_bytes, idle_cpu, busy_cpu, rate }
}

fn interface(world: &TestWorld) -> Command {
    let mut command = world.agtmux();
    command.env("TERM", "xterm-256color").env_remove("TMUX");
    command
}

fn open(world: &TestWorld) -> TimedTerminal {
    let seat = TimedTerminal::start(&mut interface(world));
    seat.wait_for("claude", KEY_TIMEOUT).expect("the list is shown");
    seat
}

/// The time from the start of the program to a screen with agents.
fn time_of_start(world: &TestWorld) -> Duration {
    let mut seat = TimedTerminal::start(&mut interface(world));
    let shown = seat.wait_for("claude", KEY_TIMEOUT).expect("the list is shown") - seat.started;
    seat.press("q");
    seat.wait_until_quiet(Duration::from_millis(50), KEY_TIMEOUT);
    shown
}

/// Moves the selection down and up. With `redraw`, waits for this sequence: the selected row is drawn reversed.
fn keys(terminal: &mut TimedTerminal, count: usize, redraw: Option<&str>) -> Vec<Duration> {
    let one = |n: usize| {
        std::thread::sleep(KEY_GAP + spread(n, MAX_EXTRA_GAP));
        let key = if n % 40 < 20 { "j" } else { "k" };
        let time = match redraw {
            Some(text) => terminal.time_of_key_to(key, text, KEY_TIMEOUT),
            None => terminal.time_of_key(key, KEY_TIMEOUT),
        };
        time.unwrap_or(KEY_TIMEOUT)
    };
    (0..count).map(one).collect()
}

/// The same keys in the list of panes that tmux has.
fn choose_tree(tmux: &TestTmuxServer, count: usize) -> Vec<Duration> {
    let mut command = tmux.command();
    command.args(["attach-session", "-t", "=s0"]).env("TERM", "xterm-256color").env_remove("TMUX");
    let mut client = TimedTerminal::start(&mut command);
    client.wait_until_quiet(Duration::from_millis(500), KEY_TIMEOUT);
    tmux.run(&["choose-tree", "-t", "=s0:"]);
    client.wait_until_quiet(Duration::from_millis(500), KEY_TIMEOUT);
    keys(&mut client, count, None)
}
