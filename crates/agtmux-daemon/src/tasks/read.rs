//! What can be read of tasks, and what is typed into them.

use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::task_files::{RunFiles, read_log};
use agtmux_api::wire::{
    ActionGuards, ActionOutcome, InputProfile, SendAction, SendReport, TaskEvents, TaskEventsQuery, TaskInputAction,
    TaskList, TaskLogs, TaskLogsQuery, TaskSessionQuery,
};
use agtmux_core::ids::{PaneId, TargetName, WindowId};
use agtmux_core::output::lines as plain_lines;
use agtmux_core::refs::PaneRef;
use agtmux_core::task::{RunId, TaskEventKind, TaskExit};

use super::{Tasks, tmux_failed};
use crate::actions::RequestCaller;
use crate::observe::server_name;

/// Where nobody says how many lines, all that are kept; this is how many a pane is asked for that keeps no log.
const DEFAULT_PANE_LINES: u32 = 2000;
/// Of a log that may be as large as the configuration allows, the newest that one answer can carry.
const MAX_LOG_BYTES: u64 = 16 << 20;

impl Tasks {
    pub(crate) async fn list(&self, asked: &TaskSessionQuery) -> Result<TaskList, ApiError> {
        let place = self.session_key(&asked.session, asked.socket.as_ref())?;
        let seen = self.tmux(&place).task_session(place.session.as_str()).await;
        let seen = seen.map_err(|error| tmux_failed(&error))?;
        let mut list = self.listed_snapshot(&place, seen).await;
        for task in list.tasks.iter_mut().filter(|task| task.dead && task.exit() == TaskExit::UNKNOWN) {
            // tmux hears of it a moment after the pane is dead, or never.
            let told = match &task.run {
                Some(run) => self.recorded_exit(run.as_str()).await,
                None => None,
            };
            (task.exit_code, task.signal) = told.map_or((None, None), |exit| (exit.code, exit.signal));
        }
        Ok(list)
    }

    /// How a run ended, as the one who watched over it has written it down.
    pub(super) async fn recorded_exit(&self, run_id: &str) -> Option<TaskExit> {
        let query = TaskEventsQuery { run_id: Some(run_id.to_owned()), after: Some(0), ..TaskEventsQuery::default() };
        let told = self.events(query).await.ok()?;
        let end = told.items.into_iter().find(|event| event.kind == TaskEventKind::Exited)?;
        Some(TaskExit { code: end.exit_code, signal: end.signal })
    }

    pub(crate) async fn logs(&self, asked: &TaskLogsQuery) -> Result<TaskLogs, ApiError> {
        let place = self.session_key(&asked.session, asked.socket.as_ref())?;
        let tmux = self.tmux(&place);
        let (_, slot) = self.find_task(&tmux, &place, &asked.task).await?;
        let run: Option<RunId> = slot.run.as_ref().and_then(|run| run.parse().ok());
        let log = run.as_ref().map(|run| RunFiles::in_dir(&self.0.dir, run.as_str()).log()).filter(|log| log.exists());
        let mut lines = match &log {
            Some(log) => {
                let log = log.clone();
                let read =
                    tokio::task::spawn_blocking(move || read_log(&log, MAX_LOG_BYTES).map(|it| plain_lines(&it)));
                read.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(|error| {
                    ApiError::new(ErrorCode::Internal, format!("its log cannot be read: {error}"))
                        .with_hint("agtmux daemon logs")
                })?
            }
            None => {
                let shown = tmux.output(slot.pane, asked.lines.unwrap_or(DEFAULT_PANE_LINES), false).await;
                let shown = shown.map_err(|error| tmux_failed(&error))?;
                plain_lines(&shown.map(|shown| shown.screen).unwrap_or_default())
            }
        };
        let most = asked.lines.map_or(usize::MAX, |lines| lines as usize);
        let from = lines.len().saturating_sub(most);
        Ok(TaskLogs {
            session: place.session.to_string(),
            task: slot.window_name,
            window_id: WindowId(slot.window),
            run_id: run.map(String::from),
            lines: lines.split_off(from),
            log: log.map(|log| log.display().to_string()),
            dead: slot.dead,
        })
    }

    /// By the one sender, with all its guards.
    pub(crate) async fn input(
        &self,
        action: TaskInputAction,
        asker: RequestCaller,
    ) -> Result<ActionOutcome<SendReport>, ApiError> {
        let place = self.session_key(&action.session, action.socket.as_ref())?;
        let (_, slot) = self.find_own_task(&self.tmux(&place), &place, &action.task).await?;
        let reference = PaneRef::Path {
            target: TargetName::LOCAL.into(),
            server: Some(server_name(std::path::Path::new(&place.socket)).to_string()),
            session: place.session.to_string(),
            window: WindowId(slot.window),
            pane: PaneId(slot.pane),
        };
        let guards = ActionGuards { r#ref: reference.to_string(), client: action.client, ..ActionGuards::default() };
        let send = SendAction {
            guards,
            text: Some(action.text),
            keys: Vec::new(),
            no_enter: action.no_enter,
            profile: Some(InputProfile::Shell),
        };
        self.0.actions.send(send, asker).await
    }

    pub(crate) async fn events(&self, query: TaskEventsQuery) -> Result<TaskEvents, ApiError> {
        let (archive, now) = (Arc::clone(&self.0.archive), self.0.clock.now());
        let read = tokio::task::spawn_blocking(move || {
            let items = archive.events(&query)?;
            let last = items.last().map(|event| event.seq).or(query.after);
            let seq = match last {
                Some(seq) => seq,
                None => archive.last_seq()?,
            };
            Ok::<_, rusqlite::Error>((items, seq))
        });
        let Ok(Ok((items, seq))) = read.await else {
            let error = ApiError::new(ErrorCode::Internal, "the events of tasks cannot be read");
            return Err(error.with_hint("agtmux daemon logs"));
        };
        Ok(TaskEvents { schema_version: SCHEMA_VERSION, seq, generated_at: now, items })
    }
}
