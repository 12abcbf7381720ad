//! The prompt of a shell without marks, as its screen shows it.

use std::sync::PoisonError;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::mirror_files::MirrorEventLine;
use agtmux_core::mirror::{MirrorMethod, MirrorShell, PromptLine, ScreenPrompt, ScreenText, ShellEvent};
use agtmux_tmux::CursorScreen;
use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::exec::PROMPT_TIMEOUT;
use super::terminal::SharedTerminal;
use super::{Mirrors, errors};
use crate::actions::tmux_error;

/// The interval at which the screen is captured while agtmux waits for a prompt.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(40);
/// A screen counts as a prompt if two captures in this interval are equal.
const REST_TIME: Duration = Duration::from_millis(40);
/// How long the reader of a pipe may need to report that the pipe was closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The lines that the shell has written to the file of codes, one per prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PromptReports {
    pub(super) count: usize,
    /// The exit code and the number of rows in the last line.
    pub(super) last: Option<(i32, usize)>,
}

/// A screen that shows a prompt and does not change.
pub(super) struct PromptScreen {
    pub(super) screen: CursorScreen,
    pub(super) line: PromptLine,
}

impl Mirrors {
    /// Waits for the first prompt of a shell without marks.
    pub(super) async fn learn_screen_prompt(&self, terminal: &SharedTerminal, deadline: Instant) -> ApiResult<()> {
        while terminal.view().state.seq == 0 {
            if self.is_gone(terminal) {
                return Err(errors::pane_gone());
            }
            // The shell reports its first prompt just before it draws this prompt.
            let is_reported = terminal.prompt_reports().count > 0;
            if is_reported && self.prompt_at_rest(terminal).await?.is_some() {
                return self.add_prompt(terminal).map_err(|error| errors::not_stored(&error.to_string()));
            }
            if Instant::now() >= deadline {
                return Err(errors::no_prompt(terminal.spec.pane, PROMPT_TIMEOUT));
            }
            sleep(LOOK_INTERVAL).await;
        }
        Ok(())
    }

    /// Waits until the screen shows the prompt of the shell.
    pub(super) async fn wait_for_screen_prompt(
        &self,
        terminal: &SharedTerminal,
        deadline: Instant,
    ) -> ApiResult<PromptScreen> {
        let deadline = deadline.min(Instant::now() + PROMPT_TIMEOUT);
        loop {
            if self.is_gone(terminal) {
                return Err(errors::pane_gone());
            }
            if let Some(found) = self.prompt_at_rest(terminal).await? {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(self
                    .problem(terminal)
                    .map_or_else(|| errors::no_prompt_on_screen(terminal.spec.pane), |why| errors::lost(&why)));
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// The prompt, if the shell has the terminal and the screen shows a prompt twice in a row.
    pub(super) async fn prompt_at_rest(&self, terminal: &SharedTerminal) -> ApiResult<Option<PromptScreen>> {
        if !self.is_shell_in_foreground(terminal) {
            return Ok(None);
        }
        let first = self.look(terminal).await?;
        sleep(REST_TIME).await;
        let screen = self.look(terminal).await?;
        if first != screen || !self.is_shell_in_foreground(terminal) {
            return Ok(None);
        }
        Ok(terminal.prompt_line(&screen).map(|line| PromptScreen { screen, line }))
    }

    pub(super) async fn look(&self, terminal: &SharedTerminal) -> ApiResult<CursorScreen> {
        let screens = self.tmux(&terminal.spec.socket).cursor_screens(&[terminal.spec.pane]).await;
        screens.map_err(tmux_error)?.pop().ok_or_else(errors::pane_gone)
    }

    /// Closes the pipe of a shell that has lost its hooks, for example after `exec bash`: the shell shows a prompt, but
    /// the marks say that a command runs. Returns whether the shell is followed on its screen from now on.
    pub(super) async fn close_pipe_of_markless_shell(&self, terminal: &SharedTerminal) -> bool {
        let is_stuck = {
            let state = &terminal.view().state;
            (state.running.is_some() || state.seq == 0) && !state.wants_more && !state.is_closed
        };
        if !is_stuck || self.problem(terminal).is_some() || !self.shows_prompt(terminal).await {
            return false;
        }
        if self.tmux(&terminal.spec.socket).close_pipe(terminal.server(), terminal.spec.pane).await.is_err() {
            return false;
        }
        let is_closed = |view: &super::terminal::TerminalView| view.state.pipe_closed.then_some(());
        terminal.wait_for(Instant::now() + CLOSE_TIMEOUT, is_closed).await.is_some()
    }

    async fn shows_prompt(&self, terminal: &SharedTerminal) -> bool {
        matches!(self.prompt_at_rest(terminal).await, Ok(Some(_)))
    }

    /// Notes that the shell shows a prompt.
    pub(super) fn add_prompt(&self, terminal: &SharedTerminal) -> std::io::Result<()> {
        let seq = terminal.view().state.seq + 1;
        let cwd = self.cwd_of_shell(terminal);
        terminal.add_events([ShellEvent::Prompt { seq, cwd }, ShellEvent::Ready { seq }])
    }

    pub(super) fn cwd_of_shell(&self, terminal: &SharedTerminal) -> Option<String> {
        let cwd = self.0.discovery.processes().cwd(terminal.spec.process?.0)?;
        cwd.into_os_string().into_string().ok()
    }
}

impl SharedTerminal {
    /// The reports of the shell. Empty if the shell does not write any.
    pub(super) fn prompt_reports(&self) -> PromptReports {
        let text = std::fs::read_to_string(self.files.codes()).unwrap_or_default();
        PromptReports { count: text.lines().count(), last: text.lines().next_back().and_then(read_report) }
    }

    /// The exit code and the number of rows in the report with this index.
    pub(super) fn prompt_report(&self, index: usize) -> Option<(i32, usize)> {
        let text = std::fs::read_to_string(self.files.codes()).unwrap_or_default();
        text.lines().nth(index).and_then(read_report)
    }

    /// Finds the prompt on the screen, and remembers it.
    pub(super) fn prompt_line(&self, screen: &CursorScreen) -> Option<PromptLine> {
        let is_fresh = self.spec.shell == MirrorShell::Posix && self.view().state.seq == 0;
        let mut prompt = self.prompt.lock().unwrap_or_else(PoisonError::into_inner);
        let height = match self.prompt_reports().last {
            Some((_, rows)) => rows,
            None => prompt.as_ref().map_or(1, ScreenPrompt::height),
        };
        let text = ScreenText { rows: &screen.rows, cursor_column: screen.x, cursor_row: screen.y };
        // In the row of the cursor, a shell that agtmux has just started shows nothing but its prompt.
        let first = || ScreenPrompt::first(height, text).filter(|_| is_fresh);
        let known = prompt.clone().or_else(first);
        let found = ScreenPrompt::find(known.as_ref(), height, text)?;
        if prompt.as_ref() != Some(&found.prompt) {
            // Without the file, a restarted daemon looks for one of the usual prompts.
            let _ = self.files.write_prompt(&found.prompt);
            *prompt = Some(found.prompt.clone());
        }
        Some(found)
    }

    /// Ends the command that an earlier daemon followed on the screen. Its result is unknown.
    pub(super) fn end_unfollowed_command(&self) {
        let is_unfollowed = self.method() == MirrorMethod::Screen && self.view().state.running.is_some();
        if is_unfollowed {
            let _ = self.add_events([ShellEvent::PipeClosed]);
        }
    }

    /// Adds events of a shell that has no reader.
    pub(super) fn add_events<const N: usize>(&self, events: [ShellEvent; N]) -> std::io::Result<()> {
        let added = self.files.add_events(&events.map(|event| MirrorEventLine { at: Timestamp::now(), event }));
        self.refresh();
        added
    }
}

fn read_report(line: &str) -> Option<(i32, usize)> {
    let (code, rows) = line.split_once(' ')?;
    Some((code.parse().ok()?, rows.trim().parse().ok()?))
}
