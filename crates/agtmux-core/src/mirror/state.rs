//! The state of a shared terminal, derived from its events.

use jiff::Timestamp;

use super::event::ShellEvent;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MirrorState {
    /// The number of the current prompt. 0 before the first prompt.
    pub seq: u64,
    /// Whether the line editor of the shell is ready to read keys.
    pub is_ready: bool,
    pub cwd: Option<String>,
    pub running: Option<RunningCommand>,
    /// Whether the shell has asked for another line since this prompt began.
    pub wants_more: bool,
    /// Whether the shell has saved a line that the user had begun to type.
    pub has_stash: bool,
    /// The marks of the shell are not read any more.
    pub pipe_closed: bool,
    pub is_closed: bool,
}

/// The command that runs in the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningCommand {
    pub number: u64,
    /// The agtmux request that runs the command; `None` if the user typed it.
    pub exec: Option<String>,
    pub text: Option<String>,
    pub since: Timestamp,
}

impl MirrorState {
    /// Whether the shell waits for a new command.
    pub fn is_at_prompt(&self) -> bool {
        self.is_ready && self.running.is_none() && !self.wants_more && !self.is_closed
    }

    pub fn apply(&mut self, event: &ShellEvent, at: Timestamp) {
        match event {
            ShellEvent::Prompt { seq, cwd } => {
                (self.seq, self.is_ready, self.wants_more, self.running) = (*seq, false, false, None);
                self.cwd.clone_from(cwd);
            }
            ShellEvent::Ready { .. } => self.is_ready = true,
            ShellEvent::Taken { stashed, .. } => self.has_stash |= *stashed > 0,
            ShellEvent::Returned => self.has_stash = false,
            ShellEvent::MoreInput { .. } => self.wants_more = true,
            ShellEvent::Started { number, exec, text, .. } => {
                let (exec, text) = (exec.clone(), text.clone());
                self.running = Some(RunningCommand { number: *number, exec, text, since: at });
                (self.is_ready, self.wants_more) = (false, false);
            }
            ShellEvent::Ended { .. } | ShellEvent::NothingRan { .. } => self.running = None,
            ShellEvent::PipeClosed => {
                (self.pipe_closed, self.running) = (true, None);
                (self.wants_more, self.has_stash) = (false, false);
            }
            ShellEvent::Closed => (self.is_closed, self.running) = (true, None),
        }
    }
}
