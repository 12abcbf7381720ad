//! For whom a session is kept: the process of the harness whose tasks run in it. Whether that one lives decides what becomes of the
//! session, and what an agent of another one may do in it.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_tmux::{TaskPane, TmuxTaskSession};

use super::Tasks;
use crate::actions::RequestCaller;

/// How a process is written down: a number alone may be another one's by and by.
fn format_process(pid: u32, start: u64) -> String {
    format!("{pid}.{start}")
}

fn parse_process(process: &str) -> Option<(u32, u64)> {
    let (pid, start) = process.split_once('.')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

impl Tasks {
    /// The program that a session is kept for: the one that was named, or else the agent that asks. Empty where neither is known.
    pub(super) fn owner_process(&self, asker: &RequestCaller) -> String {
        let processes = self.0.discovery.processes();
        let found = self.0.actions.owner_process_of(asker);
        found.and_then(|pid| Some(format_process(pid, processes.start_time(pid)?))).unwrap_or_default()
    }

    /// None where nobody has written down who it was.
    pub(super) fn owner_lives(&self, seen: &TmuxTaskSession) -> Option<bool> {
        let (pid, start) = parse_process(&seen.owner.process)?;
        Some(self.0.discovery.processes().start_time(pid) == Some(start))
    }

    /// Who keeps a session in which somebody starts something, if that is another one than before. One who lives keeps what is
    /// theirs, and whoever cannot be told takes nothing from anybody.
    pub(super) fn next_owner<'a>(&self, seen: &TmuxTaskSession, asks: &'a str) -> Option<&'a str> {
        let takes_over = !asks.is_empty() && asks != seen.owner.process && self.owner_lives(seen) != Some(true);
        takes_over.then_some(asks)
    }

    /// An agent starts things again in its own session, or in one that nobody has any more; what runs in that of another, or of a
    /// person, is not its to end.
    pub(super) async fn refuse_to_replace(
        &self,
        asker: &RequestCaller,
        seen: &TmuxTaskSession,
        slot: &TaskPane,
    ) -> Result<(), ApiError> {
        // A window that was made for it just now has nothing in it yet.
        let runs = !slot.dead && (slot.run.is_some() || slot.task_command.is_some());
        if !runs || self.owner_lives(seen) == Some(false) || self.is_owned_by(asker, seen) {
            return Ok(());
        }
        let what = format!("replace '{}' in '{}'", slot.window_name, seen.name);
        self.0.actions.refuse_agents_unless_allowed(asker, &what).await.map_err(|refused| {
            let whose = match parse_process(&seen.owner.process) {
                Some((pid, _)) => format!("it runs in a session that process {pid} keeps"),
                None => "it runs in a session that no agent keeps".to_owned(),
            };
            let hint =
                "choose another name, or leave out --session; the user may do it, or set actions.allow_from_agents";
            ApiError::new(ErrorCode::CallerIsAgent, format!("{}: {whose}", refused.message)).with_hint(hint)
        })
    }

    /// Whether whoever asks descends from the one that keeps it. A name that it gives itself proves nothing.
    fn is_owned_by(&self, asker: &RequestCaller, seen: &TmuxTaskSession) -> bool {
        parse_process(&seen.owner.process).is_some_and(|keeper| self.0.actions.descends_from(asker, keeper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_a_number_and_its_beginning() {
        assert_eq!(parse_process(&format_process(7, 900)), Some((7, 900)));
        for wrong in ["", "7", "7.", ".900", "a.b", "-7.900", "7.900.1"] {
            assert_eq!(parse_process(wrong), None, "{wrong}");
        }
    }
}
