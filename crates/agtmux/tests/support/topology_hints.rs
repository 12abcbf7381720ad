//! What no hint tells of is found by looking; nothing that happens around it may hide it.

use std::time::{Duration, Instant};

use agtmux_api::wire::PaneItem;
use agtmux_testkit::{TmuxServer, World, wait_for, wait_until};

use super::picture::{Claim, listing};
use super::station::{Deed, Station};
use super::stream::Follower;
use super::{picture, world};

const SOON: Duration = Duration::from_secs(10);

fn world_with(settings: &str) -> World {
    let world = world();
    let path = world.config_file();
    std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("the world is ours");
    std::fs::write(path, settings).expect("the world is ours");
    world
}

fn tmux(words: &[&str]) -> Deed {
    Deed::Tmux(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Each change comes as soon as the one before was told, while the server is still being seen off.
#[test]
fn changes_without_a_hint_are_seen_however_soon_they_follow() {
    let world = world_with("[observe]\nreconcile_active = '300ms'\nreconcile_idle = '1s'\n");
    let mut station = Station::new(&world, "first", false);
    station.perform(&Deed::Start { session: "a".into() }).expect("it starts");
    picture::of_lists(&world, &["panes"]).expect("the daemon starts");
    let follower = Follower::start(&world, "panes");
    for n in 0..8 {
        station.perform(&tmux(&["select-pane", "-t", "%0", "-T", &format!("title {n}")])).expect("a title is set");
        wait_for_stream(&format!("title {n}"), &follower, &station);
    }
}

/// The first listing of a server comes before its hooks. Here nothing is looked for unless it is hinted at.
#[test]
fn what_happens_before_the_hooks_stand_is_seen() {
    let world = world_with("[observe]\nreconcile_active = '1h'\nreconcile_idle = '1h'\n");
    let mut station = Station::new(&world, "first", false);
    picture::of_lists(&world, &["panes"]).expect("the daemon starts");
    let (panes, windows) = (Follower::start(&world, "panes"), Follower::start(&world, "windows"));
    station.perform(&Deed::Start { session: "a".into() }).expect("it starts");
    for n in 0..8 {
        wait_for_stream("a server's first panes", &panes, &station);
        station.perform(&tmux(&["rename-window", "-t", "@0", &format!("name {n}")])).expect("it has a window");
        wait_for("a name that was given early", SOON, || {
            let names = |claim: &Claim| matches!(claim, Claim::Window { name, .. } if *name == format!("name {n}"));
            windows.picture().0.iter().any(names).then_some(())
        });
        station.perform(&Deed::Restart { session: format!("after {n}") }).expect("it starts again");
    }
}

#[track_caller]
fn wait_for_stream(what: &str, follower: &Follower, station: &Station) {
    let truth = picture::of_tmux(std::slice::from_ref(station), &["panes"]);
    wait_for(what, SOON, || picture::compare("agtmux watch", &truth, &follower.picture().0));
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
        wait_until_left_alone(&server);
        let title = format!("title{n}");
        let line = format!("tmux select-pane -t %1 -T {title}");
        server.run(&["send-keys", "-t", "%0", "-l", &line, ";", "send-keys", "-t", "%0", "Enter"]);
        wait_until("a title set from a shell", SOON, || titles().any(|seen| seen == title));
    }
}

/// After its last look agtmux asks a server nothing until it has run again.
fn wait_until_left_alone(server: &TmuxServer) {
    const LONG: Duration = Duration::from_secs(3);
    let pid = server.pid();
    let (mut runs, mut since) = (runs_of(pid), Instant::now());
    wait_until("a server that is left alone", SOON * 3, || {
        let now = runs_of(pid);
        if now != runs {
            (runs, since) = (now, Instant::now());
        }
        since.elapsed() > LONG
    });
}

/// The kernel's count of how often it gave way to others.
fn runs_of(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server lives");
    status.lines().filter(|line| line.contains("ctxt_switches")).collect()
}
