//! What every Unix can do: `ps` for what runs, and looking again once a second for everything else.

mod look;
mod poll;
mod ps;

use super::rows;

pub(super) use poll::{INTERVAL, PollingWatcher};
pub(super) use ps::Ps;
