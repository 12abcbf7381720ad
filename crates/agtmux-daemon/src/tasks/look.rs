//! One look at a session of tasks, in the words of the machine.

use std::collections::HashMap;
use std::path::Path;

use agtmux_api::task_files::RunFiles;
use agtmux_core::fleet::TaskStand;
use agtmux_core::ids::{Generation, PaneId, WindowId};
use agtmux_core::task::{Cursor, Exit, PaneLook, RunId, SessionLook, Signal, TaskInput, TaskLook, cursor_line};
use agtmux_tmux::{CursorLook, SlotPane, TaskSession, TmuxServer, is_listening};

use super::book::{Book, Session};
use super::follow::tail;
use super::{Place, Tasks};

/// How much of a pane is shown where its output is not kept.
const PREVIEW_LINES: u32 = 20;

impl Tasks {
    /// Looks, and tells the machine. False if nothing could be seen, or what was seen could not be stored.
    pub(super) async fn look_and_tell(&self, book: &mut Book, place: &Place) -> bool {
        let tmux = self.tmux(place);
        let Ok(seen) = tmux.task_session(place.session.as_str()).await else { return false };
        if seen.is_none() && is_listening(Path::new(&place.socket)) && tmux.list().await.is_err() {
            // It is there and does not answer: that says nothing about the session.
            return false;
        }
        let session = book.session(place);
        let cursors = self.cursors(&tmux, seen.as_ref(), session).await;
        let look = self.session_look(place, seen, session, &cursors);
        self.tell(book, place, vec![TaskInput::Looked(look)], Vec::new()).await
    }

    /// Where the cursors of those stand who may ask something.
    async fn cursors(
        &self,
        tmux: &TmuxServer,
        seen: Option<&TaskSession>,
        session: &Session,
    ) -> HashMap<u32, CursorLook> {
        let Some(seen) = seen else { return HashMap::new() };
        let may_ask = |pane: &&SlotPane| {
            let run = session.runs.values().find(|run| run.row.pane == PaneId(pane.pane));
            run.is_some_and(|run| run.quiet || matches!(run.stand, TaskStand::Asks(_)))
        };
        let panes: Vec<u32> = seen.panes.iter().filter(may_ask).map(|pane| pane.pane).collect();
        if panes.is_empty() {
            return HashMap::new();
        }
        let lines = tmux.cursor_looks(&panes).await.unwrap_or_default();
        lines.into_iter().map(|line| (line.pane, line)).collect()
    }

    fn session_look(
        &self,
        place: &Place,
        seen: Option<TaskSession>,
        session: &Session,
        cursors: &HashMap<u32, CursorLook>,
    ) -> SessionLook {
        let now = self.0.clock.now();
        let Some(seen) = seen else { return SessionLook::missing(place.session.clone(), None, now) };
        // A window that was made for a task and waits for it is not there yet.
        let waits = |pane: &SlotPane| pane.run.is_none() && session.pending.contains(&pane.window_name);
        let shown = seen.panes.iter().filter(|pane| !waits(pane));
        let mut windows: Vec<u32> = shown.map(|pane| pane.window).collect();
        windows.dedup();
        let tasks = windows.iter().filter_map(|window| {
            let panes: Vec<&SlotPane> = seen.panes.iter().filter(|pane| pane.window == *window).collect();
            let pane = primary(&panes, session)?;
            Some(self.task_look(pane, session, cursors.get(&pane.pane)))
        });
        let tasks = tasks.collect();
        let server = Some(Generation { pid: seen.server_pid, start_time: seen.server_start });
        SessionLook { session_name: place.session.clone(), exists: true, captured_at: now, tasks, server }
    }

    fn task_look(&self, pane: &SlotPane, session: &Session, cursor: Option<&CursorLook>) -> TaskLook {
        let run: Option<RunId> = pane.run.as_ref().and_then(|run| run.parse().ok());
        let files = run.as_ref().map(|run| RunFiles::of(&self.0.dir, run.as_str()));
        let known = run.as_ref().and_then(|run| session.runs.get(run));
        // The end that is written down is told from there, with everything that was written before it.
        let is_told_elsewhere = known.is_some_and(|run| run.files.read_exit().is_some());
        let status = files.as_ref().and_then(RunFiles::read_output);
        let exit = exit_of(pane);
        let heard = session.machine.bells(WindowId(pane.window));
        // tmux's own count takes several in one write for one: it is for windows of others.
        let bells = status.map(|status| status.bells).unwrap_or(if run.is_some() { heard } else { pane.bells });
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        TaskLook {
            window_id: WindowId(pane.window),
            window_name: pane.window_name.clone(),
            pane_id: Some(PaneId(pane.pane)),
            pane_state_known: true,
            current_command: pane.task_command.clone().or(given(&pane.title)).or(given(&pane.current_command)),
            task_cwd: pane.task_cwd.clone(),
            dead: pane.dead && !is_told_elsewhere,
            exit_code: exit.code,
            signal: exit.signal,
            bell: pane.bell,
            bell_count: bells,
            output_preview: files.as_ref().map(tail).unwrap_or_default(),
            run,
            cursor_line: cursor.map(line_of),
            cursor_row: cursor.map(|cursor| cursor.line),
        }
    }

    /// What the session looks like, for somebody who asks. Nothing is told of it.
    pub(super) async fn list_look(&self, place: &Place, seen: Option<TaskSession>) -> SessionLook {
        let tmux = self.tmux(place);
        let mut look = {
            let mut book = self.0.book.lock().await;
            self.session_look(place, seen.clone(), book.session(place), &HashMap::new())
        };
        let panes = seen.map(|seen| seen.panes).unwrap_or_default();
        for task in &mut look.tasks {
            let Some(pane) = panes.iter().find(|pane| Some(PaneId(pane.pane)) == task.pane_id) else { continue };
            task.dead = pane.dead;
            if task.run.is_none()
                && let Ok(Some(shown)) = tmux.output(pane.pane, PREVIEW_LINES, false).await
            {
                let lines = agtmux_core::output::lines(&shown.screen);
                let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
                let from = end.saturating_sub(PREVIEW_LINES as usize);
                task.output_preview = lines[from..end].join("\n");
            }
        }
        look
    }
}

fn line_of(look: &CursorLook) -> String {
    let rows: Vec<&str> = look.rows.iter().map(String::as_str).collect();
    cursor_line(&rows, look.width, Cursor { x: look.x, y: look.y })
}

fn exit_of(pane: &SlotPane) -> Exit {
    let signal = pane.dead_signal.and_then(|number| u8::try_from(number).ok()).filter(|number| *number > 0).map(Signal);
    Exit { code: pane.dead_status.filter(|_| signal.is_none() && pane.dead), signal }
}

/// The pane that a task was launched in, if it is still there; else the first.
fn primary<'a>(panes: &[&'a SlotPane], session: &Session) -> Option<&'a SlotPane> {
    let window = panes.first()?.window;
    let launched = session.run_in(WindowId(window)).map(|run| run.row.pane);
    let looks: Vec<PaneLook> = panes
        .iter()
        .map(|pane| PaneLook { pane_id: PaneId(pane.pane), dead: pane.dead, exit: exit_of(pane) })
        .collect();
    let chosen = PaneLook::primary(&looks, launched)?.pane_id;
    panes.iter().find(|pane| PaneId(pane.pane) == chosen).copied()
}
