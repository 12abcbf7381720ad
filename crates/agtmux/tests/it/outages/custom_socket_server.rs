//! A tmux server with its socket outside the default directory.

use std::path::{Path, PathBuf};
use std::process::Command;

use agtmux_testkit::TestWorld;
use agtmux_testkit::agtmux::run;

/// The server is killed on drop, because the world does not track it.
pub(crate) struct CustomSocketServer<'a> {
    world: &'a TestWorld,
    socket: PathBuf,
}

impl<'a> CustomSocketServer<'a> {
    pub(crate) fn new(world: &'a TestWorld, name: &str) -> Self {
        let dir = world.dir().join("elsewhere");
        std::fs::create_dir_all(&dir).expect("the world is writable");
        Self { world, socket: dir.join(name) }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The server name in agtmux: the socket path.
    pub(crate) fn name(&self) -> String {
        self.socket.to_str().expect("a plain path").to_owned()
    }

    /// The value of `$TMUX` in a pane of this server.
    pub(crate) fn tmux_variable(&self) -> String {
        format!("{},{},0", self.name(), self.tmux(&["display-message", "-p", "#{pid}"]))
    }

    #[track_caller]
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let done = run(self.command().args(args));
        assert_eq!(done.code, Some(0), "tmux {args:?}: {}", done.stderr);
        done.text().trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn new_session(&self, name: &str) {
        self.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "-s", name, "cat"]);
    }

    fn command(&self) -> Command {
        let mut command = self.world.command("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command
    }
}

impl Drop for CustomSocketServer<'_> {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.command().arg("kill-server").output();
    }
}
