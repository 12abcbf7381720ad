//! Keeps the record of a shell that an agent has used until that shell ends.
//!
//! `mirror stop` leaves the shell of an adopted pane running. The commands of the agent may have changed it, so it counts
//! as a shell of the agent also without a terminal, and for a restarted daemon.

use std::io;

use agtmux_api::mirror_files::{AgentShellRecord, MirrorExecRecord, MirrorFiles};

use super::Mirrors;
use super::terminal::SharedTerminal;

impl Mirrors {
    /// Stores that the agent uses the shell. Must be done before the first command of the agent is typed.
    pub(super) fn keep_agent_shell(&self, terminal: &SharedTerminal, record: &MirrorExecRecord) -> io::Result<()> {
        let (Some(process), Some(agent)) = (terminal.spec.process, record.agent.clone()) else { return Ok(()) };
        match terminal.files.read_agent_shell() {
            Some(_) => Ok(()),
            None => terminal.files.write_agent_shell(&AgentShellRecord { process, agent }),
        }
    }

    /// Reads the record that an earlier daemon has stored.
    pub(super) fn restore_agent_shell(&self, files: &MirrorFiles) {
        if let Some(AgentShellRecord { process, agent }) = self.live_agent_shell(files) {
            self.0.actions.remember_agent_shell(process, &agent);
        }
    }

    /// Removes the files of a terminal, but not the record of a shell that still runs.
    pub(super) fn remove_files(&self, files: &MirrorFiles) {
        match self.live_agent_shell(files) {
            Some(_) => files.release(),
            None => files.remove(),
        }
    }

    /// Removes the records of shells that have ended.
    pub(super) fn remove_ended_agent_shells(&self) {
        let entries = std::fs::read_dir(&self.0.dir).into_iter().flatten().flatten();
        let left = entries.map(|entry| MirrorFiles::at(&entry.path())).filter(MirrorFiles::is_released);
        left.filter(|files| self.live_agent_shell(files).is_none()).for_each(|files| files.remove());
    }

    fn live_agent_shell(&self, files: &MirrorFiles) -> Option<AgentShellRecord> {
        files.read_agent_shell().filter(|record| {
            let process = self.0.discovery.processes().try_process(record.process.0);
            // A process table that cannot be read does not mean that the shell has ended.
            process.map_or(true, |process| process.is_some_and(|process| process.start == record.process.1))
        })
    }
}
