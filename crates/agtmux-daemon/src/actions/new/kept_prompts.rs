//! The first prompts of new agents, kept until the agents are ready for them.
//!
//! Each prompt is a file, so that it survives a restart of the daemon. The file is renamed before the prompt is sent. A
//! renamed file that a restarted daemon finds is therefore about a prompt that may have been sent, and is never sent
//! again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::error::ApiResult;
use agtmux_api::task_files::write_atomically;
use agtmux_api::wire::{ActionGuards, SendAction, SendReport};
use agtmux_core::refs::PaneRef;
use agtmux_core::runtime::RuntimeId;
use agtmux_core::state::State;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::super::{Actions, RequestCaller};
use super::is_ready;
use crate::engine::LocatedAgent;

/// The ending of a file whose prompt is being sent.
const SENDING: &str = "sending";
/// How long a request waits until a new agent is ready for its prompt.
const READY_TIMEOUT: Duration = Duration::from_secs(40);
/// How long a dialog must be open before the request reports it. Some agents show a dialog for a moment.
const DIALOG_TIME: Duration = Duration::from_secs(1);
/// How often to look at an agent: at first, and after `READY_TIMEOUT`.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
const SLOW_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long to wait after a refused attempt, for example because a person types.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// How long to wait for the first definite state of an agent that has no prompt.
const STATE_TIMEOUT: Duration = Duration::from_secs(10);

/// The directory with the kept prompts.
#[derive(Debug)]
pub(crate) struct KeptPrompts(PathBuf);

/// How the delivery of a prompt ended.
pub(super) enum DeliveryEnd {
    Sent(SendReport),
    Failed(String),
}

impl KeptPrompts {
    pub(crate) fn in_dir(dir: PathBuf) -> Self {
        Self(dir)
    }

    /// Stores the prompt for this agent.
    pub(super) fn keep(&self, runtime: &RuntimeId, text: &str) -> io::Result<()> {
        write_atomically(&self.path(runtime), text.as_bytes())
    }

    /// The agents that have a prompt. Removes prompts that may have been sent before the daemon was restarted.
    fn pending(&self) -> Vec<RuntimeId> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let mut pending = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == SENDING) {
                tracing::warn!(path = %path.display(), "the daemon ended while it sent this prompt; it is not sent again");
                remove(&path);
            } else if let Some(id) = path.file_name().and_then(|name| name.to_str()).filter(|id| !id.contains('.')) {
                pending.push(RuntimeId::from_stored(id.to_owned()));
            }
        }
        pending
    }

    fn text(&self, runtime: &RuntimeId) -> Option<String> {
        fs::read_to_string(self.path(runtime)).ok()
    }

    /// Marks the prompt as being sent. Returns false if that is not possible, or if the prompt is gone.
    fn begin(&self, runtime: &RuntimeId) -> bool {
        fs::rename(self.path(runtime), self.sending_path(runtime)).is_ok()
    }

    /// Takes the mark back, because nothing was typed.
    fn put_back(&self, runtime: &RuntimeId) {
        // If this fails, the prompt counts as sent, which is the safe side.
        let _ = fs::rename(self.sending_path(runtime), self.path(runtime));
    }

    fn forget(&self, runtime: &RuntimeId) {
        remove(&self.path(runtime));
        remove(&self.sending_path(runtime));
    }

    fn path(&self, runtime: &RuntimeId) -> PathBuf {
        self.0.join(runtime.as_str())
    }

    fn sending_path(&self, runtime: &RuntimeId) -> PathBuf {
        self.0.join(format!("{runtime}.{SENDING}"))
    }
}

fn remove(path: &Path) {
    // The file may already be gone.
    let _ = fs::remove_file(path);
}

impl Actions {
    /// Continues with the prompts that were kept when the daemon ended.
    pub(crate) fn follow_kept_prompts(&self) {
        for runtime in self.0.kept_prompts.pending() {
            drop(self.follow_kept_prompt(runtime));
        }
    }

    /// Sends the prompt when the agent is ready, or forgets it when the agent ends.
    pub(super) fn follow_kept_prompt(&self, runtime: RuntimeId) -> oneshot::Receiver<DeliveryEnd> {
        let (done, end) = oneshot::channel();
        let actions = self.clone();
        tokio::spawn(async move {
            let end = actions.deliver_when_ready(&runtime).await;
            actions.0.kept_prompts.forget(&runtime);
            if let DeliveryEnd::Failed(why) = &end {
                tracing::warn!(%runtime, why, "the first prompt of an agent was not sent");
            }
            // The request may have ended.
            let _ = done.send(end);
        });
        end
    }

    async fn deliver_when_ready(&self, runtime: &RuntimeId) -> DeliveryEnd {
        let started = Instant::now();
        loop {
            match self.agent(runtime).await {
                None => return DeliveryEnd::Failed("the agent ended before the prompt could be sent".into()),
                Some(agent) if is_ready(&agent, self.0.clock.now()) => match self.send_kept(runtime).await {
                    Some(end) => return end,
                    None => sleep(RETRY_PAUSE).await,
                },
                Some(_) if started.elapsed() < READY_TIMEOUT => sleep(POLL_INTERVAL).await,
                Some(_) => sleep(SLOW_POLL_INTERVAL).await,
            }
        }
    }

    /// Sends the prompt. Returns `None` if nothing was typed and a later attempt may succeed.
    async fn send_kept(&self, runtime: &RuntimeId) -> Option<DeliveryEnd> {
        let kept = &self.0.kept_prompts;
        let Some(text) = kept.text(runtime).filter(|_| kept.begin(runtime)) else {
            return Some(DeliveryEnd::Failed("the stored prompt cannot be read".into()));
        };
        match self.send_first_prompt(runtime, text).await {
            Ok(report) => Some(DeliveryEnd::Sent(report)),
            Err(error) if error.done_something => Some(DeliveryEnd::Failed(error.message)),
            Err(_) => {
                kept.put_back(runtime);
                None
            }
        }
    }

    async fn send_first_prompt(&self, runtime: &RuntimeId, text: String) -> ApiResult<SendReport> {
        let guards = ActionGuards {
            r#ref: format!("runtime:{runtime}"),
            if_runtime: Some(runtime.to_string()),
            client: Some("first-prompt".into()),
            ..ActionGuards::default()
        };
        // The daemon itself sends the prompt. The caller was checked when it started the agent.
        let caller = RequestCaller { peer: None, via: "daemon", peer_gone: false, owner_pid: None, client: None };
        let action = SendAction { guards, text: Some(text), ..SendAction::default() };
        Ok(self.send(action, caller).await?.report)
    }

    /// Waits until the agent shows a dialog, or until `READY_TIMEOUT` has passed. Returns the reason why the prompt is
    /// kept.
    pub(super) async fn why_not_ready(&self, runtime: &RuntimeId) -> String {
        let (deadline, mut open_since) = (Instant::now() + READY_TIMEOUT, None);
        while Instant::now() < deadline {
            let agent = self.agent(runtime).await;
            let waits = agent.as_ref().filter(|agent| agent.record.state.is_waiting());
            match waits {
                None => open_since = None,
                Some(agent) => {
                    let since = *open_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= DIALOG_TIME {
                        return dialog_in_the_way(agent);
                    }
                }
            }
            sleep(POLL_INTERVAL).await;
        }
        let state = self.agent(runtime).await.map_or("gone".to_owned(), |agent| agent.record.state.to_string());
        format!("the agent is not ready for a prompt after {} s; its state is {state}", READY_TIMEOUT.as_secs())
    }

    /// Waits until the state of a new agent is known.
    pub(super) async fn wait_for_first_state(&self, runtime: &RuntimeId) {
        let deadline = Instant::now() + STATE_TIMEOUT;
        while Instant::now() < deadline {
            match self.agent(runtime).await {
                Some(agent) if agent.record.state == State::Unknown => sleep(POLL_INTERVAL).await,
                _ => return,
            }
        }
    }

    async fn agent(&self, runtime: &RuntimeId) -> Option<LocatedAgent> {
        self.0.engine.locate(PaneRef::Runtime(runtime.clone())).await.ok()?.agent
    }
}

fn dialog_in_the_way(agent: &LocatedAgent) -> String {
    match agent.dialog.as_ref().map(|dialog| &dialog.question) {
        Some(question) => format!("a dialog is open: {question}"),
        None => format!("a dialog is open; the state is {}", agent.record.state),
    }
}
