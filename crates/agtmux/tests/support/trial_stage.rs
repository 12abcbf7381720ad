//! The same story told on two servers, one with the daemon and one without.

use agtmux_testkit::{AttachedClient, TestWorld, process, wait_for, wait_until};

use super::agtmux::{SOON, start, wait_for_hooks, world};
use super::user::UserServer;

/// A user with three clients on the session `shared`.
pub(crate) struct UserScenario<'a> {
    pub(crate) world: &'a TestWorld,
    pub(crate) user: &'a UserServer,
    pub(crate) with_daemon: bool,
    clients: Vec<AttachedClient>,
    server_pid: u32,
    notes: Vec<String>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScenarioRecord {
    pub(crate) notes: Vec<String>,
    pub(crate) log: String,
}

/// Plays it without and with the daemon, and fails unless the same came of it.
#[track_caller]
pub(crate) fn compare_with_and_without_daemon(story: impl Fn(&mut UserScenario<'_>)) -> ScenarioRecord {
    let without = run_scenario(&story, false);
    let with = run_scenario(&story, true);
    assert_eq!(with, without, "with the daemon (left) and without (right)");
    without
}

fn run_scenario(story: &impl Fn(&mut UserScenario<'_>), with_daemon: bool) -> ScenarioRecord {
    let world = world();
    let user = UserServer::new(&world);
    let clients = (0..3).map(|_| user.server.attach("shared")).collect();
    if with_daemon {
        start(&world);
        wait_for_hooks(&world, "default");
    }
    let server_pid = user.server.pid();
    let mut stage = UserScenario { world: &world, user: &user, with_daemon, clients, server_pid, notes: Vec::new() };
    stage.record("the beginning");
    story(&mut stage);
    ScenarioRecord { notes: stage.notes, log: user.log() }
}

impl UserScenario<'_> {
    /// Notes what a user would see now.
    pub(crate) fn record(&mut self, when: &str) {
        let server = &self.user.server;
        // Without a session tmux refuses some of these; its refusal is what a user sees then.
        let ask = |question: &[&str]| server.try_run(question).unwrap_or_else(|refusal| refusal).replace('\n', " ");
        let sessions = ask(&["list-sessions", "-F", "#{session_name}"]);
        let attached = ask(&["list-sessions", "-F", "#{session_attached}"]);
        let windows = ask(&["list-windows", "-a", "-F", "#{window_width}x#{window_height}#{window_flags}"]);
        let buffers = ask(&["list-buffers", "-F", "#{buffer_name}"]);
        let at: Vec<String> = (0..self.clients.len()).map(|n| self.session_of(n).unwrap_or("nowhere".into())).collect();
        let same = if server.pid() == self.server_pid { "the same" } else { "another" };
        self.notes.push(format!(
            "{when}: {same} server; sessions {sessions}; attached {attached}; windows {windows}; \
             buffers {buffers}; clients at {}",
            at.join(" ")
        ));
    }

    fn session_of(&self, client: usize) -> Option<String> {
        let rows = self.user.server.try_run(&["list-clients", "-F", "#{client_pid} #{client_session}"]).ok()?;
        let mine = format!("{} ", self.clients[client].pid());
        rows.lines().find_map(|row| row.strip_prefix(&mine)).map(str::to_owned)
    }

    fn name_of(&self, client: usize) -> String {
        let rows = self.user.server.run(&["list-clients", "-F", "#{client_pid} #{client_name}"]);
        let mine = format!("{} ", self.clients[client].pid());
        rows.lines().find_map(|row| row.strip_prefix(&mine)).expect("the client is attached").to_owned()
    }

    /// Detaches the last of the clients.
    pub(crate) fn detach_client_and_wait(&mut self) {
        self.detach_client();
        self.wait_for_clients();
    }

    /// The same, but not in an orderly way.
    pub(crate) fn close_terminal(&mut self) {
        drop(self.clients.pop());
        self.wait_for_clients();
    }

    fn wait_for_clients(&self) {
        let left = self.clients.len();
        wait_until("a client less", SOON, || self.user.server.client_pids().len() == left);
    }

    /// The same where the server may end with it.
    pub(crate) fn detach_client(&mut self) {
        let last = self.clients.len() - 1;
        let name = self.name_of(last);
        self.user.server.run(&["detach-client", "-t", &name]);
        self.clients.truncate(last);
    }

    pub(crate) fn switch_client(&self, client: usize, how: &[&str]) {
        let before = self.session_of(client);
        self.user.server.run(&[&["switch-client", "-c", &self.name_of(client)], how].concat());
        wait_until("the client in another session", SOON, || self.session_of(client) != before);
    }

    /// Returns when nobody is there any more.
    pub(crate) fn kill_session(&self, session: &str) {
        self.user.server.run(&["kill-session", "-t", &format!("={session}")]);
        wait_for("every client elsewhere", SOON, || {
            let at: Vec<_> = (0..self.clients.len()).map(|n| self.session_of(n)).collect();
            if at.iter().any(|at| at.as_deref() == Some(session)) { Err(at) } else { Ok(()) }
        });
    }

    pub(crate) fn wait_for_end(&self) {
        wait_until("the server's end", SOON, || !process::is_alive(self.server_pid));
    }
}
