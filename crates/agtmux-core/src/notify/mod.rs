//! Decides which changes of agents a person is told about, when, and through which channels. [`NotifyMachine`] is a
//! pure state machine: the daemon tells it what it sees, carries out the effects, and wakes it when it is due.

mod episode;
mod machine;
mod pattern;
mod quiet_hours;
mod rule;
#[cfg(test)]
mod tests;

pub use episode::{AgentSight, OpenNotice};
pub use machine::{HeldReason, NotifyEffect, NotifyMachine};
pub use pattern::NamePattern;
pub use quiet_hours::{QuietHours, QuietHoursError};
pub use rule::{Escalation, NotifyChannel, NotifyRule};
