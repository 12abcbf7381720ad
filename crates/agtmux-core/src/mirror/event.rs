//! Events of the shell, as the reader of the pane's output reports them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ShellEvent {
    /// A new prompt.
    Prompt { seq: u64, cwd: Option<String> },
    /// The line editor of the shell is ready to read keys.
    Ready { seq: u64 },
    /// The shell has accepted a command from agtmux, and has saved `stashed` characters that the user had typed.
    Taken { seq: u64, exec: String, stashed: u64 },
    /// The shell has restored the line that the user had typed.
    Returned,
    /// The command is not complete, and the shell asks for another line.
    MoreInput { seq: u64 },
    /// A command starts. `exec` is the id of the agtmux request that runs it; `None` if the user typed the command.
    Started { number: u64, exec: Option<String>, text: Option<String>, cwd: Option<String> },
    /// A command ended. `code` is `None` if the user changed the shell so that it no longer reports exit codes.
    Ended { number: u64, code: Option<i32>, text: Option<String>, bytes: u64 },
    /// The shell returned to the prompt without a command, for example after a syntax error.
    NothingRan { code: i32, exec: Option<String> },
    /// The reader no longer gets the output of the pane, because the pipe was closed or replaced. The shell still runs.
    PipeClosed,
    /// The pane is gone.
    Closed,
}
