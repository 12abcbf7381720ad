//! A tmux server under test and its panes according to tmux.

use std::time::Duration;

use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

/// Timeout for tmux commands.
const TMUX_TIMEOUT: Duration = Duration::from_secs(30);

/// The title is last because it may contain the separator.
const FORMAT: &str = "#{pid}|#{session_id}|#{session_name}|#{window_id}|#{window_name}|#{pane_id}|#{pane_pid}|\
                      #{pane_dead}|#{pane_title}";

/// The program in every pane. It prints only its input.
pub(crate) const PROGRAM: &str = "exec cat";

#[derive(Debug)]
pub(crate) struct ModelServer {
    server: TestTmuxServer,
    keeps_dead_panes: bool,
    pid: Option<u32>,
    panes: Vec<TmuxPaneRow>,
}

/// One row of `list-panes -a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TmuxPaneRow {
    pub(crate) session: String,
    pub(crate) session_name: String,
    pub(crate) window: String,
    pub(crate) window_name: String,
    pub(crate) id: String,
    pub(crate) pid: u32,
    pub(crate) dead: bool,
    pub(crate) title: String,
}

/// An action on a server.
#[derive(Debug, Clone)]
pub(crate) enum ServerAction {
    Start {
        session: String,
    },
    Tmux(Vec<String>),
    /// Kills the first process of this pane with SIGKILL, without tmux.
    KillPaneProcess {
        pane: String,
    },
    /// Sets the title through output of the program in the pane.
    SetTitle {
        pane: String,
        title: String,
    },
    KillServer,
    Restart {
        session: String,
    },
    /// Kills the server with SIGKILL, which leaves its socket. Then starts a new server, which uses the same ids again.
    CrashAndRestart {
        session: String,
    },
}

impl ModelServer {
    /// Does not start the server.
    pub(crate) fn new(world: &TestWorld, name: &str, keeps_dead_panes: bool) -> Self {
        Self { server: world.tmux(name), keeps_dead_panes, pid: None, panes: Vec::new() }
    }

    pub(crate) fn name(&self) -> String {
        self.server.name().to_owned()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.pid.is_some()
    }

    /// The panes after the last action, in the order of tmux. Only the actions of the test change them.
    pub(crate) fn panes(&self) -> &[TmuxPaneRow] {
        &self.panes
    }

    /// Performs the action and waits until tmux shows its effect. Returns the error of tmux if tmux refuses the action.
    pub(crate) fn perform(&mut self, action: &ServerAction) -> Result<(), String> {
        match action {
            ServerAction::Start { session } => self.start(session),
            ServerAction::Tmux(words) => self.run(words),
            ServerAction::KillPaneProcess { pane } => self.kill(pane),
            ServerAction::SetTitle { pane, title } => self.set_title(pane, title),
            ServerAction::KillServer => self.kill_server(),
            ServerAction::Restart { session } => self.kill_server().and_then(|()| self.start(session)),
            ServerAction::CrashAndRestart { session } => self.crash().and_then(|()| self.start(session)),
        }
    }

    /// Starts the server without automatic renaming, so that only the test changes names.
    fn start(&mut self, session: &str) -> Result<(), String> {
        let remain_on_exit = if self.keeps_dead_panes { "on" } else { "off" };
        let words = ["new-session", "-d", "-x", "80", "-y", "24", "-s", session, PROGRAM, ";"];
        let options = ["set", "-wg", "automatic-rename", "off", ";", "set", "-wg", "remain-on-exit", remain_on_exit];
        let words: Vec<String> = words.iter().chain(&options).map(|word| (*word).to_owned()).collect();
        self.run(&words)
    }

    /// Runs the command and the listing in one tmux call. A second call would make agtmux list the server once more,
    /// and the test would not notice a change that agtmux had missed.
    fn run(&mut self, words: &[String]) -> Result<(), String> {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend([";", "list-panes", "-a", "-F", FORMAT]);
        match self.server.try_run(&words) {
            Ok(answer) if !answer.is_empty() => self.update_panes(&answer),
            Ok(_) => self.wait_for_exit(),
            Err(error) => self.check_refusal(error)?,
        }
        Ok(())
    }

    fn update_panes(&mut self, answer: &str) {
        let rows: Vec<(u32, TmuxPaneRow)> = answer.lines().map(parse).collect();
        self.pid = rows.first().map(|(pid, _)| *pid);
        self.panes = rows.into_iter().map(|(_, pane)| pane).collect();
    }

    /// Decides whether tmux refused the command, or whether the command removed the last session and ended the server.
    fn check_refusal(&mut self, error: String) -> Result<(), String> {
        let Some(pid) = self.pid else { return Err(error) };
        let ended = wait_for("the server to answer or to end", TMUX_TIMEOUT, || {
            if !process::is_alive(pid) {
                return Some(true);
            }
            self.server.try_run(&["list-sessions"]).is_ok_and(|sessions| !sessions.is_empty()).then_some(false)
        });
        if !ended {
            return Err(error);
        }
        self.wait_for_exit();
        Ok(())
    }

    fn wait_for_exit(&mut self) {
        if let Some(pid) = self.pid.take() {
            wait_until("the server to end", TMUX_TIMEOUT, || !process::is_alive(pid));
        }
        self.panes.clear();
    }

    fn kill(&mut self, pane: &str) -> Result<(), String> {
        let pid = self.panes.iter().find(|row| row.id == pane).map(|row| row.pid).ok_or("no such pane")?;
        process::signal(pid, Signal::KILL);
        wait_until("tmux to notice the killed process", TMUX_TIMEOUT, || {
            self.refresh();
            self.panes.iter().all(|row| row.id != pane || row.dead)
        });
        Ok(())
    }

    fn set_title(&mut self, pane: &str, title: &str) -> Result<(), String> {
        let text = format!("\x1b]2;{title}\x07");
        self.server.try_run(&["send-keys", "-t", pane, "-l", &text, ";", "send-keys", "-t", pane, "Enter"])?;
        wait_until("tmux to see a title", TMUX_TIMEOUT, || {
            self.refresh();
            self.panes.iter().any(|row| row.id == pane && row.title == title)
        });
        Ok(())
    }

    fn refresh(&mut self) {
        match self.server.try_run(&["list-panes", "-a", "-F", FORMAT]) {
            Ok(answer) if !answer.is_empty() => self.update_panes(&answer),
            _ => self.wait_for_exit(),
        }
    }

    fn kill_server(&mut self) -> Result<(), String> {
        self.server.try_run(&["kill-server"])?;
        self.wait_for_exit();
        Ok(())
    }

    fn crash(&mut self) -> Result<(), String> {
        process::signal(self.pid.ok_or("no server")?, Signal::KILL);
        self.wait_for_exit();
        Ok(())
    }
}

fn parse(row: &str) -> (u32, TmuxPaneRow) {
    let fields: Vec<&str> = row.splitn(9, '|').collect();
    let [server, session, session_name, window, window_name, id, pid, dead, title] = fields[..] else {
        panic!("not a row: {row}");
    };
    let pane = TmuxPaneRow {
        session: session.into(),
        session_name: session_name.into(),
        window: window.into(),
        window_name: window_name.into(),
        id: id.into(),
        pid: pid.parse().expect("a pid"),
        dead: dead == "1",
        title: title.into(),
    };
    (server.parse().expect("a pid"), pane)
}
