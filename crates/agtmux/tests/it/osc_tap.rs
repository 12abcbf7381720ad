//! OSC state codes that agents write to their terminals, read with `observe.osc_tap`.

use std::fs;
use std::io::Write;

use agtmux_testkit::agtmux::{SOON, agtmux, configure, items, list, start, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// A pane with a shell in which the test starts an agent.
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
        // Without `exec`, so that the shell remains when the agent exits.
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
fn osc_codes_set_every_state_and_the_pipe_closes_with_the_agent() {
    let fixture = OscFixture::new(true);
    start(&fixture.world);
    fixture.start_codex();
    wait_until("the pipe", SOON, || fixture.has_pipe());
    for (code, state) in [
        ("state=working:app=codex", "running"),
        ("state=blocked:app=codex:kind=permission", "waiting_approval"),
        ("state=working:app=codex", "running"),
        ("state=blocked:app=codex:kind=question", "waiting_input"),
        ("state=done:app=codex", "completed"),
        ("state=error:app=codex", "error"),
        ("state=idle:app=codex", "idle"),
    ] {
        fixture.write_osc(code);
        fixture.wait_for_state(state);
    }
    // agtmux ignores a code of another app in the same terminal.
    fixture.write_osc("state=working:app=other");
    fixture.write_osc("state=blocked:app=codex:kind=permission");
    fixture.wait_for_state("waiting_approval");
    fixture.server.run(&["send-keys", "-t", &fixture.pane, "C-d"]);
    wait_until("no agent", SOON, || fixture.codex().is_none());
    wait_until("no pipe", SOON, || !fixture.has_pipe());
}

#[test]
fn a_pipe_of_the_user_is_kept() {
    let fixture = OscFixture::new(true);
    let log = fixture.world.dir().join("piped");
    fixture.server.run(&["pipe-pane", "-O", "-t", &fixture.pane, &format!("exec cat >> {}", log.display())]);
    start(&fixture.world);
    fixture.start_codex();
    // agtmux opens a tap for a second agent. When that pane is piped, agtmux has handled the first pane too.
    let second =
        fixture.server.run(&["new-window", "-d", "-P", "-F", "#{pane_id}", &fixture.world.fake_agent_command("codex")]);
    let piped = |pane: &str| fixture.server.run(&["display-message", "-p", "-t", pane, "#{pane_pipe}"]).trim() == "1";
    wait_until("the pipe of the second pane", SOON, || piped(&second));
    fixture.write_osc("state=working:app=codex");
    wait_until("the code in the user's log", SOON, || fs::read(&log).is_ok_and(|text| text.ends_with(b"codex\x1b\\")));
    assert!(fixture.has_pipe());
}

#[test]
fn no_pane_is_piped_with_osc_tap_off() {
    let fixture = OscFixture::new(false);
    start(&fixture.world);
    fixture.start_codex();
    // agtmux judges the screen only after it would have opened a tap.
    wait_for("the screen to be judged", SOON, || match fixture.codex() {
        Some(item) if item["reason_code"] == "unsupported_signal" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    assert!(!fixture.has_pipe());
}

#[test]
fn the_pipe_closes_with_a_killed_daemon_and_reopens_with_the_next() {
    let fixture = OscFixture::new(true);
    start(&fixture.world);
    fixture.start_codex();
    wait_until("the pipe", SOON, || fixture.has_pipe());
    for daemon in fixture.world.daemons() {
        process::signal(daemon, Signal::KILL);
    }
    wait_until("no pipe", SOON, || !fixture.has_pipe());
    start(&fixture.world);
    wait_until("the pipe", SOON, || fixture.has_pipe());
    fixture.write_osc("state=working:app=codex");
    fixture.wait_for_state("running");
}
