//! Servers and panes that nothing tells of at once, or that are seen in several places.

use std::fs;

use agtmux_testkit::wait_for;
use serde_json::Value;

use crate::agtmux::{
    SOON, agtmux, configure, errors, items, list, pane_ids, run, true_pane_ids, wait_for_panes, world,
};
use crate::elsewhere::CustomSocketServer;

#[test]
fn servers_that_come_later_are_found() {
    let world = world();
    // Not even the directory is there yet.
    fs::remove_dir(world.tmux_sockets()).expect("nothing is in it");
    assert_eq!(items(&list(&world)).len(), 0);
    for name in ["default", "second"] {
        // By its name: then tmux makes the directory.
        let begin = ["-L", name, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "cat"];
        assert_eq!(run(world.command("tmux").args(begin)).code, Some(0));
        wait_for_panes(&world, name, &["%0".into()]);
    }
    assert_eq!(errors(&list(&world)), []);
}

#[test]
fn a_caller_brings_its_own_server_along() {
    let world = world();
    let elsewhere = CustomSocketServer::new(&world, "brought");
    elsewhere.new_session("away");
    assert_eq!(items(&list(&world)).len(), 0, "nobody has told of it yet");
    let inside = run(world.agtmux().args(["list", "panes", "--all", "--json"]).env("TMUX", elsewhere.tmux_variable()));
    assert_eq!(pane_ids(&inside.json(), &elsewhere.name()), ["%0"], "the first answer has it already");
    elsewhere.tmux(&["new-window", "-t", "=away:", "cat"]);
    wait_for_panes(&world, &elsewhere.name(), &["%0".into(), "%1".into()]);
    elsewhere.tmux(&["kill-server"]);
    assert_eq!(errors(&wait_for_panes(&world, &elsewhere.name(), &[])), []);
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
fn what_no_event_tells_of_is_seen_all_the_same() {
    for config in ["", "[tmux]\nhooks = false\npty_events = false\n"] {
        let world = world();
        configure(&world, config);
        let server = world.tmux("default");
        // A write to /dev/tty is invisible to whoever watches the terminal itself.
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
fn a_pane_that_is_kept_after_its_death_tells_how_it_died() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", "cat");
    server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    let exits = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "read line; exit 7"]);
    let killed = server.run(&["new-window", "-P", "-F", "#{pane_id}", "-t", "=work:", "exec cat"]);
    wait_for_panes(&world, "default", &true_pane_ids(&server));
    server.run(&["send-keys", "-t", &exits, "Enter"]);
    let victim = server.panes().into_iter().find(|pane| pane.pane_id == killed).expect("it lives").pid;
    crate::agtmux::kill(victim);
    // Under load this tmux forgets the signal now and then; nobody can know more than it says. It may also say so late.
    let truth = || -> Vec<String> {
        let how = "#{pane_id} #{pane_dead} #{pane_dead_status} #{pane_dead_signal}";
        server.run(&["list-panes", "-a", "-F", how]).lines().map(str::to_owned).collect()
    };
    let told = wait_for("agtmux to tell both deaths as tmux does", SOON, || {
        let (truth, said) = (truth(), items(&list(&world)).iter().map(death).collect::<Vec<_>>());
        let both = truth.iter().filter(|line| line.contains(" 1 ")).count() == 2;
        if both && said == truth { Ok(said) } else { Err((said, truth)) }
    });
    assert!(told.contains(&format!("{exits} 1 7 ")) && told.contains(&"%0 0  ".to_owned()), "{told:?}");
}

/// As the test asks tmux for it.
fn death(item: &Value) -> String {
    let (dead, number) = (&item["dead"], |value: &Value| value.as_i64().map(|n| n.to_string()).unwrap_or_default());
    let pane = item["identity"]["pane_id"].as_str().unwrap_or_default();
    format!("{pane} {} {} {}", u8::from(!dead.is_null()), number(&dead["exit_code"]), number(&dead["signal"]))
}

#[test]
fn a_pane_that_several_sessions_show_is_counted_once() {
    let world = world();
    let server = world.tmux("default");
    server.new_session("work", &world.fake_agent_command("claude"));
    server.new_session("other", "cat");
    server.run(&["link-window", "-s", "=work:0", "-t", "=other:"]);
    server.run(&["new-session", "-d", "-t", "=work", "-s", "group"]);
    wait_for("the agent in three places", SOON, || {
        let listing = agtmux(&world, &["list", "panes", "--json"]).json();
        if items(&listing).len() == 3 { Ok(()) } else { Err(listing.to_string()) }
    });
    let listing = agtmux(&world, &["list", "panes", "--json"]).json();
    let summary = &listing["summary"];
    assert_eq!((&summary["by_agent"]["claude"], &summary["by_state"]["unknown"]), (&1.into(), &1.into()), "{summary}");
}
