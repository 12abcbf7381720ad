//! One shared terminal: the state of its shell, as the reader process reports it, and the commands that ran in the
//! terminal.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agtmux_api::mirror_files::{MirrorEventFollower, MirrorEventLine, MirrorExecRecord, MirrorFiles, MirrorSpec};
use agtmux_core::mirror::{MirrorMethod, MirrorShell, MirrorState, ScreenPrompt, ShellEvent};
use agtmux_tmux::PaneGuard;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The daemon remembers at most this many commands of a terminal.
const MAX_COMMANDS: usize = 1000;
/// How often a waiting request reads the files even if no signal announces a change.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct SharedTerminal {
    pub(super) spec: MirrorSpec,
    pub(super) files: MirrorFiles,
    view: Mutex<TerminalView>,
    /// The prompt as the screen last showed it. Only for a terminal without marks.
    pub(super) prompt: Mutex<Option<ScreenPrompt>>,
    changed: watch::Sender<u64>,
}

/// What the daemon knows about a terminal.
pub(super) struct TerminalView {
    follower: MirrorEventFollower,
    pub(super) state: MirrorState,
    /// The remembered commands, oldest first.
    pub(super) commands: VecDeque<CommandRecord>,
    pub(super) execs: HashMap<String, ExecStatus>,
    pub(super) last_number: u64,
    /// The number and the exit code of the last command that ended. `None` once they have been taken to be stored in
    /// the tmux session's environment.
    unpublished_end: Option<(u64, i32)>,
}

/// A command that the person or agtmux gave to the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandRecord {
    /// The number that the shell gave to the command. 0 if the shell did not run the command.
    pub(super) number: u64,
    pub(super) exec: Option<String>,
    pub(super) text: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) started_at: Timestamp,
    pub(super) end: Option<CommandEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommandEnd {
    pub(super) at: Timestamp,
    pub(super) code: Option<i32>,
    /// The size of the raw output in bytes.
    pub(super) bytes: u64,
}

/// A request to run a command, and the progress of the request.
#[derive(Debug, Clone)]
pub(super) struct ExecStatus {
    pub(super) record: MirrorExecRecord,
    pub(super) taken: bool,
    pub(super) timed_out: bool,
    pub(super) cancelled: bool,
    /// The command still runs after Ctrl-C, and agtmux no longer waits for its end.
    pub(super) given_up: bool,
    /// How many prompts the shell had reported when the command was typed. Only without marks.
    pub(super) reports_before: Option<usize>,
    /// The screen has shown a prompt since then, so the command may have ended. Only without marks.
    pub(super) saw_prompt: bool,
}

impl SharedTerminal {
    pub(super) fn new(spec: MirrorSpec, files: MirrorFiles) -> Self {
        let execs = files.read_execs().into_iter().map(|record| (record.exec.clone(), ExecStatus::new(record)));
        let view = TerminalView {
            follower: MirrorEventFollower::new(files.events()),
            state: MirrorState::default(),
            commands: VecDeque::new(),
            execs: execs.collect(),
            last_number: 0,
            unpublished_end: None,
        };
        let prompt = Mutex::new(files.read_prompt());
        Self { spec, files, view: Mutex::new(view), prompt, changed: watch::channel(0).0 }
    }

    pub(super) fn view(&self) -> MutexGuard<'_, TerminalView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn server(&self) -> (u32, i64) {
        (self.spec.server_pid, self.spec.server_start)
    }

    /// How agtmux follows the shell.
    pub(super) fn method(&self) -> MirrorMethod {
        let is_marked = self.spec.shell != MirrorShell::Posix && !self.view().state.pipe_closed;
        if is_marked { MirrorMethod::Marks } else { MirrorMethod::Screen }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.view().state.is_closed
    }

    /// Ends all waits, because agtmux no longer follows the shell.
    pub(super) fn close(&self) {
        self.view().state.apply(&ShellEvent::Closed, Timestamp::now());
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// The number of the newest command that has ended.
    pub(super) fn last_ended(&self) -> Option<u64> {
        self.view().commands.iter().rev().find(|command| command.end.is_some()).map(|command| command.number)
    }

    /// A guard that names the pane with the shell. With this guard, tmux types only while the pane still has the same
    /// process.
    pub(super) fn guard(&self) -> PaneGuard {
        let (server_pid, server_start) = self.server();
        let pane_pid = self.spec.process.map_or(0, |(pid, _)| pid);
        PaneGuard { server_pid, server_start, pane: self.spec.pane, pane_pid }
    }

    /// Reads the new events of the shell and wakes the waiting requests.
    pub(super) fn refresh(&self) {
        self.view().read_new();
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Takes the number and the exit code of the last command that ended. `None` if an earlier call has taken them.
    pub(super) fn take_unpublished_end(&self) -> Option<(u64, i32)> {
        self.view().unpublished_end.take()
    }

    /// Whether a request waits for a change of this terminal.
    pub(super) fn has_waiters(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Changes the status of a request and wakes all waiting requests.
    pub(super) fn update_exec(&self, exec: &str, change: impl FnOnce(&mut ExecStatus)) {
        if let Some(status) = self.view().execs.get_mut(exec) {
            change(status);
        }
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Waits until `look` returns a value, or until the deadline.
    pub(super) async fn wait_for<T>(
        &self,
        deadline: Instant,
        mut look: impl FnMut(&TerminalView) -> Option<T>,
    ) -> Option<T> {
        let mut changed = self.subscribe();
        loop {
            changed.mark_unchanged();
            self.view().read_new();
            if let Some(found) = look(&self.view()) {
                return Some(found);
            }
            let now = Instant::now();
            if now >= deadline {
                return None;
            }
            let recheck = deadline.min(now + RECHECK_INTERVAL);
            tokio::select! {
                // This never fails: the sender lives as long as this terminal.
                _ = changed.changed() => {}
                () = sleep_until(recheck) => {}
            }
        }
    }
}

impl ExecStatus {
    pub(super) fn new(record: MirrorExecRecord) -> Self {
        let (taken, timed_out, cancelled, given_up) = (false, false, false, false);
        Self { record, taken, timed_out, cancelled, given_up, reports_before: None, saw_prompt: false }
    }
}

impl TerminalView {
    /// The command of this request. `None` until the shell has started the command.
    pub(super) fn command_of(&self, exec: &str) -> Option<&CommandRecord> {
        self.commands.iter().rev().find(|command| command.exec.as_deref() == Some(exec))
    }

    fn read_new(&mut self) {
        // A file that cannot be read now is read again at the next change.
        let lines = self.follower.read_new().unwrap_or_default();
        for MirrorEventLine { at, event } in lines {
            self.state.apply(&event, at);
            if let ShellEvent::Ended { number, code: Some(code), .. } = &event {
                self.unpublished_end = Some((*number, *code));
            }
            self.record(event, at);
        }
        while self.commands.len() > MAX_COMMANDS {
            let oldest = self.commands.pop_front();
            oldest.and_then(|command| command.exec).map(|exec| self.execs.remove(&exec));
        }
    }

    fn record(&mut self, event: ShellEvent, at: Timestamp) {
        match event {
            ShellEvent::Taken { exec, .. } => {
                self.execs.get_mut(&exec).into_iter().for_each(|status| status.taken = true);
            }
            ShellEvent::Started { number, exec, text, cwd } => {
                self.last_number = number;
                let text = self.text_of(exec.as_deref()).or(text);
                self.commands.push_back(CommandRecord { number, exec, text, cwd, started_at: at, end: None });
            }
            ShellEvent::Ended { number, code, text, bytes } => {
                let Some(command) = self.commands.iter_mut().rev().find(|command| command.number == number) else {
                    return;
                };
                command.end.get_or_insert(CommandEnd { at, code, bytes });
                if command.exec.is_none() && text.is_some() {
                    command.text = text;
                }
            }
            ShellEvent::NothingRan { code, exec: Some(exec) } => {
                let (text, end) = (self.text_of(Some(&exec)), Some(CommandEnd { at, code: Some(code), bytes: 0 }));
                let cwd = self.state.cwd.clone();
                self.commands.push_back(CommandRecord { number: 0, exec: Some(exec), text, cwd, started_at: at, end });
            }
            // The result of the command that runs is not known any more.
            ShellEvent::PipeClosed => {
                let open = self.commands.iter_mut().filter(|command| command.end.is_none());
                open.for_each(|command| command.end = Some(CommandEnd { at, code: None, bytes: 0 }));
            }
            _ => {}
        }
    }

    fn text_of(&self, exec: Option<&str>) -> Option<String> {
        Some(self.execs.get(exec?)?.record.command.clone())
    }
}
