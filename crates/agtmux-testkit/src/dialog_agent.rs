//! A fake agent that shows dialogs. The test draws the dialogs.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::agtmux::{SOON, items, list, start, world};
use crate::{TestTmuxServer, TestWorld, wait_for};

/// A fake agent that shows what the test draws and records the keys it gets.
pub struct DialogAgent {
    pub world: TestWorld,
    pub server: TestTmuxServer,
    pub pane: String,
    tty: PathBuf,
    keys: PathBuf,
}

impl DialogAgent {
    pub fn start() -> Self {
        Self::start_as("claude")
    }

    pub fn start_as(agent: &str) -> Self {
        let world = world();
        let (keys, program) = (world.dir().join("keys"), world.shell_copy(agent));
        let server = world.tmux("default");
        let command = format!("exec {} -c 'stty raw -echo; cat >>{}'", program.display(), keys.display());
        let pane = server.new_session("work", &command);
        server.run(&["resize-window", "-t", "=work:", "-x", "120", "-y", "40"]);
        let tty = server.run(&["display-message", "-p", "-t", &pane, "#{pane_tty}"]).trim().into();
        start(&world);
        wait_for("the fake agent to start", SOON, || keys.exists().then_some(()));
        Self { world, server, pane, tty, keys }
    }

    pub fn draw(&self, rows: &str) {
        let mut tty = fs::OpenOptions::new().write(true).open(&self.tty).expect("the pane's terminal");
        let screen = format!("\x1b[2J\x1b[H{}", rows.replace('\n', "\r\n"));
        tty.write_all(screen.as_bytes()).expect("drawn");
        self.wait_for_row(rows.trim_end().lines().next_back().expect("a row").trim());
    }

    pub fn wait_for_row(&self, row: &str) {
        let shown = || self.server.run(&["capture-pane", "-p", "-t", &self.pane]);
        wait_for("the row on the screen", SOON, || shown().contains(row).then_some(()));
    }

    pub fn ask_permission(&self, command: &str) {
        self.draw(&permission_dialog(command));
    }

    /// The dialog that agtmux lists, or null.
    pub fn dialog(&self) -> Value {
        let listing = list(&self.world);
        let item = items(&listing).iter().find(|item| item["identity"]["pane_id"] == self.pane.as_str());
        item.map(|item| item["dialog"].clone()).unwrap_or_default()
    }

    pub fn wait_for_dialog(&self, about: &str) -> String {
        let listed = || Some(self.dialog()).filter(|dialog| dialog.to_string().contains(about));
        let dialog = wait_for(&format!("a dialog about {about}"), SOON, listed);
        dialog["fingerprint"].as_str().expect("a dialog has a fingerprint").to_owned()
    }

    pub fn typed(&self) -> String {
        fs::read_to_string(&self.keys).unwrap_or_default()
    }
}

pub fn permission_dialog(command: &str) -> String {
    let rule = "─".repeat(100);
    format!(
        "{rule}\n Bash command\n\n   {command}\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, always\n   3. No\n\n \
         Esc to cancel · Tab to amend {command}"
    )
}
