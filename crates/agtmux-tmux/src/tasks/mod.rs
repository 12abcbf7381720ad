//! Task sessions and the windows in which tasks run.
//!
//! agtmux finds a session by its exact name (`=name`). A change names its target by an id, which is valid in one server
//! generation only. tmux checks the generation in the same step as it makes the change.

mod cursor;
mod launch;
mod read;

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::command::{Framing, TmuxCommand};
use crate::host::quoted;
use crate::server::{TmuxError, TmuxServer};
use crate::sockets::SocketDir;

pub use cursor::CursorScreen;
pub(crate) use launch::{DONE, PLACEHOLDER_PROGRAM, parse_launched, pipe_command, server_matches_before};
pub use launch::{LaunchedPane, TRUNCATION_MARK, TaskLaunch};
pub use read::{TaskPane, TmuxTaskSession};

/// The owner of a session. agtmux stores the owner in tmux options, because any user or program can create a session
/// with the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSessionOwner {
    /// Identifies the user and the agtmux instance that own the session.
    pub owner_id: String,
    pub project: String,
    /// The pid and start time of the process that owns the session. Empty if agtmux does not know the process.
    pub process: String,
}

pub(crate) const OWNER: &str = "@agtmux_owner";
pub(crate) const PROJECT: &str = "@agtmux_project";
pub(crate) const OWNER_PID: &str = "@agtmux_owner_pid";
pub(crate) const RUN: &str = "@agtmux_run";
/// The value of the option `RUN` while agtmux has not started a task in the window.
pub(crate) const NO_RUN_YET: &str = ".";
/// A pane option that marks the pane in which a task was started. Other panes of the same window do not have it.
pub(crate) const TASK_PANE: &str = "@agtmux_task_pane";
pub(crate) const COMMAND: &str = "@pi_task_command";
pub(crate) const CWD: &str = "@pi_task_cwd";
pub(crate) const BELLS: &str = "@pi_bell_count";

/// Why a task was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("the window is gone, the tmux server was replaced, or the request reached tmux too late")]
    Gone,
    #[error(transparent)]
    Tmux(#[from] TmuxError),
}

/// The socket that `tmux` uses by default.
pub fn default_socket(tmpdir: Option<&OsStr>) -> PathBuf {
    SocketDir::below(tmpdir).path().join("default")
}

/// Quotes a word for sh, bash, zsh and fish, if the word needs quotes. A word with a leading `=` or `%` needs quotes,
/// because zsh expands `=word` and fish expands `%word`.
pub fn quoted_for_shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    String::from_utf8_lossy(&quoted(OsStr::new(word))).into_owned()
}

impl TmuxServer {
    /// The session with this name and all its panes; `None` if there is no such session or no server.
    pub async fn task_session(&self, name: &str) -> Result<Option<TmuxTaskSession>, TmuxError> {
        // tmux may resolve the name differently, so only an exact match counts.
        Ok(self.read_task_sessions(Some(name)).await?.into_iter().find(|session| session.name == name))
    }

    /// Makes tmux check whether the programs in its panes have exited, because tmux can miss an exit. Runs a command
    /// that ends at once: whenever a child exits, tmux checks all its children.
    pub async fn reap_children(&self) -> Result<(), TmuxError> {
        self.run(&[TmuxCommand::new("run-shell").arg("true")]).await.map(drop)
    }

    /// Every session that has an agtmux instance as its recorded owner.
    pub async fn task_sessions(&self) -> Result<Vec<TmuxTaskSession>, TmuxError> {
        let mut sessions = self.read_task_sessions(None).await?;
        sessions.retain(|session| !session.owner.owner_id.is_empty());
        Ok(sessions)
    }

    async fn read_task_sessions(&self, name: Option<&str>) -> Result<Vec<TmuxTaskSession>, TmuxError> {
        let framing = Framing::fresh();
        match self.run(&[read::list_command(&framing, name)]).await {
            Ok(answer) => Ok(read::parse_sessions(&framing, &answer)),
            Err(error) => accept_missing(error).map(|()| Vec::new()),
        }
    }

    /// Creates the session. Its first window runs a placeholder program until a task is launched there. Starts the
    /// server if there is none.
    pub async fn create_task_session(
        &self,
        session: &str,
        task: &str,
        owner: &TaskSessionOwner,
    ) -> Result<(), TmuxError> {
        self.run_or_start_server(&launch::new_session(session, task, owner)).await.map(drop)
    }

    /// Stores the process that owns the session from now on.
    pub async fn set_task_session_owner_pid(
        &self,
        server: (u32, i64),
        session: u32,
        process: &str,
    ) -> Result<(), TmuxError> {
        let set = TmuxCommand::new("set-option").arg("-t").arg(format!("${session}")).arg(OWNER_PID).arg(process);
        self.run(&[self.if_same_server(server, &set)]).await.map(drop)
    }

    /// Adds a window at the end of the session. The window runs a placeholder program until a task is launched there.
    /// Window names need not be unique.
    pub async fn create_task_window(&self, session: &str, task: &str) -> Result<u32, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&launch::new_window(&framing, session, task)).await?;
        let unreadable = || TmuxError::Unreadable("the window id is missing".into());
        launch::parse_new_window(&framing, &answer).ok_or_else(unreadable)
    }

    /// Starts a task in its window and ends the window's current program. `launch.reader` gets the output from the
    /// first byte, because tmux connects the reader before tmux reads any output of the task.
    pub async fn launch_task(&self, launch: &TaskLaunch<'_>) -> Result<LaunchedPane, LaunchError> {
        let framing = Framing::fresh();
        let until = self.deadline_second(None);
        let answer = self.run(&[launch::launch_command(&framing, until, launch)]).await?;
        launch::parse_launched(&framing, &answer).ok_or(LaunchError::Gone)
    }

    /// The screens of these panes, with the positions of their cursors. The call fails if one of the panes is gone.
    pub async fn cursor_screens(&self, panes: &[u32]) -> Result<Vec<CursorScreen>, TmuxError> {
        let framing = Framing::fresh();
        let answer = self.run(&cursor::capture_commands(&framing, panes)).await?;
        Ok(cursor::parse_screens(&framing, &answer))
    }

    /// Sets `remain-on-exit` for these windows, if this server generation still runs.
    pub async fn set_remain_on_exit(&self, server: (u32, i64), windows: &[u32]) -> Result<(), TmuxError> {
        let keep = |window: &u32| {
            let set = TmuxCommand::new("set-option").arg("-w").arg("-t").arg(format!("@{window}"));
            self.if_same_server(server, &set.arg("remain-on-exit").arg("on"))
        };
        self.run(&windows.iter().map(keep).collect::<Vec<_>>()).await.map(drop)
    }

    /// Kills these windows, if this server generation still runs. Windows that are gone are ignored.
    pub async fn kill_windows(&self, server: (u32, i64), windows: &[u32]) -> Result<(), TmuxError> {
        for window in windows {
            self.kill(server, "kill-window", &format!("@{window}")).await?;
        }
        Ok(())
    }

    /// Kills a session by id, if this server generation still runs.
    pub async fn kill_session(&self, server: (u32, i64), session: u32) -> Result<(), TmuxError> {
        self.kill(server, "kill-session", &format!("${session}")).await
    }

    pub(crate) async fn kill(&self, server: (u32, i64), command: &'static str, target: &str) -> Result<(), TmuxError> {
        let kill = TmuxCommand::new(command).arg("-t").arg(target);
        match self.run(&[self.if_same_server(server, &kill)]).await {
            Err(TmuxError::Failed(message)) if is_missing(&message) => Ok(()),
            done => done.map(drop),
        }
    }

    pub(crate) fn if_same_server(&self, (pid, start): (u32, i64), command: &TmuxCommand) -> TmuxCommand {
        let until = self.deadline_second(None);
        let condition = launch::server_matches_before(pid, start, until);
        TmuxCommand::new("if-shell").arg("-F").arg(condition).arg(command.line())
    }
}

/// Ignores the errors for a missing session or server. Returns other errors.
fn accept_missing(error: TmuxError) -> Result<(), TmuxError> {
    match error {
        TmuxError::NoServer => Ok(()),
        TmuxError::Failed(message) if is_missing(&message) => Ok(()),
        error => Err(error),
    }
}

fn is_missing(message: &str) -> bool {
    message.contains("can't find") || message.contains("no current target") || message.contains("no such")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_if_needed() {
        assert_eq!(quoted_for_shell("a-b_c.d/e"), "a-b_c.d/e");
        assert_eq!(quoted_for_shell("=ls"), "'=ls'");
        assert_eq!(quoted_for_shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted_for_shell(""), "''");
    }

    #[test]
    fn every_installed_shell_reads_a_quoted_word_unchanged() {
        let words = ["plain", "it's", "a\\b", "\\", "'", "a\\'b", "$HOME `x` $(y)", "a  b\"c", "!x #y ~", "ü日本"];
        for word in words.into_iter().chain(["=ls", "%self", "a=b", "{a,b}", "*", "~", "^x", "-"]) {
            for shell in ["sh", "bash", "zsh", "fish", "dash"] {
                let line = format!("printf %s {}", quoted_for_shell(word));
                let Ok(output) = std::process::Command::new(shell).args(["-c", &line]).output() else { continue };
                assert_eq!(String::from_utf8_lossy(&output.stdout), word, "{shell}: {line}");
            }
        }
    }

    #[test]
    fn a_missing_session_is_accepted_and_a_server_failure_is_an_error() {
        assert_eq!(accept_missing(TmuxError::Failed("can't find session: x".into())), Ok(()));
        assert_eq!(accept_missing(TmuxError::NoServer), Ok(()));
        assert!(accept_missing(TmuxError::Failed("server is on fire".into())).is_err());
    }
}
