//! A user's tmux is the same with us, without us, and after us.

#[path = "support/trial_agtmux.rs"]
mod agtmux;
#[path = "support/trial_random.rs"]
mod random;
#[path = "support/trial_stage.rs"]
mod stage;
#[path = "support/trial_user.rs"]
mod user;

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agtmux::{SOON, soak, start, stop, wait_for_hooks, world};
use agtmux_testkit::{ChildGuard, TestTmuxServer, TestWorld, process, wait_for, wait_until};
use random::Chance;
use rustix::process::Signal;
use stage::{UserScenario, compare_with_and_without_daemon};
use user::{
    TmuxStateDump, UserServer, assert_same_state, remaining_hint_files, wait_for_only_processes, without_agtmux_hooks,
};

#[test]
fn a_daemon_that_is_killed_at_any_moment_leaves_nothing_behind() {
    let world = world();
    let user = UserServer::new(&world);
    let _client = user.server.attach("shared");
    let before = TmuxBaseline::capture(&world, &user);
    let mut chance = Chance::new();
    let rounds = if soak() { 50 } else { 8 };
    for round in 0..rounds {
        // Every moment has its turn, in an order of its own each time.
        let moment = KillMoment::ALL[(round + usize::from(chance.below(2) == 0)) % KillMoment::ALL.len()];
        moment.kill(&world, &user, &mut chance);
        before.assert_user_state_kept(&user);
        // Some crashes follow each other without a clean start and stop in between.
        if chance.below(3) > 0 {
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

    fn kill(self, world: &TestWorld, user: &UserServer, chance: &mut Chance) {
        let daemon =
            ChildGuard::start(world.agtmux().args(["daemon", "run"]).stdout(Stdio::null()).stderr(Stdio::null()));
        match self {
            Self::Starting => thread::sleep(chance.moment(Duration::from_millis(250))),
            Self::Idle => {
                wait_for_hooks(world, "default");
                thread::sleep(chance.moment(Duration::from_millis(200)));
            }
            Self::Busy => {
                wait_for_hooks(world, "default");
                let delay = chance.moment(Duration::from_millis(400));
                let killed = with_window_churn(&user.server, || {
                    thread::sleep(delay);
                    process::signal(daemon.id(), Signal::KILL)
                });
                assert!(killed, "a daemon that nobody stops runs on");
            }
            Self::Stopping => {
                wait_for_hooks(world, "default");
                process::signal(daemon.id(), Signal::TERM);
                thread::sleep(chance.moment(Duration::from_millis(30)));
            }
        }
        // It is killed when it is dropped, and waited for.
        drop(daemon);
    }
}

/// Does something while sessions and windows are made and killed, all of which are gone afterwards.
fn with_window_churn<T>(server: &TestTmuxServer, deed: impl FnOnce() -> T) -> T {
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
        let outcome = deed();
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

/// What was there before the first daemon.
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

    /// The next start takes over what was left, and its end takes it away.
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
fn hooks_go_also_while_sessions_come_and_go() {
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
fn the_hooks_of_a_dead_daemon_make_no_errors() {
    let world = world();
    let user = UserServer::new(&world);
    let pid = start(&world);
    wait_for_hooks(&world, "default");
    agtmux::kill(pid);
    for session in user::SESSIONS {
        user.ring(session);
    }
    user.server.run(&["rename-window", "-t", "=plain:", "renamed"]);
    wait_until("the user's hook for the new name", SOON, || user.log().contains("renamed"));
    // tmux keeps the errors of hooks and tells them to whoever sources a file next.
    assert_eq!(user.server.run(&["source-file", "/dev/null"]), "");
}

#[test]
fn hooks_that_a_hung_server_keeps_go_with_the_next_daemon() {
    let world = world();
    let user = UserServer::new(&world);
    let rename = |name: &str| user.server.run(&["rename-window", "-t", "=plain:", name]);
    let mut before = TmuxBaseline::capture(&world, &user);
    // A window that was given a name once has an option of its own.
    rename("while");
    before.state = user.dump_state();
    start(&world);
    wait_for_hooks(&world, "default");
    let stopped = user.server.stop();
    // It cannot be asked to let go of them, and must not keep the daemon from ending.
    stop(&world);
    user.server.cont(stopped);
    rename("another");
    rename("while");
    wait_until("the user's hook for every name", SOON, || user.log().matches("renamed").count() == 3);
    assert_eq!(user.server.run(&["source-file", "/dev/null"]), "", "what is left makes no errors");
    before.assert_restored(&world, &user);
}

#[test]
fn no_buffer_of_ours_is_seen_while_hooks_run() {
    let world = world();
    let user = UserServer::new(&world);
    start(&world);
    wait_for_hooks(&world, "default");
    let looks = 300;
    let buffers = user.server.run(&["list-buffers"]);
    let seen = with_window_churn(&user.server, || {
        let look = |_: &i32| user.server.run(&["list-buffers"]) != buffers;
        (0..looks).filter(look).count()
    });
    println!("seen in {seen} of {looks} looks");
    assert_eq!(seen, 0);
}

#[test]
fn nothing_of_ours_is_seen_while_the_daemon_runs() {
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

/// `switch-client -n` of the only client.
fn next_session(user: &UserServer) -> String {
    let client = user.server.run(&["list-clients", "-F", "#{client_name}"]);
    user.server.run(&["switch-client", "-c", &client, "-n"]);
    user.server.run(&["list-clients", "-F", "#{client_session}"])
}

/// A client whose terminal is a pane of another tmux, so that its screen can be read.
struct NestedClient {
    outer: TestTmuxServer,
    inner: TestTmuxServer,
}

impl NestedClient {
    fn attach(world: &TestWorld, inner: &TestTmuxServer) -> Self {
        let outer = world.tmux("outer");
        // The clock would make two looks differ.
        inner.run(&["set-option", "-g", "status", "off"]);
        let attach = format!("TMUX= exec tmux -S {} attach-session -t =plain", inner.socket().display());
        outer.new_session("screen", &attach);
        wait_until("the client on the screen", SOON, || inner.client_pids().len() == 1);
        Self { outer, inner: inner.clone() }
    }

    /// What a user sees who looks for a session to go to.
    fn choose_tree(&self) -> String {
        let client = self.inner.run(&["list-clients", "-F", "#{client_session}"]);
        self.inner.run(&["choose-tree", "-s", "-t", &format!("={client}:")]);
        let drawn = wait_for("all sessions in the tree", SOON, || {
            let screen = self.outer.run(&["capture-pane", "-p", "-t", "=screen:"]);
            let complete = user::SESSIONS.iter().all(|name| screen.contains(&format!("{name}: 1 windows")));
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
fn bells_ring_as_often_as_without_us() {
    let told = compare_with_and_without_daemon(|stage| {
        for session in ["shared", "own", "shared", "plain", "own", "shared"] {
            stage.user.ring(session);
            stage.record(session);
        }
    });
    let of = |line: &str| told.log.lines().filter(|heard| *heard == line).count();
    assert_eq!(
        [of("global-0 shared"), of("global-4242 shared"), of("session-0 own"), of("global-0 own")],
        [3, 3, 2, 0]
    );
}

#[test]
fn destroy_unattached_destroys_as_without_us() {
    let told = compare_with_and_without_daemon(|stage| {
        stage.user.server.run(&["set-option", "-t", "=shared:", "destroy-unattached", "on"]);
        // Not detached: this tmux may crash where a session is destroyed while its last client detaches.
        for _ in 0..3 {
            stage.close_terminal();
            stage.record("a terminal was closed");
        }
    });
    assert!(told.notes.last().is_some_and(|note| note.contains("sessions own plain;")), "{told:#?}");
}

#[test]
fn exit_unattached_ends_the_server_as_without_us() {
    compare_with_and_without_daemon(|stage| {
        stage.user.server.run(&["set-option", "-s", "exit-unattached", "on"]);
        stage.detach_client_and_wait();
        stage.record("a client detached");
        stage.detach_client_and_wait();
        stage.record("another client detached");
        stage.detach_client();
        stage.wait_for_end();
    });
}

#[test]
fn exit_empty_decides_as_without_us() {
    compare_with_and_without_daemon(|stage| {
        let server = &stage.user.server;
        server.run(&["set-option", "-s", "exit-empty", "off"]);
        stage.kill_sessions();
        stage.record("no session left");
        server.new_session("again", "cat");
        stage.record("a new session on the same server");
        server.run(&["set-option", "-s", "exit-empty", "on"]);
        server.run(&["kill-session", "-t", "=again"]);
        stage.wait_for_end();
    });
}

#[test]
fn detach_on_destroy_off_moves_clients_as_without_us() {
    let told = compare_with_and_without_daemon(|stage| {
        stage.user.server.run(&["set-option", "-g", "detach-on-destroy", "off"]);
        stage.switch_client(0, &["-n"]);
        stage.record("the first went on");
        stage.switch_client(1, &["-t", "=plain"]);
        stage.record("the second went to plain");
        for session in ["shared", "plain"] {
            stage.kill_session(session);
            stage.record(session);
        }
        stage.user.ring("own");
        stage.record("a bell with everybody there");
    });
    assert!(told.notes.last().is_some_and(|note| note.contains("own own own")), "{told:#?}");
}

impl UserScenario<'_> {
    /// Also for the daemon: it has to see that nothing is left, and must not make it worse.
    fn kill_sessions(&self) {
        for session in user::SESSIONS {
            self.user.server.run(&["kill-session", "-t", &format!("={session}")]);
        }
        // Without any session tmux has no answer to the question for clients.
        wait_until("the last session's end", SOON, || self.user.server.try_run(&["list-clients"]).is_err());
        if self.with_daemon {
            agtmux::wait_for_panes(self.world, "default", &[]);
        }
    }
}
