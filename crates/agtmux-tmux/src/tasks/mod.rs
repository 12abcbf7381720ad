//! Sessions that are ours, and the windows in them in which tasks run.
//!
//! A name is matched exactly (`=name`), and only to find the session; whatever is done is done to ids of one life of one server,
//! in the same step in which the server checks that it is still that one.

mod cursor;
mod launch;
mod read;

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::command::{Framing, TmuxCommand};
use crate::server::{TmuxError, TmuxServer};
use crate::sockets::SocketDir;

pub use cursor::CursorScreen;
pub use launch::{LaunchedPane, TRUNCATION_MARK, TaskLaunch};
pub use read::{TaskPane, TmuxTaskSession};

/// What is stored with a session: whose it is. A name is no proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSessionOwner {
    /// Which user's which agtmux.
    pub owner_id: String,
    pub project: String,
    /// The program that the session was made for.
    pub process: String,
}

pub(crate) const OWNER: &str = "@agtmux_owner";
pub(crate) const PROJECT: &str = "@agtmux_project";
pub(crate) const OWNER_PID: &str = "@agtmux_owner_pid";
pub(crate) const RUN: &str = "@agtmux_run";
/// In the place of a run: the window was made for one that is not started yet.
pub(crate) const NO_RUN_YET: &str = ".";
/// Of the pane in which a task was started, and of no other in its window.
pub(crate) const TASK_PANE: &str = "@agtmux_task_pane";
pub(crate) const COMMAND: &str = "@pi_task_command";
pub(crate) const CWD: &str = "@pi_task_cwd";
pub(crate) const BELLS: &str = "@pi_bell_count";

/// Why a task was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("its window is gone, or another tmux server has taken the place of its own, or it came to it too late")]
    Gone,
    #[error(transparent)]
    Tmux(#[from] TmuxError),
}

/// Where `tmux` without further words finds its server.
pub fn default_socket(tmpdir: Option<&OsStr>) -> PathBuf {
    SocketDir::below(tmpdir).path().join("default")
}

/// A word that sh, bash, zsh and fish read as just this word. Between quotes fish takes a backslash for more than a backslash, so it
/// stands outside of them; zsh has a use for `=` and fish for `%` at the beginning.
pub fn quoted_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let character = |c: char| match c {
        '\'' => "'\\''".to_owned(),
        '\\' => "'\\\\'".to_owned(),
        c => c.to_string(),
    };
    format!("'{}'", word.chars().map(character).collect::<String>())
}

impl TmuxServer {
    /// The session of this name with all its panes, or none where there is no such session, or no server.
    pub async fn task_session(&self, name: &str) -> Result<Option<TmuxTaskSession>, TmuxError> {
        let framing = Framing::fresh();
        match self.run(&[read::list_command(&framing, Some(name))]).await {
            // Whatever tmux takes the name for, it is that session or none.
            Ok(answer) => Ok(read::parse_sessions(&framing, &answer).into_iter().find(|session| session.name == name)),
            Err(error) => accept_missing(error).map(|()| None),
        }
    }

    /// A server that missed the end of one child hears of it with the end of the next: here is one that ends at once.
    pub async fn reap_children(&self) -> Result<(), TmuxError> {
        self.run(&[TmuxCommand::new("run-shell").arg("true")]).await.map(drop)
    }

    /// Every session that some agtmux has made.
    pub async fn task_sessions(&self) -> Result<Vec<TmuxTaskSession>, TmuxError> {
        let framing = Framing::fresh();
        match self.run(&[read::list_command(&framing, None)]).await {
            Ok(answer) => {
                let all = read::parse_sessions(&framing, &answer);
                Ok(all.into_iter().filter(|session| !session.owner.owner_id.is_empty()).collect())
            }
            Err(error) => accept_missing(error).map(|()| Vec::new()),
        }
    }

    /// Makes the session with a first window that waits for its program, and the server where there is none.
    pub async fn create_task_session(
        &self,
        session: &str,
        task: &str,
        keeper: &TaskSessionOwner,
    ) -> Result<(), TmuxError> {
        self.run_or_start_server(&launch::new_session(session, task, keeper)).await.map(drop)
    }

    /// Writes down for which process a session is kept from now on.
    pub async fn set_task_session_owner_pid(
        &self,
        server: (u32, i64),
        session: u32,
        process: &str,
    ) -> Result<(), TmuxError> {
        let set = TmuxCommand::new("set-option").arg("-t").arg(format!("${session}")).arg(OWNER_PID).arg(process);
        self.run(&[self.if_same_server(server, &set)]).await.map(drop)
    }

    /// Makes one more window that waits for its program, behind the others. Others may have its name.
    pub async fn create_task_window(&self, session: &str, task: &str) -> Result<u32, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&launch::new_window(&framing, session, task)).await?;
        let unreadable = || TmuxError::Unreadable("the number of the window is missing".into());
        launch::parse_new_window(&framing, &answer).ok_or_else(unreadable)
    }

    /// Starts a program in a window of ours in place of what runs there. Its output is piped from its first byte on: the pipe
    /// is opened before the server reads again.
    pub async fn launch_task(&self, launch: &TaskLaunch<'_>) -> Result<LaunchedPane, LaunchError> {
        let framing = Framing::fresh();
        let until = self.deadline_second(None);
        let answer = self.run(&[launch::launch_command(&framing, until, launch)]).await?;
        launch::parse_launched(&framing, &answer).ok_or(LaunchError::Gone)
    }

    /// Where the cursors of some panes stand. Panes that are gone are missing, and may be the reason why others are.
    pub async fn cursor_screens(&self, panes: &[u32]) -> Result<Vec<CursorScreen>, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&cursor::capture_commands(&framing, panes)).await?;
        Ok(cursor::parse_screens(&framing, &answer))
    }

    /// Windows that stay when their programs have ended, from now on, if that server still lives.
    pub async fn set_remain_on_exit(&self, server: (u32, i64), windows: &[u32]) -> Result<(), TmuxError> {
        let keep = |window: &u32| {
            let set = TmuxCommand::new("set-option").arg("-w").arg("-t").arg(format!("@{window}"));
            self.if_same_server(server, &set.arg("remain-on-exit").arg("on"))
        };
        self.run(&windows.iter().map(keep).collect::<Vec<_>>()).await.map(drop)
    }

    /// Kills windows, if that server still lives. Those that are gone are none.
    pub async fn kill_windows(&self, server: (u32, i64), windows: &[u32]) -> Result<(), TmuxError> {
        for window in windows {
            let kill = TmuxCommand::new("kill-window").arg("-t").arg(format!("@{window}"));
            match self.run(&[self.if_same_server(server, &kill)]).await {
                Err(TmuxError::Failed(said)) if is_missing(&said) => {}
                done => drop(done?),
            }
        }
        Ok(())
    }

    /// Kills a session by its id, if that server still lives.
    pub async fn kill_session(&self, server: (u32, i64), session: u32) -> Result<(), TmuxError> {
        let kill = TmuxCommand::new("kill-session").arg("-t").arg(format!("${session}"));
        match self.run(&[self.if_same_server(server, &kill)]).await {
            Err(TmuxError::Failed(said)) if is_missing(&said) => Ok(()),
            done => done.map(drop),
        }
    }

    fn if_same_server(&self, (pid, start): (u32, i64), command: &TmuxCommand) -> TmuxCommand {
        let until = self.deadline_second(None);
        let is_it = launch::server_matches(pid, start, until);
        TmuxCommand::new("if-shell").arg("-F").arg(is_it).arg(command.line())
    }
}

/// That there is no such session is an answer; that the server cannot be read is none.
fn accept_missing(error: TmuxError) -> Result<(), TmuxError> {
    match error {
        TmuxError::NoServer => Ok(()),
        TmuxError::Failed(said) if is_missing(&said) => Ok(()),
        error => Err(error),
    }
}

fn is_missing(said: &str) -> bool {
    said.contains("can't find") || said.contains("no current target") || said.contains("no such")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_they_need_it() {
        assert_eq!(quoted_for_shell("a-b_c.d/e"), "a-b_c.d/e");
        assert_eq!(quoted_for_shell("=ls"), "'=ls'");
        assert_eq!(quoted_for_shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted_for_shell(""), "''");
    }

    #[test]
    fn every_shell_here_takes_a_quoted_word_as_it_is() {
        let words = ["plain", "it's", "a\\b", "\\", "'", "a\\'b", "$HOME `x` $(y)", "a  b\"c", "!x #y ~", "ü日本"];
        for word in words.into_iter().chain(["=ls", "%self", "a=b", "{a,b}", "*", "~", "^x", "-"]) {
            for shell in ["sh", "bash", "zsh", "fish", "dash"] {
                let line = format!("printf %s {}", quoted_for_shell(word));
                let Ok(said) = std::process::Command::new(shell).args(["-c", &line]).output() else { continue };
                assert_eq!(String::from_utf8_lossy(&said.stdout), word, "{shell}: {line}");
            }
        }
    }

    #[test]
    fn a_missing_session_is_no_fault_and_a_server_that_fails_is() {
        assert_eq!(accept_missing(TmuxError::Failed("can't find session: x".into())), Ok(()));
        assert_eq!(accept_missing(TmuxError::NoServer), Ok(()));
        assert!(accept_missing(TmuxError::Failed("server is on fire".into())).is_err());
    }
}
