//! The event that a hook sends, and its origin.

use std::path::PathBuf;

use agtmux_api::wire::EventSubmission;
use agtmux_tmux::socket_of_tmux_variable;
use jiff::Timestamp;
use uuid::Uuid;

use super::ancestors;
use crate::input::variable;

/// An event that does not say which pane or process it comes from.
pub(super) fn new(source: &str, event_type: &str, time: Timestamp) -> EventSubmission {
    EventSubmission {
        source: source.into(),
        event_type: event_type.into(),
        event_time: Some(time),
        dedupe_key: Some(Uuid::new_v4().simple().to_string()),
        ..EventSubmission::default()
    }
}

/// An event that comes from this process. Of the environment variables, uses only TMUX and TMUX_PANE, because other
/// variables can hold secrets.
pub(crate) fn of_this_process(source: &str, event_type: &str, time: Timestamp) -> EventSubmission {
    let socket = variable("TMUX").as_deref().and_then(socket_of_tmux_variable);
    let ancestors = ancestors::of_this_process();
    EventSubmission {
        pane: variable("TMUX_PANE"),
        socket: socket.and_then(path_text),
        cwd: std::env::current_dir().ok().and_then(path_text),
        // Each start time belongs to the pid at the same position, so the list ends at the first unknown start time.
        pid_starts: ancestors.iter().map_while(|ancestor| ancestor.start).collect(),
        pids: ancestors.iter().map(|ancestor| ancestor.pid).collect(),
        ..new(source, event_type, time)
    }
}

fn path_text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_a_unique_dedupe_key() {
        let key = || new("hook", "Stop", Timestamp::UNIX_EPOCH).dedupe_key;
        assert_ne!(key(), key());
    }
}
