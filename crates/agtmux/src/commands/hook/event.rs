//! The event that a hook sends, and its origin.

use std::path::PathBuf;

use agtmux_api::wire::EventSubmission;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::ancestors::{self, Ancestor};

#[derive(Debug)]
pub(crate) struct HookEvent {
    source: &'static str,
    event_type: String,
    agent: Option<String>,
    /// The process of the agent, if it is known.
    pid: Option<u32>,
    time: Timestamp,
    payload: Option<Value>,
}

impl HookEvent {
    pub(crate) fn new(source: &'static str, event_type: &str, time: Timestamp) -> Self {
        Self { source, event_type: event_type.into(), agent: None, pid: None, time, payload: None }
    }

    pub(crate) fn agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.into()), ..self }
    }

    pub(crate) fn pid(self, pid: u32) -> Self {
        Self { pid: Some(pid), ..self }
    }

    pub(crate) fn payload(self, payload: Option<Value>) -> Self {
        Self { payload, ..self }
    }

    pub(super) fn time(&self) -> Timestamp {
        self.time
    }

    pub(super) fn into_wire(self, origin: HookOrigin) -> EventSubmission {
        EventSubmission {
            source: self.source.into(),
            event_type: self.event_type,
            agent_type: self.agent,
            pane: origin.pane,
            pid: self.pid,
            // Start times belong to pids by position, so the list ends at the first unknown one.
            pid_starts: origin.ancestors.iter().map_while(|ancestor| ancestor.start).collect(),
            pids: origin.ancestors.iter().map(|ancestor| ancestor.pid).collect(),
            socket: origin.socket,
            cwd: origin.cwd,
            event_time: Some(self.time),
            dedupe_key: Some(Uuid::new_v4().simple().to_string()),
            payload: self.payload,
            ..EventSubmission::default()
        }
    }
}

/// Where an event comes from. No other environment variable is sent, because they can hold secrets.
#[derive(Debug, Default)]
pub(crate) struct HookOrigin {
    pane: Option<String>,
    socket: Option<String>,
    cwd: Option<String>,
    ancestors: Vec<Ancestor>,
}

impl HookOrigin {
    /// A pane that the caller knows.
    pub(super) fn in_pane(pane: &str, socket: &str) -> Self {
        Self { pane: Some(pane.into()), socket: Some(socket.into()), ..Self::default() }
    }

    pub(crate) fn of_this_process() -> Self {
        let tmux = variable("TMUX");
        Self {
            pane: variable("TMUX_PANE"),
            socket: tmux.as_deref().and_then(socket_of),
            cwd: std::env::current_dir().ok().and_then(path_text),
            ancestors: ancestors::of_this_process(),
        }
    }
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn path_text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

/// `$TMUX` is `socket,pid,session`. The socket may contain commas.
fn socket_of(tmux: &str) -> Option<String> {
    let socket = tmux.rsplitn(3, ',').nth(2)?;
    socket.starts_with('/').then(|| socket.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_may_contain_commas() {
        assert_eq!(socket_of("/tmp/a,b/s,12,0").as_deref(), Some("/tmp/a,b/s"));
        assert_eq!(socket_of("nothing"), None);
        assert_eq!(socket_of("rel,1,2"), None);
    }

    #[test]
    fn each_event_has_a_unique_dedupe_key() {
        let key = || HookEvent::new("hook", "Stop", Timestamp::UNIX_EPOCH).into_wire(HookOrigin::default()).dedupe_key;
        assert_ne!(key(), key());
    }
}
