//! Types a command into the shell of a terminal.
//!
//! agtmux writes the command to a file and types only one key, which makes the shell read that file once. If the person
//! has begun to type a line, the shell puts that line aside and shows it again after the command.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::mirror_files::MirrorExecRecord;
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::MirrorShell;
use agtmux_tmux::{PaneInput, TypeError, TypeRefusal};
use tokio::time::Instant;

use super::environment::{self, quoted};
use super::exec::PROMPT_TIMEOUT;
use super::select::place;
use super::terminal::{SharedTerminal, TerminalView};
use super::{Mirrors, errors};
use crate::actions::type_error;

/// How long the shell may take to accept the command before agtmux types the key again.
const TAKE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many times agtmux types the key at most. If a program has started meanwhile, that program gets the key instead
/// of the shell.
const MAX_KEYS: u32 = 5;

/// The keys that the marks file binds in the shell. The first takes the command, the second submits it, and the third
/// gives the person's unfinished line back.
const TAKE_KEY: &[u8] = b"\x1b[24;8~";
const SUBMIT_KEY: &[u8] = b"\x1b[24;7~";
const RETURN_KEY: &[u8] = b"\x1b[24;6~";

impl Mirrors {
    /// Gives the command to the shell. If this returns an error, the shell does not run the command.
    pub(super) async fn type_command(
        &self,
        terminal: &SharedTerminal,
        record: &MirrorExecRecord,
        env: &BTreeMap<String, String>,
        deadline: Instant,
    ) -> ApiResult<()> {
        let text = command_text(terminal.spec.shell, record, terminal.view().state.cwd.as_deref());
        let input = format!("{}\n{text}", record.exec);
        let written = write_environment(terminal, env)
            .and_then(|()| terminal.files.write(&terminal.files.input(), input.as_bytes()));
        written.map_err(|error| errors::not_stored(&error.to_string()))?;
        if let Err(error) = self.type_until_taken(terminal, &record.exec, deadline).await
            && terminal.files.withdraw_input(&record.exec).unwrap_or(false)
        {
            // The file still contained the command. The shell may nevertheless have read the file just before the
            // command was withdrawn, so give it a moment to report that. If the file was already empty, the shell has
            // the command, so `error` does not matter.
            let until = Instant::now() + TAKE_TIMEOUT / 4;
            terminal.wait_for(until, |view| taken(view, &record.exec)).await.ok_or(error)?;
        }
        self.refuse_incomplete(terminal, &record.exec).await
    }

    /// Cancels a command that the shell finds incomplete.
    async fn refuse_incomplete(&self, terminal: &SharedTerminal, exec: &str) -> ApiResult<()> {
        let is_read = |view: &TerminalView| {
            let is_started = view.command_of(exec).is_some() || view.state.is_closed;
            (is_started || view.state.wants_more).then_some(!is_started)
        };
        // If the shell takes longer, agtmux assumes that it runs the command.
        let asks_for_more = terminal.wait_for(Instant::now() + TAKE_TIMEOUT, is_read).await.unwrap_or(false);
        if !asks_for_more {
            return Ok(());
        }
        self.interrupt(terminal, exec).await;
        Err(errors::incomplete("the shell asked for another line, and agtmux cancelled the command"))
    }

    async fn type_until_taken(&self, terminal: &SharedTerminal, exec: &str, deadline: Instant) -> ApiResult<()> {
        let key = take_key(terminal.spec.shell);
        let server = place(terminal)?.server;
        // No other action types into the pane meanwhile.
        let _pane = self.0.actions.lock_pane(server, PaneId(terminal.spec.pane)).await;
        for _ in 0..MAX_KEYS {
            self.type_keys(terminal, PaneInput::Bytes(&key)).await?;
            let until = deadline.min(Instant::now() + TAKE_TIMEOUT);
            if terminal.wait_for(until, |view| taken(view, exec)).await.is_some() {
                return Ok(());
            }
            self.wait_for_prompt(terminal, deadline).await?;
        }
        Err(errors::lost("the shell does not react to the keys that agtmux presses"))
    }

    pub(super) async fn type_keys(&self, terminal: &SharedTerminal, keys: PaneInput<'_>) -> ApiResult<()> {
        let (tmux, guard) = (self.tmux(&terminal.spec.socket), terminal.guard());
        let leaves_mode = self.0.discovery.config().tmux_bridge.leave_copy_mode;
        match tmux.type_into(guard, keys).await {
            Err(TypeError::Refused(TypeRefusal::InMode)) if leaves_mode => {
                tmux.type_into(guard, PaneInput::LeaveMode).await.map_err(type_error)?;
                tmux.type_into(guard, keys).await
            }
            done => done,
        }
        .map_err(type_error)
    }

    /// Gives the unfinished line back to the person once the shell reads keys again.
    pub(super) async fn return_line(&self, terminal: &SharedTerminal) {
        if !terminal.view().state.has_stash {
            return;
        }
        let deadline = Instant::now() + PROMPT_TIMEOUT;
        let is_ready = |view: &TerminalView| view.state.is_at_prompt().then_some(());
        if terminal.wait_for(deadline, is_ready).await.is_some() {
            // The shell keeps the line until it is given back.
            let _ = self.type_keys(terminal, PaneInput::Bytes(RETURN_KEY)).await;
            terminal.wait_for(Instant::now() + TAKE_TIMEOUT, |view| (!view.state.has_stash).then_some(())).await;
        }
    }
}

/// Writes the variables for the next command. The shell reads the file with each command, so an old file is emptied.
fn write_environment(terminal: &SharedTerminal, env: &BTreeMap<String, String>) -> io::Result<()> {
    let file = terminal.files.environment();
    if env.is_empty() && !file.exists() {
        return Ok(());
    }
    terminal.files.write(&file, environment::exports(terminal.spec.shell, env).as_bytes())
}

fn taken(view: &TerminalView, exec: &str) -> Option<()> {
    view.execs.get(exec).is_some_and(|status| status.taken).then_some(())
}

/// The keys that make this shell take and run a command. zsh and fish submit the command themselves. bash needs a
/// second key, which submits nothing unless the first key took a command.
fn take_key(shell: MirrorShell) -> Vec<u8> {
    match shell {
        MirrorShell::Bash => [TAKE_KEY, SUBMIT_KEY].concat(),
        MirrorShell::Zsh | MirrorShell::Fish | MirrorShell::Posix => TAKE_KEY.to_vec(),
    }
}

/// The text to type for the command. It begins with a `cd` to the command's directory, unless the shell is already there.
pub(super) fn command_text(shell: MirrorShell, record: &MirrorExecRecord, shell_cwd: Option<&str>) -> String {
    let command = record.command.trim_end_matches('\n');
    match record.cwd.as_deref().filter(|cwd| Some(*cwd) != shell_cwd) {
        Some(cwd) if command.contains('\n') => format!("cd {}\n{command}", quoted(shell, cwd)),
        Some(cwd) => format!("cd {} && {command}", quoted(shell, cwd)),
        None => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn record(command: &str, cwd: Option<&str>) -> MirrorExecRecord {
        MirrorExecRecord {
            exec: "e".into(),
            command: command.into(),
            cwd: cwd.map(str::to_owned),
            agent: None,
            typed_at: Timestamp::UNIX_EPOCH,
            deadline: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_directory_is_changed_only_if_the_shell_is_elsewhere() {
        let text = |record: &MirrorExecRecord, cwd| command_text(MirrorShell::Bash, record, cwd);
        assert_eq!(text(&record("ls", None), Some("/a")), "ls");
        assert_eq!(text(&record("ls\n", Some("/a")), Some("/a")), "ls");
        assert_eq!(text(&record("ls", Some("/a b")), Some("/c")), "cd '/a b' && ls");
        assert_eq!(text(&record("a\nb", Some("/a")), None), "cd /a\na\nb");
        let in_fish = command_text(MirrorShell::Fish, &record("ls", Some(r"/a'\")), None);
        assert_eq!(in_fish, r"cd '/a\'\\' && ls");
    }
}
