//! Changes without a hint are found by reconciling, even when other changes happen at the same time.

use std::time::{Duration, Instant};

use agtmux_api::wire::PaneItem;
use agtmux_testkit::agtmux::world;
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};

use super::entries;
use super::entries::{TopologyEntry, listing};
use super::model_server::{ModelServer, ServerAction};
use super::stream::WatchFollower;

const SOON: Duration = Duration::from_secs(10);

fn world_with(settings: &str) -> TestWorld {
    let world = world();
    let path = world.config_file();
    std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the world is writable");
    std::fs::write(path, settings).expect("the world is writable");
    world
}

fn tmux_action(words: &[&str]) -> ServerAction {
    ServerAction::Tmux(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Each change follows as soon as the previous one is published, while agtmux may still list the server.
#[test]
fn changes_without_a_hint_are_found_in_quick_succession() {
    let world = world_with("[observe]\nreconcile_active = '300ms'\nreconcile_idle = '1s'\n");
    let mut server = ModelServer::new(&world, "first", false);
    server.perform(&ServerAction::Start { session: "a".into() }).expect("the server starts");
    entries::entries_of_lists(&world, &["panes"]).expect("the daemon starts");
    let follower = WatchFollower::start(&world, "panes");
    for n in 0..8 {
        server
            .perform(&tmux_action(&["select-pane", "-t", "%0", "-T", &format!("title {n}")]))
            .expect("a title is set");
        wait_for_stream(&format!("title {n}"), &follower, &server);
    }
}

/// agtmux lists a new server before it installs the hooks. Reconciling is off, so only hints trigger further listings.
#[test]
fn changes_before_the_hooks_are_installed_are_found() {
    let world = world_with("[observe]\nreconcile_active = '1h'\nreconcile_idle = '1h'\n");
    let mut server = ModelServer::new(&world, "first", false);
    entries::entries_of_lists(&world, &["panes"]).expect("the daemon starts");
    let (panes, windows) = (WatchFollower::start(&world, "panes"), WatchFollower::start(&world, "windows"));
    server.perform(&ServerAction::Start { session: "a".into() }).expect("the server starts");
    for n in 0..8 {
        wait_for_stream("a server's first panes", &panes, &server);
        server.perform(&tmux_action(&["rename-window", "-t", "@0", &format!("name {n}")])).expect("the window exists");
        wait_for("the early rename", SOON, || {
            let wanted = format!("name {n}");
            let is_renamed =
                |entry: &TopologyEntry| matches!(entry, TopologyEntry::Window { name, .. } if *name == wanted);
            windows.entries().0.iter().any(is_renamed).then_some(())
        });
        server.perform(&ServerAction::Restart { session: format!("after {n}") }).expect("the server restarts");
    }
}

#[track_caller]
fn wait_for_stream(what: &str, follower: &WatchFollower, server: &ModelServer) {
    let expected = entries::entries_of_tmux(std::slice::from_ref(server), &["panes"]);
    wait_for(what, SOON, || entries::compare("agtmux watch", &expected, &follower.entries().0));
}

/// Output makes agtmux read one pane, which must not count as a full listing.
#[test]
fn reading_one_pane_does_not_hide_other_changes() {
    let world = world_with("[observe]\nreconcile_active = '300ms'\nreconcile_idle = '300ms'\n");
    let server = world.tmux("first");
    server.new_session("a", "exec sh -i");
    // automatic-rename would trigger a hint some time after each output.
    server.run(&["set-option", "-wg", "automatic-rename", "off", ";", "split-window", "-d", "exec cat"]);
    let titles = || listing::<PaneItem>(&world, "panes").items.into_iter().filter_map(|item| item.title);
    wait_until("both panes", SOON, || titles().count() == 2);
    for n in 0..2 {
        wait_until_server_is_quiet(&server);
        let title = format!("title{n}");
        let line = format!("tmux select-pane -t %1 -T {title}");
        server.run(&["send-keys", "-t", "%0", "-l", &line, ";", "send-keys", "-t", "%0", "Enter"]);
        wait_until("a title set from a shell", SOON, || titles().any(|seen| seen == title));
    }
}

/// Waits until agtmux sends the server no more commands.
fn wait_until_server_is_quiet(server: &TestTmuxServer) {
    const LONG: Duration = Duration::from_secs(3);
    let pid = server.pid();
    let (mut runs, mut since) = (context_switches(pid), Instant::now());
    wait_until("a server without queries", SOON * 3, || {
        let now = context_switches(pid);
        if now != runs {
            (runs, since) = (now, Instant::now());
        }
        since.elapsed() > LONG
    });
}

/// The context switch counters of a process.
fn context_switches(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    status.lines().filter(|line| line.contains("ctxt_switches")).collect()
}
