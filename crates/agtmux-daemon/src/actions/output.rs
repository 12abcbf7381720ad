//! What a pane has shown, and the way to it. Neither changes anything.

use std::os::unix::ffi::OsStrExt;

use agtmux_api::collect::Ask;
use agtmux_api::error::{ApiError, ErrorCode};
use agtmux_api::wire::{
    ActionKind, ActionOutcome, AttachAction, AttachPlan, Output, OutputAction, PaneHealth, PlanSession,
};
use agtmux_api::{SCHEMA_VERSION, wire::Guards};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::Ref;
use agtmux_core::{sanitize, text};
use agtmux_tmux::TmuxError;
use jiff::SignedDuration;
use uuid::Uuid;

use super::far::Stage;
use super::perform::Request;
use super::repeated::content;
use super::{Actions, Asker, Failure, Scene, foreign, guards, snapshots};
use crate::engine::{Located, refusal};

/// More than this is no look at a pane any more.
const MOST_LINES: u32 = 10_000;

impl Actions {
    pub(crate) async fn view_output(
        &self,
        action: OutputAction,
        asker: Asker,
    ) -> Result<ActionOutcome<Output>, ApiError> {
        let lines = action.lines.unwrap_or(0);
        if action.again && lines <= MOST_LINES && self.has_looked(&action, &asker).await {
            return self.look_again(&action).await;
        }
        let guards = &action.guards;
        let ask = |guards| Ask::ViewOutput(OutputAction { guards, ..action.clone() });
        let request = Request {
            kind: ActionKind::ViewOutput,
            guards,
            asker: asker.clone(),
            what: Some(format!("lines {lines}")),
            text: None,
            content: String::new(),
            ask: &ask,
        };
        if lines > MOST_LINES {
            let error = ApiError::new(ErrorCode::BadRequest, format!("{MOST_LINES} lines are the most"));
            return Err(self.turn_down(request, error.with_hint("ask for fewer lines")).await);
        }
        if guards.request_ref.is_some() {
            let message = "what a pane has shown is not kept, so that no name can bring it back";
            let error =
                ApiError::new(ErrorCode::BadRequest, message).with_hint("leave out request_ref; look once more");
            return Err(self.turn_down(request, error).await);
        }
        let done = self.perform(request, async |scene| output(scene, action.lines, action.ansi).await).await?;
        self.0.followers.note(&asker, &done.target, &done.server, &done.pane_id);
        Ok(elsewhere(done, &action))
    }

    /// Whether it was written down that this one looks at that pane.
    async fn has_looked(&self, action: &OutputAction, asker: &Asker) -> bool {
        let Ok(reference) = action.guards.r#ref.parse::<Ref>() else { return false };
        let Ok(located) = self.0.engine.locate(reference).await else { return false };
        let key = &located.key;
        self.0.followers.knows(asker, key.server.target.as_str(), key.server.server.as_str(), &key.pane.to_string())
    }

    /// The same pane once more, for whoever follows it: that is not another action.
    async fn look_again(&self, action: &OutputAction) -> Result<ActionOutcome<Output>, ApiError> {
        let reference: Ref = action.guards.r#ref.parse().map_err(|error| refusal(&error))?;
        let located = self.0.engine.locate(reference).await?;
        let now = self.0.clock.now();
        guards::in_time(&action.guards, now)?;
        let seen = self.0.snapshots.named(&action.guards, now)?;
        guards::check(&action.guards, seen.as_ref(), &located, ActionKind::ViewOutput, now)?;
        let snapshot = snapshots::of(&located, now, SignedDuration::ZERO);
        let ask = |guards| Ask::ViewOutput(OutputAction { guards, ..action.clone() });
        let report = match self.stage(located, action.guards.force_stale)? {
            Stage::Here(scene) => output(&scene, action.lines, action.ansi).await,
            Stage::There(far) => far.relay(ActionKind::ViewOutput, &action.guards, &ask).await,
        };
        let report = report.map_err(|failure| failure.error)?;
        let done = ActionOutcome {
            schema_version: SCHEMA_VERSION,
            action_id: Uuid::now_v7().simple().to_string(),
            snapshot_id: snapshot.snapshot_id,
            runtime_id: snapshot.runtime_id,
            target: snapshot.server.target.to_string(),
            server: snapshot.server.server.to_string(),
            pane_id: snapshot.pane.to_string(),
            latency_ms: 0,
            repeated: false,
            report,
        };
        Ok(elsewhere(done, action))
    }

    pub(crate) async fn attach(
        &self,
        action: AttachAction,
        asker: Asker,
    ) -> Result<ActionOutcome<AttachPlan>, ApiError> {
        let ask = |guards| Ask::Attach(AttachAction { guards });
        let request = Request {
            kind: ActionKind::Attach,
            guards: &action.guards,
            asker,
            what: None,
            text: None,
            content: content(ActionKind::Attach, &action),
            ask: &ask,
        };
        let mut done = self.perform(request, async |scene| plan(scene)).await?;
        done.report.ssh = self.0.targets.way(&TargetName::new(&done.target));
        Ok(done)
    }

    /// Whether the pane is there and the agent's process lives in it.
    pub(crate) async fn check_health(&self, guards: &Guards) -> Result<PaneHealth, ApiError> {
        let reference = guards.r#ref.parse().map_err(|error| crate::engine::refusal(&error))?;
        let located = self.0.engine.locate(reference).await?;
        let runtime_id = located.living.as_ref().map(|living| living.runtime.id.to_string());
        let process = located.living.as_ref().map(|living| living.runtime.process);
        if let Some(link) = self.far(&located)? {
            // Its host tells of it without being asked.
            return far_health(&located, link.status().connected);
        }
        let (root, pane_id) = (located.pane.pid, located.key.pane.to_string());
        let scene = self.scene(located, false)?;
        let gone = match scene.look().await {
            Ok(_) => None,
            Err(failure) => Some(why_gone(failure.error, &scene)?),
        };
        let available = gone.is_none();
        let tree = match scene.processes.try_tree(root).await {
            Ok(tree) => tree,
            Err(untold) => return Err(no_answer(&scene, &untold.to_string())),
        };
        let lives = |pid: u32, start: u64| {
            tree.iter().flat_map(|tree| &tree.processes).any(|p| (p.pid, p.start) == (pid, start) && !p.zombie)
        };
        let running = available && process.is_some_and(|process| lives(process.pid, process.start));
        let reason = gone.or_else(|| (!running).then(|| "no agent runs in it".into()));
        let pane_id = Some(pane_id);
        Ok(PaneHealth { schema_version: SCHEMA_VERSION, available, running, runtime_id, pane_id, reason })
    }
}

/// Why a pane is not there. Where nobody has said so, it may well be.
fn why_gone(error: ApiError, scene: &Scene<'_>) -> Result<String, ApiError> {
    match error.code {
        ErrorCode::RuntimeStale | ErrorCode::PaneNotFound => {
            Ok("the pane is gone, or another program was started in it".into())
        }
        _ if scene.located.key.server.target.is_local() => Ok(error.message),
        ErrorCode::Timeout | ErrorCode::TargetUnreachable => Err(no_answer(scene, &error.message)),
        _ => Err(error),
    }
}

fn no_answer(scene: &Scene<'_>, why: &str) -> ApiError {
    let target = &scene.located.key.server.target;
    let error = ApiError::new(ErrorCode::TargetUnreachable, format!("{target} gave no answer: {why}"));
    error.with_hint(format!("agtmux target doctor {target}"))
}

fn far_health(located: &Located, connected: bool) -> Result<PaneHealth, ApiError> {
    if !connected || !located.reachable {
        return Err(guards::out_of_reach(&located.key.server.target));
    }
    let running = located.living.is_some();
    Ok(PaneHealth {
        schema_version: SCHEMA_VERSION,
        available: true,
        running,
        runtime_id: located.living.as_ref().map(|living| living.runtime.id.to_string()),
        pane_id: Some(located.key.pane.to_string()),
        reason: (!running).then(|| "no agent runs in it".into()),
    })
}

/// What another host shows is no cleaner than that host wants it to be.
fn elsewhere(done: ActionOutcome<Output>, action: &OutputAction) -> ActionOutcome<Output> {
    if done.target == TargetName::LOCAL {
        return done;
    }
    let most = action.lines.unwrap_or(MOST_LINES).min(MOST_LINES) as usize;
    ActionOutcome { report: foreign::shown(done.report, most, action.ansi), ..done }
}

async fn output(scene: &Scene<'_>, lines: Option<u32>, ansi: bool) -> Result<Output, Failure> {
    let (pane, most) = (scene.guard.pane, lines.unwrap_or(0));
    let capture = match scene.tmux.output(pane, most, ansi).await {
        // The line broke: what changes nothing is asked once more, when its host is back.
        Err(lost @ TmuxError::Unreachable(_)) => match scene.back().await {
            Some(tmux) => tmux.output(pane, most, ansi).await?,
            None => return Err(lost.into()),
        },
        captured => captured?,
    };
    let same = capture.filter(|c| (c.server_pid, c.pane_pid) == (scene.guard.server_pid, scene.guard.pane_pid));
    let Some(capture) = same else {
        return Err(Failure::refused(guards::stale("another program was started in the pane, or it is gone".into())));
    };
    let shown = text::from_bytes(&capture.screen);
    let clean = |line: &str| if ansi { sanitize::keeping_colours(line) } else { sanitize::for_terminal(line) };
    let mut all: Vec<String> = shown.trim_end().lines().map(|line| clean(line.trim_end())).collect();
    if let Some(most) = lines.and_then(|most| usize::try_from(most).ok()) {
        let left_out: String = all.drain(..all.len().saturating_sub(most)).collect();
        if let Some(first) = all.first_mut().filter(|_| ansi) {
            first.insert_str(0, &in_force(&left_out));
        }
    }
    let title = text::from_bytes(&capture.title);
    Ok(Output {
        lines: all,
        title: Some(sanitize::for_terminal(&title)).filter(|title| !title.is_empty()),
        full_screen: capture.full_screen,
        tty: Some(scene.located.pane.tty.clone()).filter(|tty| !tty.is_empty()),
    })
}

/// The colours that are still on after this text: tmux says only what changes.
fn in_force(coloured: &str) -> String {
    let since = coloured.rfind("\u{1b}[0m").map_or(coloured, |at| &coloured[at..]);
    let attribute = |rest: &str| rest.find('m').map(|end| format!("\u{1b}[{}", &rest[..=end]));
    since.split("\u{1b}[").skip(1).filter_map(attribute).collect()
}

fn plan(scene: &Scene<'_>) -> Result<AttachPlan, Failure> {
    let pane = &scene.located.pane;
    let Some(place) = pane.placements.first() else {
        return Err(Failure::refused(guards::stale("no session shows this pane".into())));
    };
    Ok(AttachPlan {
        socket: text::from_bytes(scene.tmux.socket().as_os_str().as_bytes()),
        server_pid: scene.guard.server_pid,
        server_start: scene.guard.server_start,
        session_id: place.session.to_string(),
        session_name: place.session_name.clone(),
        sessions: pane.placements.iter().map(session).collect(),
        window_id: pane.window.to_string(),
        pane_pid: pane.pid,
        ssh: None,
    })
}

fn session(place: &agtmux_core::fleet::Placement) -> PlanSession {
    PlanSession { session_id: place.session.to_string(), session_name: place.session_name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_now_the_first_keeps_its_colours() {
        let red_and_bold = "\u{1b}[32mgone\u{1b}[0m \u{1b}[31mred \u{1b}[1mbold";
        assert_eq!(in_force(red_and_bold), "\u{1b}[0m\u{1b}[31m\u{1b}[1m");
        assert_eq!(in_force("plain"), "");
    }
}
