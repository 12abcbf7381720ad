//! `task list`, `task logs`, `task input` and `task events`.

use std::sync::Arc;

use agtmux_api::SCHEMA_VERSION;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::task_files::read_log;
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

/// How many lines are read from a pane if the task has no log and the caller gives no number.
const DEFAULT_PANE_LINES: u32 = 2000;
/// The maximum size of a log in one response. A longer log is cut: the response contains only its end.
const MAX_LOG_BYTES: u64 = 16 << 20;

impl Tasks {
    pub(crate) async fn list(&self, request: &TaskSessionQuery) -> Result<TaskList, ApiError> {
        let key = self.session_key(&request.session, request.socket.as_ref())?;
        let session = self.listed_session(&key).await?;
        let mut list = self.listed_snapshot(&key, session.as_ref()).await;
        for task in list.tasks.iter_mut().filter(|task| task.dead && task.exit() == TaskExit::UNKNOWN) {
            // tmux learns the exit status a moment after the pane is dead, or never.
            let recorded = match &task.run {
                Some(run) => self.recorded_exit(run.as_str()).await,
                None => None,
            };
            (task.exit_code, task.signal) = recorded.map_or((None, None), |exit| (exit.code, exit.signal));
        }
        Ok(list)
    }

    /// How a run exited, according to its stored event.
    pub(super) async fn recorded_exit(&self, run_id: &str) -> Option<TaskExit> {
        let query = TaskEventsQuery { run_id: Some(run_id.to_owned()), after: Some(0), ..TaskEventsQuery::default() };
        let recorded = self.events(query).await.ok()?;
        let end = recorded.items.into_iter().find(|event| event.kind == TaskEventKind::Exited)?;
        Some(TaskExit { code: end.exit_code, signal: end.signal })
    }

    pub(crate) async fn logs(&self, request: &TaskLogsQuery) -> Result<TaskLogs, ApiError> {
        let key = self.session_key(&request.session, request.socket.as_ref())?;
        let (_, slot) = self.find_task(&key, &request.task).await?;
        let run: Option<RunId> = slot.run.as_ref().and_then(|run| run.parse().ok());
        let log = run.as_ref().map(|run| self.run_files(run).log()).filter(|log| log.exists());
        let mut lines = match &log {
            Some(log) => {
                let log = log.clone();
                let read =
                    tokio::task::spawn_blocking(move || read_log(&log, MAX_LOG_BYTES).map(|it| plain_lines(&it)));
                read.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(|error| {
                    ApiError::new(ErrorCode::Internal, format!("cannot read the log of the task: {error}"))
                        .with_hint("agtmux daemon logs")
                })?
            }
            None => {
                let count = request.lines.unwrap_or(DEFAULT_PANE_LINES);
                let shown = self.tmux(&key).output(slot.pane, count, false).await.map_err(tmux_failed)?;
                plain_lines(&shown.map(|shown| shown.screen).unwrap_or_default())
            }
        };
        let most = request.lines.map_or(usize::MAX, |lines| lines as usize);
        let from = lines.len().saturating_sub(most);
        Ok(TaskLogs {
            session: key.session.to_string(),
            task: slot.window_name,
            window_id: WindowId(slot.window),
            run_id: run.map(String::from),
            lines: lines.split_off(from),
            log: log.map(|log| log.display().to_string()),
            dead: slot.dead,
        })
    }

    /// Types text into a task, in the same way and with the same checks as `agtmux send`.
    pub(crate) async fn input(
        &self,
        action: TaskInputAction,
        caller: RequestCaller,
    ) -> Result<ActionOutcome<SendReport>, ApiError> {
        let key = self.session_key(&action.session, action.socket.as_ref())?;
        let (_, slot) = self.find_own_task(&key, &action.task).await?;
        let reference = PaneRef::Path {
            target: TargetName::LOCAL.into(),
            server: Some(server_name(std::path::Path::new(&key.socket)).to_string()),
            session: key.session.to_string(),
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
        self.0.actions.send(send, caller).await
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
            let error = ApiError::new(ErrorCode::Internal, "cannot read task events");
            return Err(error.with_hint("agtmux daemon logs"));
        };
        Ok(TaskEvents { schema_version: SCHEMA_VERSION, seq, generated_at: now, items })
    }
}
