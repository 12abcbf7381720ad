//! Codes that agents write to their terminals, where the settings ask for them.

#[path = "support/trial_agtmux.rs"]
mod agtmux;

use std::fs;
use std::io::Write;

use agtmux::{SOON, agtmux, configure, items, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// A pane with a shell, in which an agent can be started.
struct OscFixture {
    world: TestWorld,
    server: TestTmuxServer,
    pane: String,
}

impl OscFixture {
    fn new(osc_tap: bool) -> Self {
        let world = world();
        configure(&world, &format!("[observe]\nosc_tap = {osc_tap}\n"));
        let server = world.tmux("default");
        let pane = server.new_session("work", &world.shell_copy("sh").to_string_lossy());
        Self { world, server, pane }
    }

    fn start_codex(&self) {
        // Not in the shell's place: that is there again when the agent ends.
        let command = self.world.fake_agent_command("codex");
        let command = command.trim_start_matches("exec ");
        self.server.run(&["send-keys", "-t", &self.pane, command, "Enter"]);
        wait_for("the agent", SOON, || self.codex().ok_or("no agent"));
    }

    fn codex(&self) -> Option<Value> {
        items(&list(&self.world)).iter().find(|item| item["agent_type"] == "codex").cloned()
    }

    fn has_pipe(&self) -> bool {
        self.server.run(&["display-message", "-p", "-t", &self.pane, "#{pane_pipe}"]).trim() == "1"
    }

    fn write_osc(&self, code: &str) {
        let tty = self.server.run(&["display-message", "-p", "-t", &self.pane, "#{pane_tty}"]);
        let mut tty = fs::OpenOptions::new().write(true).open(tty.trim()).expect("the pane's terminal");
        write!(tty, "\x1b]7501;{code}\x1b\\").expect("written");
    }

    #[track_caller]
    fn wait_for_state(&self, state: &str) {
        wait_for(state, SOON, || match self.codex() {
            Some(item) if item["state"] == state => Ok(()),
            other => Err(format!("{other:?}\n{}", agtmux(&self.world, &["explain", &self.pane]).text())),
        });
    }
}

#[test]
fn codes_tell_every_state_and_the_pipe_goes_with_the_agent() {
    let room = OscFixture::new(true);
    start(&room.world);
    room.start_codex();
    wait_until("the pipe", SOON, || room.has_pipe());
    for (code, state) in [
        ("state=working:app=codex", "running"),
        ("state=blocked:app=codex:kind=permission", "waiting_approval"),
        ("state=working:app=codex", "running"),
        ("state=blocked:app=codex:kind=question", "waiting_input"),
        ("state=done:app=codex", "completed"),
        ("state=error:app=codex", "error"),
        ("state=idle:app=codex", "idle"),
    ] {
        room.write_osc(code);
        room.wait_for_state(state);
    }
    // Somebody else's code, in the same terminal.
    room.write_osc("state=working:app=other");
    room.write_osc("state=blocked:app=codex:kind=permission");
    room.wait_for_state("waiting_approval");
    room.server.run(&["send-keys", "-t", &room.pane, "C-d"]);
    wait_until("no agent", SOON, || room.codex().is_none());
    wait_until("no pipe", SOON, || !room.has_pipe());
}

#[test]
fn a_pipe_of_the_users_stays_theirs() {
    let room = OscFixture::new(true);
    let log = room.world.dir().join("piped");
    room.server.run(&["pipe-pane", "-O", "-t", &room.pane, &format!("exec cat >> {}", log.display())]);
    start(&room.world);
    room.start_codex();
    // A second one, whose tap shows that taps are opened by now.
    let second =
        room.server.run(&["new-window", "-d", "-P", "-F", "#{pane_id}", &room.world.fake_agent_command("codex")]);
    let piped = |pane: &str| room.server.run(&["display-message", "-p", "-t", pane, "#{pane_pipe}"]).trim() == "1";
    wait_until("the other's pipe", SOON, || piped(&second));
    room.write_osc("state=working:app=codex");
    wait_until("what was written", SOON, || fs::read(&log).is_ok_and(|text| text.ends_with(b"codex\x1b\\")));
    assert!(room.has_pipe());
}

#[test]
fn nothing_is_piped_unless_it_is_asked_for() {
    let room = OscFixture::new(false);
    start(&room.world);
    room.start_codex();
    // Its screen is looked at after a tap would have been opened.
    wait_for("a look at its screen", SOON, || match room.codex() {
        Some(item) if item["reason_code"] == "unsupported_signal" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(!room.has_pipe());
}

#[test]
fn a_killed_daemon_leaves_no_pipe_and_the_next_one_opens_its_own() {
    let room = OscFixture::new(true);
    start(&room.world);
    room.start_codex();
    wait_until("the pipe", SOON, || room.has_pipe());
    for daemon in room.world.daemons() {
        process::signal(daemon, Signal::KILL);
    }
    wait_until("no pipe", SOON, || !room.has_pipe());
    start(&room.world);
    wait_until("the pipe", SOON, || room.has_pipe());
    room.write_osc("state=working:app=codex");
    room.wait_for_state("running");
}
