//! Follows a command of agtmux to its end. Interrupts the command when its time is up or when the caller cancels it.

use std::sync::Arc;
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::wire::MirrorCancelRequest;
use agtmux_core::ids::PaneId;
use agtmux_tmux::{PaneInput, TmuxKey};
use jiff::Timestamp;
use tokio::time::Instant;

use super::select::place;
use super::terminal::{SharedTerminal, TerminalView};
use super::{Mirrors, errors};
use crate::actions::{MirrorActionEntry, RequestCaller};

/// How long a command may take to end after Ctrl-C.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(3);

/// Why agtmux no longer waits for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExecTurn {
    Ended,
    /// The pane was closed.
    Lost,
    Cancelled,
}

impl Mirrors {
    /// Waits for the end of a command, and interrupts the command at the deadline.
    pub(super) async fn supervise(
        &self,
        terminal: &Arc<SharedTerminal>,
        exec: &str,
        deadline: Instant,
    ) -> ApiResult<()> {
        let outcome = self.follow_command(terminal, exec, deadline).await;
        self.return_line(terminal).await;
        outcome
    }

    async fn follow_command(&self, terminal: &SharedTerminal, exec: &str, deadline: Instant) -> ApiResult<()> {
        let turn = terminal.wait_for(deadline, |view| next_turn(view, exec)).await;
        match turn {
            Some(ExecTurn::Ended) => Ok(()),
            Some(ExecTurn::Lost) => Err(errors::result_lost()),
            Some(ExecTurn::Cancelled) => {
                self.interrupt(terminal, exec).await;
                Ok(())
            }
            None => {
                terminal.update_exec(exec, |status| status.timed_out = true);
                self.interrupt(terminal, exec).await;
                Ok(())
            }
        }
    }

    /// Presses Ctrl-C and waits for the end of the command.
    pub(super) async fn interrupt(&self, terminal: &SharedTerminal, exec: &str) {
        if let (Ok(interrupt), Ok(place)) = ("C-c".parse::<TmuxKey>(), place(terminal)) {
            // No other action types into the pane between the check and the key.
            let _pane = self.0.actions.lock_pane(place.server, PaneId(terminal.spec.pane)).await;
            if Self::may_still_run(terminal, exec) {
                // A pane in copy mode does not accept keys; the command then keeps running.
                let _ = self.type_keys(terminal, PaneInput::Keys(&[interrupt])).await;
            }
        }
        let has_ended = |view: &TerminalView| {
            let is_over = matches!(next_turn(view, exec), Some(ExecTurn::Ended | ExecTurn::Lost));
            is_over.then_some(())
        };
        if terminal.wait_for(Instant::now() + INTERRUPT_TIMEOUT, has_ended).await.is_none() {
            terminal.update_exec(exec, |status| status.given_up = true);
        }
    }

    /// Whether what has the terminal is the command. Otherwise it is a program of the person, which Ctrl-C must not end.
    fn may_still_run(terminal: &SharedTerminal, exec: &str) -> bool {
        terminal.refresh();
        let reports = {
            let view = terminal.view();
            let status = view.execs.get(exec);
            if matches!(next_turn(&view, exec), Some(ExecTurn::Ended | ExecTurn::Lost))
                || status.is_some_and(|status| status.saw_prompt)
            {
                return false;
            }
            status.and_then(|status| status.reports_before)
        };
        reports.is_none_or(|before| terminal.prompt_reports().count <= before)
    }

    pub(crate) async fn cancel(&self, request: &MirrorCancelRequest, caller: &RequestCaller) -> ApiResult<()> {
        let exec = &request.command_id;
        let Some(terminal) = self.terminal_of(exec) else {
            // The command may belong to a request that still waits for its turn.
            self.withdraw(exec);
            return Err(errors::no_command(exec));
        };
        let pane = PaneId(terminal.spec.pane).to_string();
        let entry = MirrorActionEntry { caller, summary: "cancel a command", pane: &pane, text: None };
        let cancel = async {
            self.0.actions.mirror_user(caller, &place(&terminal)?, "cancel commands in this shared terminal").await?;
            let is_running = terminal.view().command_of(exec).is_none_or(|command| command.end.is_none());
            if is_running {
                terminal.update_exec(exec, |status| status.cancelled = true);
            }
            Ok(())
        };
        self.0.actions.audited_mirror(entry, cancel).await
    }

    /// Continues to follow the commands that an earlier daemon typed into this terminal.
    pub(super) fn resume_execs(&self, terminal: &Arc<SharedTerminal>) {
        let (mut records, running) = {
            let view = terminal.view();
            let records: Vec<_> = view.execs.values().map(|status| (status.record.clone(), status.taken)).collect();
            (records, view.state.running.as_ref().and_then(|running| running.exec.clone()))
        };
        if running.is_none() && terminal.view().state.has_stash {
            // The command has ended without a daemon.
            let (mirrors, terminal) = (self.clone(), terminal.clone());
            tokio::spawn(async move {
                let _turn = mirrors.0.locks.take(format!("exec {}", terminal.spec.mirror_id)).await;
                mirrors.return_line(&terminal).await;
            });
        }
        if terminal.files.read_stash().is_some() {
            let (mirrors, terminal) = (self.clone(), terminal.clone());
            tokio::spawn(async move {
                let _turn = mirrors.0.locks.take(format!("exec {}", terminal.spec.mirror_id)).await;
                mirrors.return_stored_line(&terminal).await;
            });
        }
        records.sort_by_key(|(record, _)| record.typed_at);
        for (record, was_taken) in records {
            self.0.actions.remember_mirror_exec(terminal.spec.process, &record);
            if let Err(error) = self.keep_agent_shell(terminal, &record) {
                tracing::warn!(%error, pane = terminal.spec.pane, "cannot store that an agent uses this shell");
            }
            let end = terminal.view().command_of(&record.exec).and_then(|command| command.end);
            match end {
                Some(_) => {}
                // A shell that has taken the command runs it, even if the command has not begun yet.
                None if was_taken || running.as_ref() == Some(&record.exec) => {
                    let left = record.deadline.duration_since(Timestamp::now());
                    let deadline = Instant::now() + Duration::try_from(left).unwrap_or_default();
                    let (mirrors, terminal) = (self.clone(), terminal.clone());
                    tokio::spawn(async move {
                        let turn = format!("exec {}", terminal.spec.mirror_id);
                        let _turn = mirrors.0.locks.take(turn).await;
                        mirrors.supervise(&terminal, &record.exec, deadline).await
                    });
                }
                // The shell has not taken the command, and must not take it later.
                None => {
                    let _ = terminal.files.clear_input();
                    terminal.view().execs.remove(&record.exec);
                }
            }
        }
    }
}

fn next_turn(view: &TerminalView, exec: &str) -> Option<ExecTurn> {
    let command = view.command_of(exec);
    if command.is_some_and(|command| command.end.is_some()) {
        return Some(ExecTurn::Ended);
    }
    if view.state.is_closed {
        return Some(ExecTurn::Lost);
    }
    view.execs.get(exec).filter(|status| status.cancelled).map(|_| ExecTurn::Cancelled)
}
