//! A pane of an agent or a person, and a shared terminal beside it.

use std::process::Command;

use agtmux_testkit::agtmux::{CommandResult, SOON, run, world};
use agtmux_testkit::{TestTmuxServer, TestWorld, skip, wait_for};
use serde_json::Value;

/// Fields are dropped in order: the server before the world.
pub(super) struct MirrorFixture {
    pub(super) server: TestTmuxServer,
    pub(super) world: TestWorld,
    /// The pane from which the commands come.
    pub(super) caller: String,
    pub(super) shell: &'static str,
}

/// Runs a test with each shell that is installed.
pub(super) fn for_each_shell(test: impl Fn(&MirrorFixture)) {
    for shell in ["bash", "zsh", "fish"] {
        if let Some(fixture) = MirrorFixture::with_shell(shell) {
            test(&fixture);
        }
    }
}

impl MirrorFixture {
    pub(super) fn bash() -> Self {
        Self::with_shell("bash").expect("bash is installed")
    }

    /// `None` if the shell is not installed.
    pub(super) fn with_shell(shell: &'static str) -> Option<Self> {
        Self::prepared(shell, |_| {})
    }

    /// Calls `prepare` before the shell is started.
    pub(super) fn prepared(shell: &'static str, prepare: impl Fn(&TestWorld)) -> Option<Self> {
        let fixture = Self::without_terminal(shell, prepare)?;
        let started = fixture.mirror(&["start", "--shell", shell]);
        assert_eq!(started.code, Some(0), "{shell}: {}", started.stderr);
        Some(fixture)
    }

    /// A pane, and no shared terminal.
    pub(super) fn without_terminal(shell: &'static str, prepare: impl Fn(&TestWorld)) -> Option<Self> {
        if !Command::new(shell).args(["-c", "true"]).status().is_ok_and(|status| status.success()) {
            skip(&format!("{shell} is not installed; run scripts/ensure-tools shells"));
            return None;
        }
        let world = world();
        // Without this file, zsh asks a new user questions.
        std::fs::write(world.home().join(".zshrc"), "PS1='%# '\n").expect("the world is writable");
        prepare(&world);
        let server = world.tmux("default");
        let caller = server.new_session("work", "cat");
        server.run(&["resize-window", "-t", "=work:", "-x", "200", "-y", "50"]);
        Some(Self { server, world, caller, shell })
    }

    /// An agtmux command as a process in a pane would run it.
    pub(super) fn command_in(&self, pane: &str, args: &[&str]) -> Command {
        let mut command = self.world.agtmux();
        let tmux = format!("{},{},0", self.server.socket().display(), self.server.pid());
        command.arg("mirror").args(args).env("TMUX", tmux).env("TMUX_PANE", pane).current_dir(self.world.home());
        command
    }

    pub(super) fn command(&self, args: &[&str]) -> Command {
        self.command_in(&self.caller, args)
    }

    #[track_caller]
    pub(super) fn mirror(&self, args: &[&str]) -> CommandResult {
        run(&mut self.command(args))
    }

    #[track_caller]
    pub(super) fn exec(&self, command: &str) -> CommandResult {
        self.mirror(&["exec", "--", command])
    }

    /// Runs a command that must print this and end with this code.
    #[track_caller]
    pub(super) fn assert_exec(&self, command: &str, output: &str, code: i32) {
        let done = self.exec(command);
        let found = (done.text(), done.code);
        assert_eq!(found, (output.to_owned(), Some(code)), "{}: {command}: {}", self.shell, done.stderr);
    }

    #[track_caller]
    pub(super) fn json(&self, args: &[&str]) -> Value {
        let done = self.mirror(args);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", done.text(), done.stderr))
    }

    /// The pane of the shared terminal.
    #[track_caller]
    pub(super) fn pane(&self) -> String {
        let status = self.json(&["status", "--json"]);
        status["items"][0]["pane_id"].as_str().unwrap_or_else(|| panic!("no terminal: {status}")).to_owned()
    }

    /// Types keys as the person does.
    #[track_caller]
    pub(super) fn type_text(&self, text: &str) {
        self.server.run(&["send-keys", "-t", &self.pane(), "-l", "--", text]);
    }

    #[track_caller]
    pub(super) fn press(&self, key: &str) {
        self.server.run(&["send-keys", "-t", &self.pane(), key]);
    }

    #[track_caller]
    pub(super) fn screen(&self) -> String {
        self.server.run(&["capture-pane", "-p", "-J", "-t", &self.pane()])
    }

    #[track_caller]
    pub(super) fn wait_for_screen(&self, what: &str, shows: impl Fn(&str) -> bool) {
        wait_for(what, SOON, || {
            let screen = self.screen();
            if shows(&screen) { Ok(()) } else { Err(screen) }
        });
    }

    #[track_caller]
    pub(super) fn wait_for_status(&self, status: &str) -> Value {
        wait_for(&format!("the status {status}"), SOON, || {
            let item = self.json(&["status", "--json"])["items"][0].clone();
            if item["status"] == status { Ok(item) } else { Err(item.to_string()) }
        })
    }

    /// The commands of the person, once there are this many.
    #[track_caller]
    pub(super) fn activity(&self, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} commands of the person"), SOON, || {
            let activity = self.json(&["activity", "--json", "--limit", "1000"]);
            let items = activity["items"].as_array().cloned().unwrap_or_default();
            if items.len() >= count { Ok(items) } else { Err(activity.to_string()) }
        })
    }
}
