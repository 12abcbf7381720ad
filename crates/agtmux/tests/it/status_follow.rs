//! `agtmux status --follow` and `agtmux menubar`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use agtmux_testkit::action_fixture::ActionFixture;
use agtmux_testkit::agtmux::{SOON, agtmux, configure, start, stop, world};
use agtmux_testkit::{ChildGuard, TestWorld, wait_for, wait_until};

/// A command that prints lines until it is dropped.
struct FollowedCommand {
    _child: ChildGuard,
    lines: Arc<Mutex<Vec<String>>>,
}

impl FollowedCommand {
    fn start(world: &TestWorld, args: &[&str]) -> Self {
        let mut child = ChildGuard::start(world.agtmux().args(args).stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (out, into) = (child.stdout.take().expect("a pipe"), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                into.lock().expect("no panic").push(line);
            }
        });
        Self { _child: child, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").clone()
    }

    #[track_caller]
    fn wait_for_last(&self, line: &str) {
        wait_for(&format!("the line {line:?}"), SOON, || {
            let lines = self.lines();
            if lines.last().is_some_and(|last| last == line) { Ok(()) } else { Err(lines) }
        });
    }
}

#[test]
fn status_is_followed_across_restarts_and_never_starts_the_daemon() {
    let world = world();
    configure(&world, "actions.allow_from_agents = true\n");
    let template = "{daemon} {idle?{idle} idle}{waiting?{waiting} waiting}";
    let follower = FollowedCommand::start(&world, &["status", "--follow", "--format", template]);
    follower.wait_for_last("off ");
    assert!(!world.socket().exists(), "no daemon was started");
    start(&world);
    follower.wait_for_last("on ");
    let server = world.tmux("default");
    let agent = agtmux_testkit::fake_agent::FakeAgent::start_on(&world, &server, "work");
    follower.wait_for_last("on 1 idle");
    // A restart changes nothing, so nothing is printed.
    assert_eq!(agtmux(&world, &["daemon", "restart"]).code, Some(0));
    agent.draw_scene("dialog");
    follower.wait_for_last("on 1 waiting");
    stop(&world);
    follower.wait_for_last("off ");
    assert!(!world.socket().exists(), "no daemon was started");
    let lines = follower.lines();
    assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "each line is a change: {lines:?}");
    assert!(!lines[1..lines.len() - 1].iter().any(|line| line == "off "), "{lines:?}");
}

#[test]
fn followers_end_when_their_reader_goes_away() {
    let fixture = ActionFixture::new("");
    for args in [
        vec!["status", "--follow"],
        vec!["status", "--follow", "--json"],
        vec!["menubar", "--format", "waybar", "--follow"],
        vec!["menubar", "--format", "swiftbar", "--follow"],
    ] {
        let mut child = ChildGuard::start(fixture.world.agtmux().args(&args).stdout(Stdio::piped()));
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        assert!(!line.trim().is_empty(), "{args:?}");
        drop(out);
        let ended = wait_for("the end", SOON, || child.try_wait().ok().flatten());
        assert!(ended.success(), "{args:?}: {ended}");
    }
}

#[test]
fn menus_of_a_running_fleet_answer_only_the_dialog_that_they_show() {
    let fixture = ActionFixture::new("");
    let agent = fixture.agent("work | bash=/bin/sh");
    fixture.show_scene(&agent, "permission", "waiting_approval");
    let menu = agtmux(&fixture.world, &["menubar", "--format", "swiftbar"]);
    assert_eq!(menu.code, Some(0), "{menu:?}");
    let text = menu.text();
    assert!(text.starts_with("1 waiting | ") && text.contains("work ¦ bash=/bin/sh:0.0"), "{text}");
    assert!(text.contains("--│ rm -r build |"), "{text}");
    let deny = text.lines().find(|line| line.starts_with("--2. No")).expect("an answer");
    let arguments: Vec<&str> =
        deny.split(' ').filter_map(|word| word.split_once("param")?.1.split_once('=')).map(|(_, v)| v).collect();
    agent.draw_scene("other");
    let runtime = agent.runtime.trim_start_matches("runtime:");
    assert_eq!(&arguments[..3], ["respond", &agent.runtime, "2"]);
    assert!(arguments.contains(&runtime), "{arguments:?}");
    wait_until("the other dialog", SOON, || {
        agtmux(&fixture.world, &["menubar", "--format", "swiftbar"]).text().contains("rm -r everything")
    });
    let refused = agtmux(&fixture.world, &arguments);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    agent.assert_no_input();
    fixture.show_scene(&agent, "permission", "waiting_approval");
    wait_until("the first dialog", SOON, || {
        agtmux(&fixture.world, &["menubar", "--format", "xbar"]).text().contains("rm -r build")
    });
    let answered = agtmux(&fixture.world, &arguments);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let waybar = wait_for("the idle agent", SOON, || {
        let line = agtmux(&fixture.world, &["menubar", "--format", "waybar"]).json();
        if line["class"] == "idle" { Ok(line) } else { Err(line) }
    });
    assert_eq!(waybar["text"], "1 idle");
    stop(&fixture.world);
    let off = agtmux(&fixture.world, &["menubar", "--format", "argos"]);
    assert!(off.code == Some(0) && off.text().starts_with("agtmux off | "), "{off:?}");
    let usage = agtmux(&fixture.world, &["menubar", "--format", "xbar", "--follow"]);
    assert!(usage.code == Some(2) && usage.stderr.contains("swiftbar and waybar"), "{usage:?}");
}
