//! Runs a scenario on two tmux servers, one with the daemon and one without, and compares them.

use agtmux_testkit::agtmux::{SOON, start, wait_for_hooks, world};
use agtmux_testkit::{AttachedClient, TestWorld, process, wait_for, wait_until};

use super::user_server::UserServer;

/// A user with three clients on the session `shared`.
pub(crate) struct UserScenario<'a> {
    pub(crate) world: &'a TestWorld,
    pub(crate) user: &'a UserServer,
    pub(crate) with_daemon: bool,
    clients: Vec<AttachedClient>,
    server_pid: u32,
    notes: Vec<String>,
}

/// The visible state after each step and the log of the user's hooks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScenarioRecord {
    pub(crate) notes: Vec<String>,
    pub(crate) log: String,
}

/// Runs the scenario without and with the daemon. Panics if the records differ.
#[track_caller]
pub(crate) fn compare_with_and_without_daemon(steps: impl Fn(&mut UserScenario<'_>)) -> ScenarioRecord {
    let without = run_scenario(&steps, false);
    let with = run_scenario(&steps, true);
    assert_eq!(with, without, "with the daemon (left) and without (right)");
    without
}

fn run_scenario(steps: &impl Fn(&mut UserScenario<'_>), with_daemon: bool) -> ScenarioRecord {
    let world = world();
    let user = UserServer::new(&world);
    let clients = (0..3).map(|_| user.server.attach("shared")).collect();
    if with_daemon {
        start(&world);
        wait_for_hooks(&world, "default");
    }
    let server_pid = user.server.pid();
    let mut scenario = UserScenario { world: &world, user: &user, with_daemon, clients, server_pid, notes: Vec::new() };
    scenario.record("at the start");
    steps(&mut scenario);
    ScenarioRecord { notes: scenario.notes, log: user.log() }
}

impl UserScenario<'_> {
    /// Records the state that a user sees now.
    pub(crate) fn record(&mut self, when: &str) {
        let server = &self.user.server;
        // Without a session tmux refuses some commands; record the error then.
        let query = |command: &[&str]| server.try_run(command).unwrap_or_else(|error| error).replace('\n', " ");
        let sessions = query(&["list-sessions", "-F", "#{session_name}"]);
        let attached = query(&["list-sessions", "-F", "#{session_attached}"]);
        let windows = query(&["list-windows", "-a", "-F", "#{window_width}x#{window_height}#{window_flags}"]);
        let buffers = query(&["list-buffers", "-F", "#{buffer_name}"]);
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
        let prefix = format!("{} ", self.clients[client].pid());
        rows.lines().find_map(|row| row.strip_prefix(&prefix)).map(str::to_owned)
    }

    fn name_of(&self, client: usize) -> String {
        let rows = self.user.server.run(&["list-clients", "-F", "#{client_pid} #{client_name}"]);
        let prefix = format!("{} ", self.clients[client].pid());
        rows.lines().find_map(|row| row.strip_prefix(&prefix)).expect("the client is attached").to_owned()
    }

    /// Detaches the last client and waits until it is gone.
    pub(crate) fn detach_client_and_wait(&mut self) {
        self.detach_client();
        self.wait_for_clients();
    }

    /// Closes the terminal of the last client and waits until it is gone.
    pub(crate) fn close_terminal(&mut self) {
        drop(self.clients.pop());
        self.wait_for_clients();
    }

    fn wait_for_clients(&self) {
        let left = self.clients.len();
        wait_until("one client less", SOON, || self.user.server.client_pids().len() == left);
    }

    /// Detaches the last client without waiting, because the server may end with it.
    pub(crate) fn detach_client(&mut self) {
        let last = self.clients.len() - 1;
        let name = self.name_of(last);
        self.user.server.run(&["detach-client", "-t", &name]);
        self.clients.truncate(last);
    }

    pub(crate) fn switch_client(&self, client: usize, arguments: &[&str]) {
        let before = self.session_of(client);
        self.user.server.run(&[&["switch-client", "-c", &self.name_of(client)], arguments].concat());
        wait_until("the client to switch its session", SOON, || self.session_of(client) != before);
    }

    /// Kills a session and waits until no client shows it.
    pub(crate) fn kill_session(&self, session: &str) {
        self.user.server.run(&["kill-session", "-t", &format!("={session}")]);
        wait_for("every client to leave the session", SOON, || {
            let at: Vec<_> = (0..self.clients.len()).map(|n| self.session_of(n)).collect();
            if at.iter().any(|at| at.as_deref() == Some(session)) { Err(at) } else { Ok(()) }
        });
    }

    pub(crate) fn wait_for_end(&self) {
        wait_until("the server to end", SOON, || !process::is_alive(self.server_pid));
    }
}
