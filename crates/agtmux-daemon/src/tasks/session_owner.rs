//! The owner of a task session is the harness process (such as Pi) whose tasks run in the session. A session is cleaned
//! up only if its owner is dead. A dead owner also means that other agents may replace the tasks of the session.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_core::task::RunId;
use agtmux_tmux::{TaskPane, TmuxTaskSession};

use super::Tasks;
use crate::actions::RequestCaller;

/// Formats a process as `PID.START`. The start time is needed, because a pid can be reused.
fn format_process(pid: u32, start: u64) -> String {
    format!("{pid}.{start}")
}

fn parse_process(process: &str) -> Option<(u32, u64)> {
    let (pid, start) = process.split_once('.')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

impl Tasks {
    /// The process that owns a session which this caller creates. This is the process named in the request, otherwise
    /// the agent that started the caller. Empty if neither is known.
    pub(super) fn owner_process(&self, caller: &RequestCaller) -> String {
        let processes = self.0.discovery.processes();
        let found = self.0.actions.owner_process_of(caller);
        found.and_then(|pid| Some(format_process(pid, processes.start_time(pid)?))).unwrap_or_default()
    }

    /// Whether the owner of a session lives. `None` if the owner is not recorded.
    pub(super) fn owner_lives(&self, session: &TmuxTaskSession) -> Option<bool> {
        let (pid, start) = parse_process(&session.owner.process)?;
        let process = self.0.discovery.processes().try_process(pid);
        // A process table that cannot be read does not mean that the owner has ended.
        Some(process.map_or(true, |process| process.is_some_and(|process| process.start == start)))
    }

    /// Returns the caller if it becomes the owner of the session when it starts a task or a harness session. Returns `None` if the owner
    /// stays the same. A live owner keeps its session, and an unknown caller cannot become the owner.
    pub(super) fn next_owner<'a>(&self, session: &TmuxTaskSession, caller: &'a str) -> Option<&'a str> {
        let takes_over =
            !caller.is_empty() && caller != session.owner.process && self.owner_lives(session) != Some(true);
        takes_over.then_some(caller)
    }

    /// Refuses to let an agent replace a running task, unless the agent owns the session or the owner of the session is
    /// dead.
    pub(super) async fn refuse_to_replace(
        &self,
        caller: &RequestCaller,
        session: &TmuxTaskSession,
        slot: &TaskPane,
    ) -> Result<(), ApiError> {
        // A window that was just made for the task runs nothing yet.
        let runs = !slot.dead && (slot.run.is_some() || slot.task_command.is_some());
        if !runs || self.owner_lives(session) == Some(false) || self.is_owned_by(caller, session) {
            return Ok(());
        }
        let what = format!("replace '{}' in '{}'", slot.window_name, session.name);
        self.0.actions.refuse_agents_unless_allowed(caller, &what).await.map_err(|refused| {
            let whose = match parse_process(&session.owner.process) {
                Some((pid, _)) => format!("the session is owned by process {pid}"),
                None => "the session is not owned by an agent".to_owned(),
            };
            let hint = "choose another task name, leave out --session, or ask the user to run the command or to \
                set actions.allow_from_agents";
            ApiError::new(ErrorCode::CallerIsAgent, format!("{}: {whose}", refused.message)).with_hint(hint)
        })
    }

    /// Whether the caller, though an agent, may end what runs in these panes: it acts for the live owner of the session,
    /// and agents started all of it. An agent that starts a task in the session of a person may become its owner, but the
    /// tasks of the person and the panes that the person has split off are not its own.
    pub(super) fn may_end_as_owner<'a>(
        &self,
        caller: &RequestCaller,
        session: &TmuxTaskSession,
        panes: impl IntoIterator<Item = &'a TaskPane>,
    ) -> bool {
        let is_owner =
            parse_process(&session.owner.process).is_some_and(|owner| self.0.actions.acts_for(caller, owner));
        is_owner && panes.into_iter().all(|pane| (pane.dead || pane.is_task_pane) && self.is_run_of_agent(pane))
    }

    /// Whether an agent started the last task in the window of this pane. An agent that is only assumed may be a person.
    fn is_run_of_agent(&self, pane: &TaskPane) -> bool {
        let Some(run) = pane.run.as_deref().and_then(|run| run.parse::<RunId>().ok()) else { return false };
        let files = self.run_files(&run);
        let spec = files.read_kept_spec().or_else(|_| files.read_spec());
        spec.is_ok_and(|spec| spec.agent.is_some() && !spec.agent_is_assumed)
    }

    /// Whether the caller descends from the owner of the session. A process that the request names as the owner does
    /// not count, because a caller can name any process.
    fn is_owned_by(&self, caller: &RequestCaller, session: &TmuxTaskSession) -> bool {
        parse_process(&session.owner.process).is_some_and(|owner| self.0.actions.descends_from(caller, owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_formatted_as_pid_and_start_time() {
        assert_eq!(parse_process(&format_process(7, 900)), Some((7, 900)));
        for wrong in ["", "7", "7.", ".900", "a.b", "-7.900", "7.900.1"] {
            assert_eq!(parse_process(wrong), None, "{wrong}");
        }
    }
}
