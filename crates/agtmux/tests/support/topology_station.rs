//! One tmux server that things are done to, and what it says is there.

use std::time::Duration;

use agtmux_testkit::{TestTmuxServer, TestWorld, process, wait_for, wait_until};
use rustix::process::Signal;

/// More than tmux needs for anything.
const TMUX_TIMEOUT: Duration = Duration::from_secs(30);

/// The title comes last: it may hold anything but a newline.
const FORMAT: &str = "#{pid}|#{session_id}|#{session_name}|#{window_id}|#{window_name}|#{pane_id}|#{pane_pid}|\
                      #{pane_dead}|#{pane_title}";

/// What runs in every pane: it prints what it is given, and nothing by itself.
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

/// Something to do to a server.
#[derive(Debug, Clone)]
pub(crate) enum ServerAction {
    Start {
        session: String,
    },
    Tmux(Vec<String>),
    /// Of the first process of this pane, behind tmux's back.
    KillPaneProcess {
        pane: String,
    },
    /// By the program in the pane.
    SetTitle {
        pane: String,
        title: String,
    },
    KillServer,
    Restart {
        session: String,
    },
    /// With a socket left behind, and ids that begin anew.
    CrashAndRestart {
        session: String,
    },
}

impl ModelServer {
    /// No server runs yet.
    pub(crate) fn new(world: &TestWorld, name: &str, keeps_dead_panes: bool) -> Self {
        Self { server: world.tmux(name), keeps_dead_panes, pid: None, panes: Vec::new() }
    }

    pub(crate) fn name(&self) -> String {
        self.server.name().to_owned()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.pid.is_some()
    }

    /// As they were after the last deed, in tmux's order. Nothing happens by itself in between.
    pub(crate) fn panes(&self) -> &[TmuxPaneRow] {
        &self.panes
    }

    /// Returns when it is done and tmux shows it; an error says why tmux refused.
    pub(crate) fn perform(&mut self, deed: &ServerAction) -> Result<(), String> {
        match deed {
            ServerAction::Start { session } => self.start(session),
            ServerAction::Tmux(words) => self.run(words),
            ServerAction::KillPaneProcess { pane } => self.kill(pane),
            ServerAction::SetTitle { pane, title } => self.set_title(pane, title),
            ServerAction::KillServer => self.kill_server(),
            ServerAction::Restart { session } => self.kill_server().and_then(|()| self.start(session)),
            ServerAction::CrashAndRestart { session } => self.crash().and_then(|()| self.start(session)),
        }
    }

    /// Names change only when somebody changes them: those that tmux gives by itself come at any time.
    fn start(&mut self, session: &str) -> Result<(), String> {
        let keeps = if self.keeps_dead_panes { "on" } else { "off" };
        let words = ["new-session", "-d", "-x", "80", "-y", "24", "-s", session, PROGRAM, ";"];
        let options = ["set", "-wg", "automatic-rename", "off", ";", "set", "-wg", "remain-on-exit", keeps];
        let words: Vec<String> = words.iter().chain(&options).map(|word| (*word).to_owned()).collect();
        self.run(&words)
    }

    /// The command and the listing are one call: a server that is asked often would be looked at often, and hide what
    /// agtmux misses.
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

    /// Either the command was refused, or it took away the last session and the server went with it.
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
            wait_until("the end of a server without sessions", TMUX_TIMEOUT, || !process::is_alive(pid));
        }
        self.panes.clear();
    }

    fn kill(&mut self, pane: &str) -> Result<(), String> {
        let pid = self.panes.iter().find(|row| row.id == pane).map(|row| row.pid).ok_or("no such pane")?;
        process::signal(pid, Signal::KILL);
        wait_until("tmux to see a process's end", TMUX_TIMEOUT, || {
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
