//! The pure core of agtmux: shared vocabulary types, the fleet model and the state resolver.
//!
//! This crate does no IO, starts no threads and reads no clock. `now` is always an argument, so every decision can be
//! replayed.

pub mod asked_command;
pub mod binding;
pub mod dialog;
pub mod evidence;
pub mod fleet;
pub mod ids;
pub mod ledger;
pub mod mirror;
pub mod notify;
pub mod ordering;
pub mod output;
pub mod redact;
pub mod refs;
pub mod resolver;
pub mod rollup;
pub mod runtime;
pub mod sanitize;
pub mod state;
pub mod target;
pub mod task;
pub mod text;
mod text_types;
pub mod wire_enum;
