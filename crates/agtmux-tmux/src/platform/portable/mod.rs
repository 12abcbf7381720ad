//! What every Unix can do: `ps` for what runs, and looking again once a second for everything else.

mod poll;
mod ps;
mod watched_item;

use super::ps_rows;

pub(super) use poll::{INTERVAL, PollingWatcher};
pub(super) use ps::PsTable;
