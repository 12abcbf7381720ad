//! The portable backend: `ps` for the process table, and polling once a second for everything else.

mod poll;
mod ps;
mod watched_item;

use super::ps_rows;

pub(super) use poll::{INTERVAL, PollingWatcher};
pub(super) use ps::PsTable;
