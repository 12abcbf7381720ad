//! The portable backend. It uses `ps` for the process table, and polls everything else once a second.

mod poll;
mod ps;
mod watched_item;

use super::ps_rows;

pub(super) use poll::{INTERVAL, PollingWatcher};
pub(super) use ps::PsTable;
