//! Private tmux servers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use crate::child::output_within;
use crate::client::AttachedClient;
use crate::environment::TestEnvironment;
use crate::process;
use crate::wait::{wait_for, wait_until};

/// The time limit for one tmux command. A server exceeds it only if it is stopped or broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// A tmux server of one test world. It does not read the user's configuration. The server starts when its first session
/// is created.
#[derive(Debug, Clone)]
pub struct TestTmuxServer {
    environment: Arc<TestEnvironment>,
    name: String,
    socket: PathBuf,
}

/// One row of `list-panes -a`. A pane whose window is linked into several sessions has several rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestPane {
    pub pane_id: String,
    pub window_id: String,
    pub session_id: String,
    pub window_index: u32,
    pub pane_index: u32,
    pub pid: u32,
    pub dead: bool,
    pub tty: String,
    pub session_name: Vec<u8>,
    pub window_name: Vec<u8>,
    pub title: Vec<u8>,
    pub cwd: Vec<u8>,
    pub command: Vec<u8>,
}

const PANE_FIELDS: [&str; 13] = [
    "pane_id",
    "window_id",
    "session_id",
    "window_index",
    "pane_index",
    "pane_pid",
    "pane_dead",
    "pane_tty",
    "session_name",
    "window_name",
    "pane_title",
    "pane_current_path",
    "pane_current_command",
];

impl TestTmuxServer {
    pub(crate) fn new(environment: Arc<TestEnvironment>, name: &str) -> Self {
        let socket = environment.sockets().join(name);
        Self { environment, name: name.into(), socket }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A tmux command for this server.
    pub fn command(&self) -> Command {
        let mut command = self.environment.command("tmux");
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command
    }

    /// A command that runs another program in the environment of this world.
    pub(crate) fn command_for(&self, program: &str) -> Command {
        self.environment.command(program)
    }

    /// Runs a tmux command and returns its output. Fails the test if the command fails.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> String {
        match self.try_run(args) {
            Ok(answer) => answer,
            Err(error) => panic!("tmux {args:?} on server {}: {error}", self.name),
        }
    }

    pub fn try_run(&self, args: &[&str]) -> Result<String, String> {
        self.try_run_bytes(args).map(|answer| String::from_utf8_lossy(&answer).trim_end_matches('\n').to_owned())
    }

    /// Runs a tmux command and returns its exact output.
    pub fn try_run_bytes(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let output = output_within(self.command().args(args), ANSWER_TIMEOUT).ok_or("no answer")?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(format!("{}, {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end()))
    }

    pub fn is_running(&self) -> bool {
        self.try_run(&["list-sessions"]).is_ok()
    }

    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.run(&["display-message", "-p", "#{pid}"]).parse().expect("tmux prints its pid")
    }

    /// Stops the server with SIGSTOP, so that it does not answer. Returns its pid, which [`TestTmuxServer::cont`]
    /// needs.
    #[track_caller]
    pub fn stop(&self) -> u32 {
        let pid = self.pid();
        assert!(process::signal(pid, Signal::STOP), "server {} has ended", self.name);
        wait_until("the server to stop", ANSWER_TIMEOUT, || process::is_stopped(pid));
        pid
    }

    #[track_caller]
    pub fn cont(&self, pid: u32) {
        assert!(process::signal(pid, Signal::CONT), "server {} has ended", self.name);
        wait_until("the server to continue", ANSWER_TIMEOUT, || !process::is_stopped(pid));
    }

    /// Kills the server and waits until it has ended.
    #[track_caller]
    pub fn kill_server(&self) {
        let pid = self.pid();
        self.run(&["kill-server"]);
        wait_until("the server's end", ANSWER_TIMEOUT, || !process::is_alive(pid));
    }

    /// Starts a detached session with 80 columns and 24 rows. It runs this command, or a shell if the command is empty.
    /// Returns the pane id.
    #[track_caller]
    pub fn new_session(&self, name: &str, command: &str) -> String {
        let mut args = vec!["new-session", "-d", "-P", "-F", "#{pane_id}", "-x", "80", "-y", "24", "-s", name];
        args.extend(Some(command).filter(|command| !command.is_empty()));
        self.run(&args)
    }

    /// All panes, in the order in which tmux lists them.
    #[track_caller]
    pub fn panes(&self) -> Vec<TestPane> {
        self.rows(&["list-panes", "-a"], &PANE_FIELDS).into_iter().map(TestPane::from_row).collect()
    }

    /// The values of these formats, one row for each item that tmux lists. tmux prints the length of each value before
    /// the value, so a value can contain any bytes.
    #[track_caller]
    pub fn rows(&self, list: &[&str], formats: &[&str]) -> Vec<Vec<Vec<u8>>> {
        let framed: String = formats.iter().map(|name| format!("#{{n:{name}}}:#{{{name}}}")).collect();
        // A value can change after tmux has printed its length, for example when a program executes another one. Such a
        // row is unreadable, so try again.
        wait_for("rows that can be read", ANSWER_TIMEOUT, || {
            let answer = match self.try_run_bytes(&[list, &["-F", &framed]].concat()) {
                Ok(answer) => answer,
                Err(error) => panic!("tmux {list:?} on server {}: {error}", self.name),
            };
            parse_rows(&answer, formats.len()).ok_or_else(|| answer.escape_ascii().to_string())
        })
    }

    /// Attaches a real client with its own terminal to a session.
    #[track_caller]
    pub fn attach(&self, session: &str) -> AttachedClient {
        let client = AttachedClient::start(self, session);
        wait_until("the client to be attached", ANSWER_TIMEOUT, || self.client_pids().contains(&client.pid()));
        client
    }

    #[track_caller]
    pub fn client_pids(&self) -> Vec<u32> {
        let clients = self.run(&["list-clients", "-F", "#{client_pid}"]);
        clients.lines().map(|pid| pid.parse().expect("a pid")).collect()
    }
}

impl TestPane {
    fn from_row(row: Vec<Vec<u8>>) -> Self {
        let texts: Vec<String> = row.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
        let number = |index: usize| texts[index].parse().unwrap_or_default();
        let [.., session_name, window_name, title, cwd, command] = &row[..] else { unreachable!("thirteen values") };
        Self {
            pane_id: texts[0].clone(),
            window_id: texts[1].clone(),
            session_id: texts[2].clone(),
            window_index: number(3),
            pane_index: number(4),
            pid: number(5),
            dead: texts[6] == "1",
            tty: texts[7].clone(),
            session_name: session_name.clone(),
            window_name: window_name.clone(),
            title: title.clone(),
            cwd: cwd.clone(),
            command: command.clone(),
        }
    }
}

fn parse_rows(mut answer: &[u8], columns: usize) -> Option<Vec<Vec<Vec<u8>>>> {
    let mut rows = Vec::new();
    while !answer.is_empty() {
        let mut row = Vec::with_capacity(columns);
        for _ in 0..columns {
            let colon = answer.iter().position(|b| *b == b':')?;
            let length: usize = std::str::from_utf8(&answer[..colon]).ok()?.parse().ok()?;
            let rest = &answer[colon + 1..];
            row.push(rest.get(..length)?.to_vec());
            answer = &rest[length..];
        }
        answer = answer.strip_prefix(b"\n")?;
        rows.push(row);
    }
    Some(rows)
}
