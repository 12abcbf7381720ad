//! What a pane has shown, and the way to it. Neither changes anything.

use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{ActionKind, ActionOutcome, AttachAction, AttachPlan, Output, OutputAction, PaneHealth};
use agtmux_api::{SCHEMA_VERSION, wire::Guards};
use agtmux_core::{sanitize, text};

use super::perform::Request;
use super::{Actions, Asker, Failure, Scene, guards};

/// More than this is no look at a pane any more.
const MOST_LINES: u32 = 10_000;

impl Actions {
    pub(crate) async fn view_output(
        &self,
        action: OutputAction,
        asker: Asker,
    ) -> Result<ActionOutcome<Output>, ApiError> {
        let lines = action.lines.unwrap_or(0);
        if lines > MOST_LINES {
            let error = ApiError::new(ErrorCode::BadRequest, format!("{MOST_LINES} lines are the most"));
            return Err(error.with_hint("ask for fewer lines"));
        }
        let request = Request {
            kind: ActionKind::ViewOutput,
            guards: &action.guards,
            asker,
            what: Some(format!("lines {lines}")),
            text: None,
            content: String::new(),
        };
        self.perform(request, async |scene| output(scene, action.lines, action.ansi).await).await
    }

    pub(crate) async fn attach(
        &self,
        action: AttachAction,
        asker: Asker,
    ) -> Result<ActionOutcome<AttachPlan>, ApiError> {
        let request = Request {
            kind: ActionKind::Attach,
            guards: &action.guards,
            asker,
            what: None,
            text: None,
            content: String::new(),
        };
        self.perform(request, async |scene| plan(scene)).await
    }

    /// Whether the pane is there and the agent's process lives in it.
    pub(crate) async fn check_health(&self, guards: &Guards) -> Result<PaneHealth, ApiError> {
        let reference = guards.r#ref.parse().map_err(|error| crate::engine::refusal(&error))?;
        let located = self.0.engine.locate(reference).await?;
        let runtime_id = located.living.as_ref().map(|living| living.runtime.id.to_string());
        let process = located.living.as_ref().map(|living| living.runtime.process);
        let (root, pane_id) = (located.pane.pid, located.key.pane.to_string());
        let scene = self.scene(located, false)?;
        let available = scene.look().await.is_ok();
        let tree = self.0.discovery.processes().trees(&[root]).pop().flatten();
        let lives = |pid: u32, start: u64| {
            tree.iter().flat_map(|tree| &tree.processes).any(|p| (p.pid, p.start) == (pid, start) && !p.zombie)
        };
        let running = available && process.is_some_and(|process| lives(process.pid, process.start));
        let reason = match (available, running) {
            (false, _) => Some("the pane is gone, or another program was started in it".into()),
            (true, false) => Some("no agent runs in it".into()),
            (true, true) => None,
        };
        let pane_id = Some(pane_id);
        Ok(PaneHealth { schema_version: SCHEMA_VERSION, available, running, runtime_id, pane_id, reason })
    }
}

async fn output(scene: &Scene<'_>, lines: Option<u32>, ansi: bool) -> Result<Output, Failure> {
    let capture = scene.tmux.output(scene.guard.pane, lines.unwrap_or(0), ansi).await?;
    let same = capture.filter(|c| (c.server_pid, c.pane_pid) == (scene.guard.server_pid, scene.guard.pane_pid));
    let Some(capture) = same else {
        return Err(Failure::refused(guards::stale("another program was started in the pane, or it is gone".into())));
    };
    let shown = text::from_bytes(&capture.screen);
    let clean = |line: &str| if ansi { sanitize::keeping_colours(line) } else { sanitize::for_terminal(line) };
    let mut all: Vec<String> = shown.trim_end().lines().map(|line| clean(line.trim_end())).collect();
    if let Some(most) = lines.and_then(|most| usize::try_from(most).ok()) {
        all.drain(..all.len().saturating_sub(most));
    }
    let title = text::from_bytes(&capture.title);
    Ok(Output { lines: all, title: Some(sanitize::for_terminal(&title)).filter(|title| !title.is_empty()) })
}

fn plan(scene: &Scene<'_>) -> Result<AttachPlan, Failure> {
    let pane = &scene.located.pane;
    let Some(place) = pane.placements.first() else {
        return Err(Failure::refused(guards::stale("no session shows this pane".into())));
    };
    Ok(AttachPlan {
        socket: scene.tmux.socket().display().to_string(),
        server_pid: scene.guard.server_pid,
        server_start: scene.guard.server_start,
        session_id: place.session.to_string(),
        session_name: place.session_name.clone(),
        window_id: pane.window.to_string(),
        pane_pid: pane.pid,
    })
}
