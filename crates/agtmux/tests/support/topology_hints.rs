//! What no hint tells of is found by looking; nothing that happens around it may hide it.

use std::time::{Duration, Instant};

use agtmux_api::wire::PaneItem;
use agtmux_testkit::{TestTmuxServer, TestWorld, wait_for, wait_until};

use super::picture::{TopologyEntry, listing};
use super::station::{ModelServer, ServerAction};
use super::stream::WatchFollower;
use super::{picture, world};

const SOON: Duration = Duration::from_secs(10);

fn world_with(settings: &str) -> TestWorld {
    let world = world();
    let path = world.config_file();
    std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the world is ours");
    std::fs::write(path, settings).expect("the world is ours");
    world
}

fn tmux_action(words: &[&str]) -> ServerAction {
    ServerAction::Tmux(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Each change comes as soon as the one before was told, while the server is still being seen off.
#[test]
fn changes_without_a_hint_are_seen_however_soon_they_follow() {
    let world = world_with("[observe]\nreconcile_active = '300ms'\nreconcile_idle = '1s'\n");
    let mut station = ModelServer::new(&world, "first", false);
    station.perform(&ServerAction::Start { session: "a".into() }).expect("it starts");
    picture::entries_of_lists(&world, &["panes"]).expect("the daemon starts");
    let follower = WatchFollower::start(&world, "panes");
    for n in 0..8 {
        station
            .perform(&tmux_action(&["select-pane", "-t", "%0", "-T", &format!("title {n}")]))
            .expect("a title is set");
        wait_for_stream(&format!("title {n}"), &follower, &station);
    }
}

/// The first listing of a server comes before its hooks. Here nothing is looked for unless it is hinted at.
#[test]
fn what_happens_before_the_hooks_stand_is_seen() {
    let world = world_with("[observe]\nreconcile_active = '1h'\nreconcile_idle = '1h'\n");
    let mut station = ModelServer::new(&world, "first", false);
    picture::entries_of_lists(&world, &["panes"]).expect("the daemon starts");
    let (panes, windows) = (WatchFollower::start(&world, "panes"), WatchFollower::start(&world, "windows"));
    station.perform(&ServerAction::Start { session: "a".into() }).expect("it starts");
    for n in 0..8 {
        wait_for_stream("a server's first panes", &panes, &station);
        station.perform(&tmux_action(&["rename-window", "-t", "@0", &format!("name {n}")])).expect("it has a window");
        wait_for("a name that was given early", SOON, || {
            let names = |claim: &TopologyEntry| matches!(claim, TopologyEntry::Window { name, .. } if *name == format!("name {n}"));
            windows.entries().0.iter().any(names).then_some(())
        });
        station.perform(&ServerAction::Restart { session: format!("after {n}") }).expect("it starts again");
    }
}

#[track_caller]
fn wait_for_stream(what: &str, follower: &WatchFollower, station: &ModelServer) {
    let truth = picture::entries_of_tmux(std::slice::from_ref(station), &["panes"]);
    wait_for(what, SOON, || picture::compare("agtmux watch", &truth, &follower.entries().0));
}

/// The prompt makes agtmux read its pane, and that must not pass for a look at everything.
#[test]
fn a_prompt_does_not_hide_what_came_before_it() {
    let world = world_with("[observe]\nreconcile_active = '300ms'\nreconcile_idle = '300ms'\n");
    let server = world.tmux("first");
    server.new_session("a", "exec sh -i");
    // tmux looks at names by itself a while after each output, which would give the change away.
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

/// After its last look agtmux asks a server nothing until it has run again.
fn wait_until_server_is_quiet(server: &TestTmuxServer) {
    const LONG: Duration = Duration::from_secs(3);
    let pid = server.pid();
    let (mut runs, mut since) = (context_switches(pid), Instant::now());
    wait_until("a server that is left alone", SOON * 3, || {
        let now = context_switches(pid);
        if now != runs {
            (runs, since) = (now, Instant::now());
        }
        since.elapsed() > LONG
    });
}

/// The kernel's count of how often it gave way to others.
fn context_switches(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server lives");
    status.lines().filter(|line| line.contains("ctxt_switches")).collect()
}
