//! Runs git. All knowledge about repositories comes from git itself; agtmux reads no file of git.

mod removal;
#[cfg(test)]
mod removal_tests;
mod repository;
#[cfg(test)]
mod test_repository;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

pub(crate) use removal::{RemovalRefusal, check_removal, remove_worktree};
pub(crate) use repository::{NewBranch, Repository, Worktree, branch_name};

/// How long one call of git may take. A status of a very large worktree on a cold disk takes tens of seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// An error message contains at most this many characters of git's own message.
const MAX_MESSAGE_CHARS: usize = 500;

#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("git is not installed")]
    NotInstalled,
    #[error("git could not be started: {0}")]
    Spawn(io::Error),
    #[error("git did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("git {command}: {message}")]
    Failed { command: String, message: String },
    #[error("unexpected output of git {0}")]
    Unreadable(&'static str),
}

/// Runs git in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    dir: PathBuf,
}

impl Git {
    pub(crate) fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs git and returns its output. Fails if git fails.
    pub(crate) async fn bytes(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let output = self.output(args).await?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(failed(args, &output.stderr)),
        }
    }

    /// Like [`bytes`](Self::bytes), as text without the newline at its end.
    pub(crate) async fn text(&self, args: &[&str]) -> Result<String, GitError> {
        let bytes = self.bytes(args).await?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// Whether git exits with 0. Fails only if git cannot be run.
    pub(crate) async fn succeeds(&self, args: &[&str]) -> Result<bool, GitError> {
        Ok(self.output(args).await?.status.success())
    }

    async fn output(&self, args: &[&str]) -> Result<std::process::Output, GitError> {
        let mut command = Command::new("git");
        // The status must not run a program that the settings of a repository name.
        command.args(["-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]).args(args);
        command.current_dir(&self.dir).stdin(Stdio::null()).kill_on_drop(true);
        // The daemon may have been started by a hook of git.
        for name in
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"]
        {
            command.env_remove(name);
        }
        // Reading must not lock the index against the agent, and must not wait for a password.
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        match timeout(TIMEOUT, command.output()).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound && self.dir.is_dir() => {
                Err(GitError::NotInstalled)
            }
            Ok(Err(error)) => Err(GitError::Spawn(error)),
            Err(_) => Err(GitError::Timeout),
        }
    }
}

fn failed(args: &[&str], stderr: &[u8]) -> GitError {
    let message = String::from_utf8_lossy(stderr);
    let message = message.trim().trim_start_matches("fatal: ").trim_start_matches("error: ");
    let command = args.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    GitError::Failed { command, message: message.chars().take(MAX_MESSAGE_CHARS).collect() }
}
