//! Turns items into lines of text. Only draws: nothing in here asks or decides anything.

mod adapters;
pub(crate) mod age;
mod audit;
mod cell;
mod colour;
mod fit;
mod notices;
mod panes;
mod places;
mod sessions;
mod summary;
mod table;
mod targets;
mod tasks;
#[cfg(test)]
mod testing;
mod windows;

pub(crate) use adapters::{adapters, faults};
pub(crate) use age::age;
pub(crate) use audit::audit;
pub(crate) use notices::target_error;
pub(crate) use panes::panes;
pub(crate) use sessions::sessions;
pub(crate) use summary::{counts, summary_line};
pub(crate) use table::Table;
pub(crate) use targets::targets;
pub(crate) use tasks::tasks;
pub(crate) use windows::windows;
