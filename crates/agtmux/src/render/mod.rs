//! Renders items as text. This module neither prints nor asks the daemon.

mod adapters;
pub(crate) mod age;
mod audit;
mod cell;
mod colour;
mod fit;
mod locations;
mod notices;
mod notify_log;
mod panes;
mod sessions;
mod summary;
mod table;
mod targets;
mod tasks;
#[cfg(test)]
pub(crate) mod test_items;
mod web_logins;
mod windows;

pub(crate) use adapters::{adapter_faults, adapters};
pub(crate) use age::age;
pub(crate) use audit::audit;
pub(crate) use notices::target_errors;
pub(crate) use notify_log::notify_log;
pub(crate) use panes::{asks, panes};
pub(crate) use sessions::sessions;
pub(crate) use summary::{counts, summary_line};
pub(crate) use table::TextTable;
pub(crate) use targets::targets;
pub(crate) use tasks::tasks;
pub(crate) use web_logins::web_logins;
pub(crate) use windows::windows;
