//! Opens the pane of a new agent, types the agent's command into its shell, and waits until agtmux detects the agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agtmux_api::error::{ApiError, ApiResult, ErrorCode};
use agtmux_api::wire::{InputProfile, NewAction, NewPlace};
use agtmux_core::fleet::PaneKey;
use agtmux_core::ids::{PaneId, ServerKey, TargetName};
use agtmux_core::refs::PaneRef;
use agtmux_core::task::project_slug;
use agtmux_tmux::{PanePlace, TmuxServer, default_socket};
use tokio::time::{Instant, sleep};

use super::super::resume::{shell_word, wait_for_runtime};
use super::super::sender::{SendMessage, TextSender};
use super::super::{ActionPane, Actions, after_typing, precondition, tmux_error};
use crate::actions::perform::lock_name;
use crate::engine::{LocatedAgent, LocatedPane};
use crate::observe::server_name;

/// How long agtmux may take to see a new pane, and how long the shell in it may take to show its prompt.
const PANE_TIMEOUT: Duration = Duration::from_secs(15);
const SHELL_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// An agent that was started in a new pane.
pub(in crate::actions) struct StartedAgent {
    pub(in crate::actions) located: LocatedPane,
    pub(in crate::actions) agent: LocatedAgent,
    pub(super) command: String,
    pub(super) cwd: String,
}

impl Actions {
    pub(super) async fn launch(&self, action: &NewAction) -> ApiResult<StartedAgent> {
        let program = self.program_of(&action.agent)?;
        let words = [&program].into_iter().chain(&action.arguments).map(|word| shell_word(word));
        self.launch_command(action, words.collect::<Vec<_>>().join(" "), action.name.as_deref()).await
    }

    /// Starts the agent by this command line.
    pub(in crate::actions) async fn launch_command(
        &self,
        action: &NewAction,
        command: String,
        window_name: Option<&str>,
    ) -> ApiResult<StartedAgent> {
        let cwd = existing_dir(&action.cwd)?;
        if let Some(name) = &action.name
            && self.0.engine.is_name_taken(name.clone(), Vec::new()).await
        {
            return Err(precondition(format!("another agent is already named '{name}'"), "choose another name"));
        }
        let socket = match &action.socket {
            Some(socket) => PathBuf::from(socket),
            None => default_socket(std::env::var_os("TMUX_TMPDIR").as_deref()),
        };
        let config = self.config();
        let tmux = TmuxServer::new(&config.tmux.program, &socket, config.tmux_bridge.subprocess_timeout.0);
        let session = session_for(&action.place, &cwd)?;
        let place = pane_place(&action.place, &session)?;
        let opened = tmux.open_pane(place, &cwd, window_name).await.map_err(tmux_error)?;
        let server = ServerKey { target: TargetName::local(), server: server_name(&socket) };
        let key = PaneKey { server, pane: PaneId(opened.pane) };
        let located = self.wait_for_pane(&key, opened.server_pid).await?;
        // No other action types into the pane before the agent has started.
        let _lock = self.0.pane_locks.take(lock_name(&key)).await;
        let pane = self.action_pane(located.clone(), false)?;
        type_command(&pane, &command).await?;
        let Some(runtime) = wait_for_runtime(&pane, &action.agent).await else {
            return Err(not_started(&action.agent, &located));
        };
        let started = self.0.engine.locate(PaneRef::Runtime(runtime.clone())).await?;
        let Some(agent) = started.agent.clone() else { return Err(not_started(&action.agent, &located)) };
        if let Some(name) = &action.name {
            self.0.engine.name_agent(runtime, name.clone()).await.map_err(after_typing)?;
        }
        Ok(StartedAgent { located: started, agent, command, cwd })
    }

    /// The program that starts an agent of this type.
    fn program_of(&self, agent_type: &str) -> ApiResult<String> {
        let registry = self.0.discovery.registry();
        let known = registry.agent(agent_type).and_then(|agent| agent.programs().first().cloned());
        known.ok_or_else(|| {
            let shown: String = agent_type.chars().take(64).collect();
            let message = format!("agtmux does not know an agent '{shown}'");
            let names = registry.names().join(", ");
            ApiError::new(ErrorCode::BadRequest, message)
                .with_hint(format!("known agents: {names}; docs/add-your-agent.md explains how to add one"))
        })
    }

    async fn wait_for_pane(&self, key: &PaneKey, server_pid: u32) -> ApiResult<LocatedPane> {
        let deadline = Instant::now() + PANE_TIMEOUT;
        loop {
            if let Some(located) = self.0.engine.locate_key(key.clone()).await
                && located.generation.pid == server_pid
                && located.reachable
            {
                return Ok(located);
            }
            if Instant::now() >= deadline {
                let message = format!("agtmux opened pane {}, but does not see it; no agent was started", key.pane);
                return Err(precondition(message, "agtmux daemon status"));
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

/// The directory, if it exists. An empty path is the home directory.
fn existing_dir(cwd: &str) -> ApiResult<String> {
    let home = || std::env::var("HOME").unwrap_or_else(|_| "/".into());
    let cwd = if cwd.is_empty() { home() } else { cwd.to_owned() };
    let bad = |why: &str| {
        let message = format!("'{}' {why}", cwd.escape_debug());
        Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("agtmux new AGENT --in DIR"))
    };
    if !cwd.starts_with('/') || cwd.chars().any(char::is_control) {
        return bad("is not an absolute path");
    }
    if Path::new(&cwd).is_dir() { Ok(cwd) } else { bad("is not a directory") }
}

/// The session of the new window, if the request names one or leaves the choice to agtmux.
fn session_for(place: &NewPlace, cwd: &str) -> ApiResult<String> {
    let slug =
        || project_slug(Path::new(cwd)).map_err(|error| precondition(error.to_string(), "agtmux new --session NAME"));
    match place {
        NewPlace::Project => slug(),
        NewPlace::Session(name) => {
            let plain = |c: char| !c.is_control() && !matches!(c, ':' | '.' | '#');
            let is_valid = (1..=200).contains(&name.len()) && name.chars().all(plain) && !name.starts_with(['=', '$']);
            if is_valid {
                return Ok(name.clone());
            }
            let message = format!("'{}' is not a usable session name", name.escape_debug());
            Err(ApiError::new(ErrorCode::BadRequest, message).with_hint("leave out ':', '.' and '#'"))
        }
        NewPlace::Window(_) | NewPlace::Split(_) => Ok(String::new()),
    }
}

fn pane_place<'a>(place: &NewPlace, session: &'a str) -> ApiResult<PanePlace<'a>> {
    let pane = |text: &String| {
        text.parse::<PaneId>().map(|pane| pane.0).map_err(|_| {
            let message = format!("'{}' is not a pane id", text.escape_debug());
            ApiError::new(ErrorCode::BadRequest, message).with_hint("a pane id looks like %12")
        })
    };
    Ok(match place {
        NewPlace::Project | NewPlace::Session(_) => PanePlace::Session(session),
        NewPlace::Window(text) => PanePlace::AfterWindow(pane(text)?),
        NewPlace::Split(text) => PanePlace::Beside(pane(text)?),
    })
}

/// Types the command as soon as the new shell waits for one.
async fn type_command(pane: &ActionPane<'_>, command: &str) -> ApiResult<()> {
    let deadline = Instant::now() + SHELL_TIMEOUT;
    loop {
        let tree = pane.process_tree().await?;
        match pane.waiting_shell(tree.as_ref()) {
            Ok(_) => break,
            Err(why) if Instant::now() >= deadline => {
                let place = pane.located.key.pane;
                let message = format!("no agent was started: the shell in the new pane {place} shows no prompt: {why}");
                return Err(precondition(message, format!("agtmux attach {}", pane.located.reference())));
            }
            Err(_) => sleep(POLL_INTERVAL).await,
        }
    }
    let at_shell = ActionPane { shell_only: true, ..pane.clone() };
    let sender = TextSender::for_pane(&at_shell, Some(InputProfile::Shell))?;
    let sent = sender.send(&SendMessage { text: Some(command), keys: &[], enter: true, dialog: None }).await;
    sent.map(drop).map_err(after_typing)
}

fn not_started(agent: &str, located: &LocatedPane) -> ApiError {
    let message = format!("{agent} did not start in the new pane {}", located.key.pane);
    let error = precondition(message, format!("agtmux view-output {}   (shows why)", located.reference()));
    ApiError { done_something: true, ..error }
}
