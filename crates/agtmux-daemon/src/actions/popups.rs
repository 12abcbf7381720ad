//! Recognises the interface in a tmux popup that a person opened by a key.
//!
//! A popup is no pane, so `pane_visits` cannot tell who uses it. An agent can open a popup, too, with any command in it.
//! So only the interface itself counts: it acts on keys alone, and the keys come from the tmux client that shows the
//! popup.

use std::time::UNIX_EPOCH;

use agtmux_core::ids::ServerKey;
use agtmux_tmux::platform::{ProcessInfo, ProcessTable};

use super::Actions;

/// A popup that a key opened starts at most this many seconds after the key. tmux counts whole seconds.
const KEY_BEFORE_START: u64 = 3;

impl Actions {
    /// Whether this process is the interface of agtmux in a popup that a person opened by a key.
    pub(super) async fn is_popup_of_a_person(
        &self,
        processes: &dyn ProcessTable,
        interface: &ProcessInfo,
        server: &ServerKey,
    ) -> bool {
        if self.0.visited_panes.contains(interface) {
            return true;
        }
        let is_interface = is_interface_command(&interface.argv) && processes.runs_this_program(interface.pid);
        // The parent is the tmux server. It sends the keys of the popup.
        if !is_interface || !processes.has_keyboard_of(interface.pid, interface.ppid) {
            return false;
        }
        let Some(access) = self.0.discovery.server_access(server) else { return false };
        // A new pane may not be in the fleet yet. Any process can type into a pane.
        match access.tmux.list().await {
            Ok(listing) if listing.rows.iter().all(|row| row.pid != interface.pid) => {}
            _ => return false,
        }
        let Some(started) = processes.started_at(interface.pid) else { return false };
        let started = started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        for client in access.tmux.clients().await.unwrap_or_default() {
            let opened_it = !client.control_mode && client.last_key.abs_diff(started) <= KEY_BEFORE_START;
            if opened_it && self.is_client_of_a_person(processes, &client).await {
                self.0.visited_panes.insert(interface);
                return true;
            }
        }
        false
    }
}

/// Whether the arguments open the interface. Every other command acts without a key.
fn is_interface_command(argv: &[Vec<u8>]) -> bool {
    match argv.get(1..) {
        Some([]) => true,
        Some([command]) => command == b"inbox",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_interface_acts_on_keys_alone() {
        let is_interface =
            |line: &str| is_interface_command(&line.split(' ').map(|word| word.into()).collect::<Vec<_>>());
        assert!(is_interface("agtmux") && is_interface("/usr/bin/agtmux inbox"));
        for line in ["agtmux respond", "agtmux respond %3 approve", "agtmux inbox --plain", "agtmux sidebar"] {
            assert!(!is_interface(line), "{line}");
        }
        assert!(!is_interface_command(&[]));
    }
}
