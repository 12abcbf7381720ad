//! The pure heart of agtmux: the words everyone shares and the model of what runs where.
//!
//! Nothing in here does IO, spawns a task or reads a clock: `now` is always an argument. That is what makes every
//! decision replayable.

pub mod binding;
pub mod dialog;
pub mod evidence;
pub mod fleet;
pub mod ids;
pub mod ledger;
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
pub mod wire_enum;
