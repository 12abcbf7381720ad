//! Describes terminals for API responses.

use std::path::Path;

use agtmux_api::wire::{MirrorItem, MirrorRunningItem, MirrorStatus};
use agtmux_core::ids::PaneId;
use agtmux_core::mirror::{MirrorMethod, MirrorShell};

use super::Mirrors;
use super::terminal::SharedTerminal;

impl Mirrors {
    /// Why agtmux cannot follow the shell of this terminal. `None` if it can.
    pub(super) fn problem(&self, terminal: &SharedTerminal) -> Option<String> {
        let (pid, start) = terminal.spec.process?;
        let Ok(process) = self.0.discovery.processes().try_process(pid) else { return None };
        let Some(process) = process.filter(|process| process.start == start) else {
            return Some("its shell has ended".into());
        };
        let program = Path::new(&terminal.spec.program).canonicalize().ok();
        if let (Some(exe), Some(program)) = (process.exe, program)
            && exe != program
            && exe.exists()
        {
            return Some(format!("the shell was replaced by '{}'", exe.display()));
        }
        if let Some(nested) = self.nested_shell(terminal) {
            return Some(format!("'{nested}' runs in it, and agtmux does not follow commands there"));
        }
        let is_read = terminal.method() == MirrorMethod::Screen || terminal.files.has_reader();
        (!is_read).then(|| "the process that reads its output has ended".into())
    }

    pub(super) fn item(&self, terminal: &SharedTerminal) -> MirrorItem {
        let (problem, method) = (self.problem(terminal), terminal.method());
        let is_busy = method == MirrorMethod::Screen && !self.is_shell_in_foreground(terminal);
        let (spec, view) = (&terminal.spec, terminal.view());
        let state = &view.state;
        let running = state.running.as_ref().map(|running| MirrorRunningItem {
            number: running.number,
            command: running.text.clone().or_else(|| view.commands.back()?.text.clone()),
            command_id: running.exec.clone(),
            since: running.since,
        });
        let status = match () {
            () if state.is_closed || self.is_gone(terminal) => MirrorStatus::Closed,
            () if problem.is_some() => MirrorStatus::Lost,
            () if state.running.is_some() || is_busy => MirrorStatus::Running,
            () if state.seq == 0 => MirrorStatus::Starting,
            () => MirrorStatus::Ready,
        };
        MirrorItem {
            mirror_id: spec.mirror_id.clone(),
            socket: spec.socket.clone(),
            pane_id: PaneId(spec.pane),
            for_pane: spec.for_pane.map(PaneId),
            session: spec.session.clone(),
            shell: spec.shell,
            method,
            status,
            cwd: state.cwd.clone(),
            running,
            problem: problem.filter(|_| !state.is_closed),
            last_number: view.last_number,
            adopted: spec.adopted,
            notes: notes(terminal),
        }
    }
}

/// What an adopted shell keeps from agtmux until it ends.
fn notes(terminal: &SharedTerminal) -> Vec<String> {
    if !terminal.spec.adopted || terminal.spec.shell == MirrorShell::Posix {
        return Vec::new();
    }
    let mut notes =
        vec!["the shell keeps the hooks of agtmux, and PAGER=cat and GIT_PAGER=cat, until it ends".to_owned()];
    if terminal.files.has_history_entry() {
        notes.push("the history of the shell has one line that loaded the hooks".to_owned());
    }
    notes
}
