//! How the daemon finds servers and changes that no event reports. Also: dead panes, and panes in several sessions.

use std::fs;

use agtmux_testkit::agtmux::{
    SOON, agtmux, configure, errors, items, list, pane_ids, run, tmux_pane_ids, wait_for_panes, world,
};
use agtmux_testkit::wait_for;
use serde_json::Value;

use super::custom_socket_server::CustomSocketServer;

#[test]
fn servers_started_after_the_daemon_are_found() {
    let world = world();
    // The daemon starts without a socket directory.
    fs::remove_dir(world.tmux_sockets()).expect("the directory is empty");
    assert_eq!(items(&list(&world)).len(), 0);
    for name in ["default", "second"] {
        // With `-L`, tmux creates the directory.
        let begin = ["-L", name, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "cat"];
        assert_eq!(run(world.command("tmux").args(begin)).code, Some(0));
        wait_for_panes(&world, name, &["%0".into()]);
    }
    assert_eq!(errors(&list(&world)), []);
}

#[test]
fn the_server_in_the_callers_tmux_variable_is_watched() {
    let world = world();
    let server = CustomSocketServer::new(&world, "brought");
    server.new_session("away");
    assert_eq!(items(&list(&world)).len(), 0, "the daemon does not know the server yet");
    let inside = run(world.agtmux().args(["list", "panes", "--all", "--json"]).env("TMUX", server.tmux_variable()));
    assert_eq!(pane_ids(&inside.json(), &server.name()), ["%0"], "the first answer includes the server");
    server.tmux(&["new-window", "-t", "=away:", "cat"]);
    wait_for_panes(&world, &server.name(), &["%0".into(), "%1".into()]);
    server.tmux(&["kill-server"]);
    assert_eq!(errors(&wait_for_panes(&world, &server.name(), &[])), []);
}

#[test]
fn sockets_in_the_configuration_are_watched() {
    let world = world();
    let (there, later) = (CustomSocketServer::new(&world, "there"), CustomSocketServer::new(&world, "later"));
    there.new_session("one");
    let paths = [there.socket(), later.socket()].map(|path| format!("'{}'", path.display()));
    configure(&world, &format!("[tmux]\nsockets = [{}]\n", paths.join(", ")));
    let listing = list(&world);
    assert_eq!((pane_ids(&listing, &there.name()), errors(&listing)), (vec!["%0".into()], vec![]));
    later.new_session("two");
    wait_for_panes(&world, &later.name(), &["%0".into()]);
    later.tmux(&["kill-server"]);
    wait_for_panes(&world, &later.name(), &[]);
    later.new_session("three");
    wait_for_panes(&world, &later.name(), &["%0".into()]);
}

#[test]
fn changes_without_an_event_are_found_by_polling() {
    for config in ["", "[tmux]\nhooks = false\npty_events = false\n"] {
        let world = world();
        configure(&world, config);
        let server = world.tmux("default");
        // inotify on the terminal does not report writes to /dev/tty.
        server.new_session("work", r"while read -r line; do printf '\033]2;%s\033\\' $line > /dev/tty; done");
        wait_for_panes(&world, "default", &["%0".into()]);
        server.run(&["send-keys", "-t", "%0", "new-title", "Enter"]);
        wait_for("the title", SOON, || {
            let listing = list(&world);
            if items(&listing)[0]["title"] == "new-title" { Ok(()) } else { Err(listing.to_string()) }
        });
        server.run(&["split-window", "-t", "%0", "cat"]);
        wait_for_panes(&world, "default", &["%0".into(), "%1".into()]);
        server.run(&["kill-pane", "-t", "%1"]);
        wait_for_panes(&world, "default", &["%0".into()]);
    }
}

#[test]
fn a_dead_pane_that_stays_open_reports_its_exit_code_or_signal() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let exits = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "read line; exit 7"]);
    let killed = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "exec cat"]);
    wait_for_panes(&world, "default", &tmux_pane_ids(&server));
    server.run(&["send-keys", "-t", &exits, "Enter"]);
    let victim = server.panes().into_iter().find(|pane| pane.pane_id == killed).expect("the pane is listed").pid;
    agtmux_testkit::agtmux::kill(victim);
    // Under load tmux sometimes loses the signal or reports it late, so compare with its own listing.
    let tmux_deaths = || -> Vec<String> {
        let how = "#{pane_id} #{pane_dead} #{pane_dead_status} #{pane_dead_signal}";
        server.run(&["list-panes", "-a", "-F", how]).lines().map(str::to_owned).collect()
    };
    let deaths = wait_for("agtmux to report both deaths as tmux does", SOON, || {
        let (tmux_deaths, reported) = (tmux_deaths(), items(&list(&world)).iter().map(death).collect::<Vec<_>>());
        let both = tmux_deaths.iter().filter(|line| line.contains(" 1 ")).count() == 2;
        if both && !tmux_deaths.contains(&format!("{exits} 1 7 ")) {
            // tmux 3.3a may miss the end of a child until another child ends.
            server.run(&["run-shell", "true"]);
        } else if both && reported == tmux_deaths {
            return Ok(reported);
        }
        Err((reported, tmux_deaths))
    });
    assert!(deaths.contains(&"%0 0  ".to_owned()), "{deaths:?}");
}

/// The pane id, dead flag, exit code and signal of a list item, in the format in which the test requests them from
/// tmux.
fn death(item: &Value) -> String {
    let (dead, number) = (&item["dead"], |value: &Value| value.as_i64().map(|n| n.to_string()).unwrap_or_default());
    let pane = item["identity"]["pane_id"].as_str().unwrap_or_default();
    format!("{pane} {} {} {}", u8::from(!dead.is_null()), number(&dead["exit_code"]), number(&dead["signal"]))
}

#[test]
fn a_pane_in_several_sessions_is_counted_once() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    server.new_session("other", "cat");
    server.run(&["link-window", "-s", "=work:0", "-t", "=other:"]);
    server.run(&["new-session", "-d", "-t", "=work", "-s", "group"]);
    wait_for("the agent in three sessions", SOON, || {
        let listing = agtmux(&world, &["list", "panes", "--json"]).json();
        if items(&listing).len() == 3 { Ok(()) } else { Err(listing.to_string()) }
    });
    let listing = agtmux(&world, &["list", "panes", "--json"]).json();
    let summary = &listing["summary"];
    assert_eq!((&summary["by_agent"]["claude"], &summary["by_state"]["unknown"]), (&1.into(), &1.into()), "{summary}");
}
