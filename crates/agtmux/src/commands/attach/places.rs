//! Where tmux clients were before agtmux moved them, for `agtmux back`. One file per client.

use std::io::Write;
use std::path::PathBuf;

use agtmux_api::paths::{Paths, private_dir};
use agtmux_tmux::platform::process_table;
use agtmux_tmux::{ClientPlace, ClientView};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::error::{CliError, CliResult};

/// Older places are forgotten.
const MAX_PLACES: usize = 50;

/// The record of one client.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClientRecord {
    /// When the client was attached. Together with its pid, this identifies the client.
    created: u64,
    /// The earlier places as session, window and pane, the newest last.
    places: Vec<(u32, u32, u32)>,
    /// The `agtmux` process that attached this client to another tmux server. It returns when the client detaches.
    #[serde(default)]
    traveller: Option<u32>,
    /// The agent to which the traveller goes next, instead of returning.
    #[serde(default)]
    pub(super) next_agent: Option<String>,
}

impl ClientRecord {
    /// Records a place that the client leaves.
    pub(super) fn push(&mut self, place: ClientPlace) {
        let place = (place.session, place.window, place.pane);
        if self.places.last() != Some(&place) {
            self.places.push(place);
        }
        let surplus = self.places.len().saturating_sub(MAX_PLACES);
        self.places.drain(..surplus);
    }

    pub(super) fn pop(&mut self) -> Option<ClientPlace> {
        self.places.pop().map(|(session, window, pane)| ClientPlace { session, window, pane })
    }

    pub(super) fn of_traveller(pid: u32) -> Self {
        Self { traveller: Some(pid), ..Self::default() }
    }

    /// Whether the client was brought to its tmux server by a process that still waits for its end.
    pub(super) fn travels(&self) -> bool {
        self.traveller.is_some()
    }
}

/// The records of all clients.
#[derive(Debug)]
pub(super) struct ClientRecords(PathBuf);

impl ClientRecords {
    pub(super) fn new(paths: &Paths) -> Self {
        Self(paths.clients_dir())
    }

    fn file(&self, pid: u32) -> PathBuf {
        self.0.join(format!("{pid}.json"))
    }

    /// The record of a client; empty if the file belongs to an earlier client with the same pid.
    pub(super) fn read(&self, view: &ClientView) -> ClientRecord {
        let mut record = self.read_file(view.client.pid).unwrap_or_default();
        if record.created == 0 && record.traveller.is_some_and(|traveller| is_parent(traveller, view.client.pid)) {
            record.created = view.created;
        }
        match record.created == view.created {
            true => record,
            false => ClientRecord { created: view.created, ..ClientRecord::default() },
        }
    }

    fn read_file(&self, pid: u32) -> Option<ClientRecord> {
        serde_json::from_slice(&std::fs::read(self.file(pid)).ok()?).ok()
    }

    /// Reads and removes the record of a client that has ended.
    pub(super) fn take(&self, pid: u32) -> Option<ClientRecord> {
        let record = self.read_file(pid);
        // The file may not exist, if the client was never moved.
        let _ = std::fs::remove_file(self.file(pid));
        record
    }

    pub(super) fn write(&self, pid: u32, record: &ClientRecord) -> CliResult {
        let failed = |error: &dyn std::fmt::Display| CliError::io(&format!("write to '{}'", self.0.display()), error);
        private_dir(&self.0, "AGTMUX_STATE_DIR").map_err(|error| failed(&error))?;
        self.remove_ended();
        let mut file = tempfile::NamedTempFile::new_in(&self.0).map_err(|error| failed(&error))?;
        let text = serde_json::to_vec(record).map_err(|error| failed(&error))?;
        file.write_all(&text).map_err(|error| failed(&error))?;
        file.persist(self.file(pid)).map(drop).map_err(|error| failed(&error))
    }

    /// Removes the records of clients that have ended.
    fn remove_ended(&self) {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok()).and_then(Pid::from_raw);
            if pid.is_some_and(|pid| test_kill_process(pid).is_err()) {
                // Another command may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

fn is_parent(parent: u32, pid: u32) -> bool {
    process_table(false).process(pid).is_some_and(|process| process.ppid == parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agtmux_tmux::TmuxClient;

    fn place(pane: u32) -> ClientPlace {
        ClientPlace { session: 1, window: 2, pane }
    }

    #[test]
    fn places_are_left_in_reverse_order_and_their_number_is_limited() {
        let mut record = ClientRecord::default();
        (0..60).for_each(|pane| record.push(place(pane)));
        record.push(place(59));
        assert_eq!((record.pop(), record.pop()), (Some(place(59)), Some(place(58))));
        assert_eq!(std::iter::from_fn(|| record.pop()).last(), Some(place(10)));
    }

    #[test]
    fn a_record_belongs_to_one_client() {
        let dir = tempfile::tempdir().expect("a directory");
        let records = ClientRecords(dir.path().join("clients"));
        let client = TmuxClient { pid: std::process::id(), last_key: 5, control_mode: false, session: 1, pane: 3 };
        let view = ClientView { client, tty: "/dev/pts/1".into(), created: 7, window: 2, shown_agent: None };
        let mut record = records.read(&view);
        record.push(place(3));
        records.write(client.pid, &record).expect("written");
        assert_eq!(records.read(&view), record);
        let later = ClientView { created: 8, ..view.clone() };
        assert_eq!(records.read(&later).pop(), None, "another client with the same pid");
        std::fs::write(records.file(client.pid), "{").expect("written");
        assert_eq!(records.read(&view).pop(), None, "a damaged file");
        std::fs::write(records.file(u32::MAX / 2), "{}").expect("written");
        records.write(client.pid, &record).expect("written");
        assert!(!records.file(u32::MAX / 2).exists(), "the record of an ended client is removed");
    }
}
