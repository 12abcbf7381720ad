//! `new`: starts an agent in a new pane, by the user's shell, and sends its first prompt when the agent is ready.

mod kept_prompts;
mod launch;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::host_protocol::HubRequest;
use agtmux_api::wire::{ActionOutcome, NewAction, NewReport, PromptDelivery, PromptStatus};
use agtmux_core::ids::TargetName;
use agtmux_core::refs::is_agent_name;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use jiff::{SignedDuration, Timestamp};

use super::perform::{ActionRequest, outcome};
use super::sender::checked_text;
use super::{Actions, RequestCaller, precondition, snapshots};
use crate::engine::LocatedAgent;
use crate::remote::{no_such_target, relay_new};
use kept_prompts::DeliveryEnd;
pub(crate) use kept_prompts::KeptPrompts;
use launch::StartedAgent;

/// A new agent may draw its input box for a moment before it asks whether the directory is trusted.
const REST_TIME: SignedDuration = SignedDuration::from_millis(1500);

impl Actions {
    pub(crate) async fn new_agent(
        &self,
        action: NewAction,
        caller: RequestCaller,
    ) -> ApiResult<ActionOutcome<NewReport>> {
        let guards = action.guards();
        let request = ActionRequest {
            summary: Some(summary(&action)),
            text: action.prompt.as_deref(),
            ..ActionRequest::new(HubRequest::New(action.clone()), &guards, caller.clone())
        };
        self.perform_without_pane(request, async |action_id| {
            self.refuse_agents_that_start(&caller).await?;
            check_request(&action)?;
            match action.target.as_deref().filter(|target| *target != TargetName::LOCAL) {
                Some(target) => self.start_on(target, &action, action_id).await,
                None => self.start_here(&action, action_id).await,
            }
        })
        .await
    }

    pub(super) async fn refuse_agents_that_start(&self, caller: &RequestCaller) -> ApiResult<()> {
        if self.config().actions.allow_new_from_agents {
            return Ok(());
        }
        self.refuse_agents_unless_allowed(caller, "start other agents").await.map_err(|error| match error.code {
            ErrorCode::CallerIsAgent => {
                let hint = "run the command yourself, or set actions.allow_new_from_agents in the configuration";
                error.with_hint(hint)
            }
            _ => error,
        })
    }

    /// Starts the agent on another host.
    async fn start_on(
        &self,
        target: &str,
        action: &NewAction,
        action_id: String,
    ) -> ApiResult<ActionOutcome<NewReport>> {
        let name = TargetName::new(target);
        let link = self.0.targets.link(&name).ok_or_else(|| no_such_target(target))?;
        if !link.is_native() {
            let message = format!("cannot start an agent on {target}: agtmux does not run there, or is not connected");
            let hint = format!(
                "agtmux target doctor {target}   (install agtmux on the host, then: agtmux target connect {target})"
            );
            return Err(precondition(message, hint));
        }
        let action = NewAction { target: None, client: Some("hub".into()), request_ref: None, ..action.clone() };
        let done = relay_new(&link, &name, action).await?;
        let runtime_id = match done.runtime_id {
            Some(id) => self.0.engine.local_id(name, id).await.map(|id| id.to_string()),
            None => None,
        };
        Ok(ActionOutcome { target: target.to_owned(), action_id, runtime_id, ..done })
    }

    /// Starts the agent on this machine.
    async fn start_here(&self, action: &NewAction, action_id: String) -> ApiResult<ActionOutcome<NewReport>> {
        let begun = tokio::time::Instant::now();
        let StartedAgent { located, agent, command, cwd } = self.launch(action).await?;
        let runtime = agent.runtime.id.clone();
        let prompt = match &action.prompt {
            Some(text) => Some(self.deliver_prompt(&runtime, text).await),
            None => {
                self.wait_for_first_state(&runtime).await;
                None
            }
        };
        let now = self.0.engine.locate(agtmux_core::refs::PaneRef::Runtime(runtime)).await.ok();
        let located = now.unwrap_or(located);
        let agent = located.agent.clone().unwrap_or(agent);
        let report = NewReport {
            agent_type: agent.runtime.agent_type.to_string(),
            name: agent.runtime.name.clone(),
            command,
            cwd,
            session_name: located.pane.placements.first().map(|place| place.session_name.clone()).unwrap_or_default(),
            window_id: located.pane.window.to_string(),
            state: Some(agent.record.state),
            dialog: agent.dialog.clone(),
            prompt,
        };
        let snapshot = snapshots::take_snapshot(&located, self.0.clock.now(), SignedDuration::ZERO);
        Ok(outcome(action_id, &snapshot, begun.elapsed(), report))
    }

    /// Keeps the prompt until it can be sent. Returns when it was sent, or when the agent turns out not to be ready.
    async fn deliver_prompt(&self, runtime: &RuntimeId, text: &str) -> PromptDelivery {
        let delivery = match self.0.kept_prompts.keep(runtime, text) {
            Ok(()) => self.follow_kept_prompt(runtime.clone()),
            Err(error) => {
                let reason = Some(format!("the prompt could not be stored, so it was not sent: {error}"));
                return PromptDelivery { status: PromptStatus::Failed, sent: None, reason };
            }
        };
        let sent = async {
            match delivery.await {
                Ok(DeliveryEnd::Sent(report)) => {
                    PromptDelivery { status: PromptStatus::Sent, sent: Some(report), reason: None }
                }
                Ok(DeliveryEnd::Failed(reason)) => failed(reason),
                Err(_) => failed("the daemon is stopping".into()),
            }
        };
        tokio::select! {
            sent = sent => sent,
            reason = self.why_not_ready(runtime) => {
                PromptDelivery { status: PromptStatus::Kept, sent: None, reason: Some(reason) }
            }
        }
    }
}

fn failed(reason: String) -> PromptDelivery {
    PromptDelivery { status: PromptStatus::Failed, sent: None, reason: Some(reason) }
}

/// Checks everything that can be checked before a pane is opened.
fn check_request(action: &NewAction) -> ApiResult<()> {
    let bad = |message: String, hint: &str| Err(ApiError::new(ErrorCode::BadRequest, message).with_hint(hint));
    if let Some(prompt) = &action.prompt {
        checked_text(prompt)?;
    }
    if let Some(name) = action.name.as_ref().filter(|name| !is_agent_name(name)) {
        let message = format!("'{}' is not a valid name", name.escape_debug());
        return bad(message, "use at most 64 letters, digits, '-', '_' and '.'");
    }
    if let Some(word) = action.arguments.iter().find(|word| word.chars().any(char::is_control)) {
        let message = format!("the argument '{}' contains a control character", word.escape_debug());
        return bad(message, "pass a long text with --prompt");
    }
    Ok(())
}

fn summary(action: &NewAction) -> String {
    let place = match action.target.as_deref() {
        Some(target) if target != TargetName::LOCAL => format!(" on {target}"),
        _ => String::new(),
    };
    format!("start {}{place} in {}", action.agent, action.cwd)
}

/// Whether the agent waits for a prompt, and has done so for `REST_TIME`.
fn is_ready(agent: &LocatedAgent, now: Timestamp) -> bool {
    let rests = matches!(agent.record.state, State::Idle | State::Completed) && agent.dialog.is_none();
    rests && now.duration_since(agent.record.since) >= REST_TIME
}
