//! What the server remembers between calls.

use std::collections::HashMap;
use std::sync::Mutex;

use agtmux_api::wire::CallerReport;
use agtmux_client::{ClientError, DaemonClient};
use jiff::Timestamp;

/// The memory of one server process.
#[derive(Debug)]
pub(crate) struct McpState {
    pub(crate) started_at: Timestamp,
    caller: Mutex<Option<CallerReport>>,
    /// The number of the last command of the person that a result has reported, by pane.
    reported_commands: Mutex<HashMap<String, u64>>,
    /// The last task event that a result has reported. `None` until the client uses tasks.
    reported_task_event: Mutex<Option<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl McpState {
    pub(crate) fn new() -> Self {
        Self {
            started_at: Timestamp::now(),
            caller: Mutex::default(),
            reported_commands: Mutex::default(),
            reported_task_event: Mutex::default(),
        }
    }

    /// The agent and the pane that this server belongs to. The daemon finds them by the process of this server, because
    /// some clients do not pass on TMUX_PANE.
    pub(crate) async fn caller(&self, daemon: &DaemonClient) -> Result<CallerReport, ClientError> {
        if let Some(known) = lock(&self.caller).clone() {
            return Ok(known);
        }
        let report: CallerReport = daemon.get("/v1/caller", &()).await?;
        // The daemon may not have seen a new pane yet.
        if report.runtime_id.is_some() {
            *lock(&self.caller) = Some(report.clone());
        }
        Ok(report)
    }

    pub(crate) fn reported_command(&self, pane: &str) -> Option<u64> {
        lock(&self.reported_commands).get(pane).copied()
    }

    pub(crate) fn set_reported_command(&self, pane: &str, number: u64) {
        lock(&self.reported_commands).insert(pane.to_owned(), number);
    }

    pub(crate) fn reported_task_event(&self) -> Option<u64> {
        *lock(&self.reported_task_event)
    }

    pub(crate) fn set_reported_task_event(&self, seq: u64) {
        let mut reported = lock(&self.reported_task_event);
        *reported = Some(reported.unwrap_or_default().max(seq));
    }
}
