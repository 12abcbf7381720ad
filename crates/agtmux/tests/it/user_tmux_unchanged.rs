//! agtmux leaves the user's tmux server unchanged, while the daemon runs and after it stops.

mod user_scenario;
mod user_server;

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agtmux_testkit::agtmux::{SOON, soak, start, stop, wait_for_hooks, world};
use agtmux_testkit::seeded_random::SeededRandom;
use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use user_scenario::{UserScenario, compare_with_and_without_daemon};
use user_server::{
    TmuxStateDump, UserServer, assert_same_state, remaining_hint_files, wait_for_only_processes, without_agtmux_hooks,
};

#[test]
fn tmux_state_is_restored_after_a_daemon_kill() {
    let world = world();
    let user = UserServer::new(&world);
    let _client = user.server.attach("shared");
    let before = TmuxBaseline::capture(&world, &user);
    let mut random = SeededRandom::new();
    let rounds = if soak() { 50 } else { 8 };
    for round in 0..rounds {
        // Go through all moments in a random order.
        let moment = KillMoment::ALL[(round + usize::from(random.below(2) == 0)) % KillMoment::ALL.len()];
        moment.kill(&world, &user, &mut random);
        before.assert_user_state_kept(&user);
        // Sometimes kill twice without a clean start and stop in between.
        if random.below(3) > 0 {
            before.assert_restored(&world, &user);
        }
    }
    before.assert_restored(&world, &user);
}

#[derive(Debug, Clone, Copy)]
enum KillMoment {
    Starting,
    Idle,
    Busy,
    Stopping,
}

impl KillMoment {
    const ALL: [Self; 4] = [Self::Starting, Self::Idle, Self::Busy, Self::Stopping];

    fn kill(self, world: &TestWorld, user: &UserServer, random: &mut SeededRandom) {
        let daemon =
            ChildGuard::start(world.agtmux().args(["daemon", "run"]).stdout(Stdio::null()).stderr(Stdio::null()));
        match self {
            Self::Starting => thread::sleep(random.duration_below(Duration::from_millis(250))),
            Self::Idle => {
                wait_for_hooks(world, "default");
                thread::sleep(random.duration_below(Duration::from_millis(200)));
            }
            Self::Busy => {
                wait_for_hooks(world, "default");
                let delay = random.duration_below(Duration::from_millis(400));
                let killed = with_window_churn(&user.server, || {
                    thread::sleep(delay);
                    process::signal(daemon.id(), Signal::KILL)
                });
                assert!(killed, "the daemon runs until it is killed");
            }
            Self::Stopping => {
                wait_for_hooks(world, "default");
                process::signal(daemon.id(), Signal::TERM);
                thread::sleep(random.duration_below(Duration::from_millis(30)));
            }
        }
        // Dropping `ChildGuard` kills the daemon and waits for it.
        drop(daemon);
    }
}

/// Runs a closure while a thread creates and kills sessions and windows.
fn with_window_churn<T>(server: &TestTmuxServer, action: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                server.new_session("scratch", "cat");
                server.run(&["new-window", "-t", "=scratch:", "-n", "one", "cat"]);
                server.run(&["split-window", "-t", "=scratch:one", "cat"]);
                server.run(&["rename-window", "-t", "=scratch:one", "two"]);
                server.run(&["kill-session", "-t", "=scratch"]);
            }
        });
        let outcome = action();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// The tmux state and processes before the first daemon starts.
struct TmuxBaseline {
    state: TmuxStateDump,
    processes: Vec<u32>,
}

impl TmuxBaseline {
    fn capture(world: &TestWorld, user: &UserServer) -> Self {
        let mut processes = world.processes();
        processes.sort_unstable();
        Self { state: user.dump_state(), processes }
    }

    #[track_caller]
    fn assert_user_state_kept(&self, user: &UserServer) {
        assert_same_state(&without_agtmux_hooks(&self.state), &without_agtmux_hooks(&user.dump_state()));
    }

    /// Starts and stops a daemon, and checks that everything of agtmux is removed.
    #[track_caller]
    fn assert_restored(&self, world: &TestWorld, user: &UserServer) {
        start(world);
        wait_for_hooks(world, "default");
        assert_each_once(&user.agtmux_hooks());
        stop(world);
        wait_for_only_processes(world, &self.processes);
        assert_same_state(&self.state, &user.dump_state());
        assert_eq!(remaining_hint_files(&world.state_dir()), Vec::<String>::new());
    }
}

#[track_caller]
fn assert_each_once(hooks: &[String]) {
    let mut once = hooks.to_vec();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), hooks.len(), "{hooks:#?}");
    for place in ["show-hooks -g: alert-bell", "show-hooks -gw: window-renamed", "show-hooks -t =own:: alert-bell"] {
        assert!(once.iter().any(|hook| hook == place), "no {place} in {once:#?}");
    }
}

#[test]
fn hooks_are_removed_while_sessions_change() {
    let world = world();
    let user = UserServer::new(&world);
    let before = TmuxBaseline::capture(&world, &user);
    for _ in 0..if soak() { 30 } else { 4 } {
        start(&world);
        wait_for_hooks(&world, "default");
        with_window_churn(&user.server, || stop(&world));
        wait_for_only_processes(&world, &before.processes);
        assert_same_state(&before.state, &user.dump_state());
    }
}

#[test]
fn hooks_of_a_dead_daemon_cause_no_errors() {
    let world = world();
    let user = UserServer::new(&world);
    let pid = start(&world);
    wait_for_hooks(&world, "default");
    agtmux_testkit::agtmux::kill(pid);
    for session in user_server::SESSIONS {
        user.ring(session);
    }
    user.server.run(&["rename-window", "-t", "=plain:", "renamed"]);
    wait_until("the user's hook for the new name", SOON, || user.log().contains("renamed"));
    // tmux shows errors of hooks at the next `source-file`.
    assert_eq!(user.server.run(&["source-file", "/dev/null"]), "");
}

#[test]
fn hooks_left_in_a_hung_server_are_removed_by_the_next_daemon() {
    let world = world();
    let user = UserServer::new(&world);
    let rename = |name: &str| user.server.run(&["rename-window", "-t", "=plain:", name]);
    let mut before = TmuxBaseline::capture(&world, &user);
    // A renamed window has its own `automatic-rename` option from then on.
    rename("while");
    before.state = user.dump_state();
    start(&world);
    wait_for_hooks(&world, "default");
    let stopped = user.server.stop();
    // The stopped server cannot remove the hooks, and must not block the daemon's exit.
    stop(&world);
    user.server.cont(stopped);
    rename("another");
    rename("while");
    wait_until("the user's hook for every name", SOON, || user.log().matches("renamed").count() == 3);
    assert_eq!(user.server.run(&["source-file", "/dev/null"]), "", "the remaining hooks cause no errors");
    before.assert_restored(&world, &user);
}

#[test]
fn hooks_create_no_visible_buffer() {
    let world = world();
    let user = UserServer::new(&world);
    start(&world);
    wait_for_hooks(&world, "default");
    let attempts = 300;
    let buffers = user.server.run(&["list-buffers"]);
    let seen = with_window_churn(&user.server, || {
        let differs = |_: &i32| user.server.run(&["list-buffers"]) != buffers;
        (0..attempts).filter(differs).count()
    });
    println!("seen in {seen} of {attempts} attempts");
    assert_eq!(seen, 0);
}

#[test]
fn a_running_daemon_is_invisible_to_the_user() {
    let world = world();
    let user = UserServer::new(&world);
    let screen = NestedClient::attach(&world, &user.server);
    let walk = |user: &UserServer| -> Vec<String> { (0..6).map(|_| next_session(user)).collect() };
    let (tree, walked, before) = (screen.choose_tree(), walk(&user), user.dump_state());
    start(&world);
    wait_for_hooks(&world, "default");
    assert_eq!(screen.choose_tree(), tree);
    assert_eq!(walk(&user), walked);
    assert_same_state(&without_agtmux_hooks(&before), &without_agtmux_hooks(&user.dump_state()));
    assert!(!tree.contains("agt"), "{tree}");
    stop(&world);
    assert_same_state(&before, &user.dump_state());
}

/// Runs `switch-client -n` for the only client and returns its new session.
fn next_session(user: &UserServer) -> String {
    let client = user.server.run(&["list-clients", "-F", "#{client_name}"]);
    user.server.run(&["switch-client", "-c", &client, "-n"]);
    user.server.run(&["list-clients", "-F", "#{client_session}"])
}

/// A client inside a pane of another tmux server, so that the test can capture its screen.
struct NestedClient {
    outer: TestTmuxServer,
    inner: TestTmuxServer,
}

impl NestedClient {
    fn attach(world: &TestWorld, inner: &TestTmuxServer) -> Self {
        let outer = world.tmux("outer");
        // The clock in the status line would change the screen.
        inner.run(&["set-option", "-g", "status", "off"]);
        let attach = format!("TMUX= exec tmux -S {} attach-session -t =plain", inner.socket().display());
        outer.new_session("screen", &attach);
        wait_until("the client on the screen", SOON, || inner.client_pids().len() == 1);
        Self { outer, inner: inner.clone() }
    }

    /// The screen of `choose-tree`.
    fn choose_tree(&self) -> String {
        let client = self.inner.run(&["list-clients", "-F", "#{client_session}"]);
        self.inner.run(&["choose-tree", "-s", "-t", &format!("={client}:")]);
        let drawn = wait_for("all sessions in the tree", SOON, || {
            let screen = self.outer.run(&["capture-pane", "-p", "-t", "=screen:"]);
            let complete = user_server::SESSIONS.iter().all(|name| screen.contains(&format!("{name}: 1 windows")));
            if complete { Ok(screen) } else { Err(screen) }
        });
        self.inner.run(&["send-keys", "-t", &format!("={client}:"), "q"]);
        wait_until("the tree to be closed", SOON, || {
            self.inner.run(&["display-message", "-p", "-t", &format!("={client}:"), "#{pane_in_mode}"]) == "0"
        });
        drawn
    }
}

#[test]
fn bell_hooks_run_as_often_as_without_the_daemon() {
    let record = compare_with_and_without_daemon(|scenario| {
        for session in ["shared", "own", "shared", "plain", "own", "shared"] {
            scenario.user.ring(session);
            scenario.record(session);
        }
    });
    let of = |line: &str| record.log.lines().filter(|logged| *logged == line).count();
    assert_eq!(
        [of("global-0 shared"), of("global-4242 shared"), of("session-0 own"), of("global-0 own")],
        [3, 3, 2, 0]
    );
}

#[test]
fn destroy_unattached_works_as_without_the_daemon() {
    let record = compare_with_and_without_daemon(|scenario| {
        scenario.user.server.run(&["set-option", "-t", "=shared:", "destroy-unattached", "on"]);
        // Close the terminal instead of detaching: this tmux may crash when the last client detaches from a session
        // that is destroyed.
        for _ in 0..3 {
            scenario.close_terminal();
            scenario.record("a terminal was closed");
        }
    });
    assert!(record.notes.last().is_some_and(|note| note.contains("sessions own plain;")), "{record:#?}");
}

#[test]
fn exit_unattached_works_as_without_the_daemon() {
    compare_with_and_without_daemon(|scenario| {
        scenario.user.server.run(&["set-option", "-s", "exit-unattached", "on"]);
        scenario.detach_client_and_wait();
        scenario.record("a client detached");
        scenario.detach_client_and_wait();
        scenario.record("another client detached");
        scenario.detach_client();
        scenario.wait_for_end();
    });
}

#[test]
fn exit_empty_works_as_without_the_daemon() {
    compare_with_and_without_daemon(|scenario| {
        let server = &scenario.user.server;
        server.run(&["set-option", "-s", "exit-empty", "off"]);
        scenario.kill_sessions();
        scenario.record("no session left");
        server.new_session("again", "cat");
        scenario.record("a new session on the same server");
        server.run(&["set-option", "-s", "exit-empty", "on"]);
        server.run(&["kill-session", "-t", "=again"]);
        scenario.wait_for_end();
    });
}

#[test]
fn detach_on_destroy_off_works_as_without_the_daemon() {
    let record = compare_with_and_without_daemon(|scenario| {
        scenario.user.server.run(&["set-option", "-g", "detach-on-destroy", "off"]);
        scenario.switch_client(0, &["-n"]);
        scenario.record("the first client switched to the next session");
        scenario.switch_client(1, &["-t", "=plain"]);
        scenario.record("the second client switched to plain");
        for session in ["shared", "plain"] {
            scenario.kill_session(session);
            scenario.record(session);
        }
        scenario.user.ring("own");
        scenario.record("a bell with all clients attached");
    });
    assert!(record.notes.last().is_some_and(|note| note.contains("own own own")), "{record:#?}");
}

impl UserScenario<'_> {
    /// Kills all sessions and waits until the daemon has noticed it.
    fn kill_sessions(&self) {
        for session in user_server::SESSIONS {
            self.user.server.run(&["kill-session", "-t", &format!("={session}")]);
        }
        // `list-clients` fails without a session.
        wait_until("the last session to end", SOON, || self.user.server.try_run(&["list-clients"]).is_err());
        if self.with_daemon {
            agtmux_testkit::agtmux::wait_for_panes(self.world, "default", &[]);
        }
    }
}
