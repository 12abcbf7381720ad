//! The hosts whose tmux is watched: what they may be called, how they are reached, and how they fare.

mod health;
mod names;

pub use health::{Fault, HealthLog, TargetHealth};
pub use names::{BadName, SshTarget, is_target_name};

use crate::ids::TargetName;
use crate::words::wire_words;

wire_words!(
    /// How a target is reached.
    TargetKind {
        /// It is this machine.
        Local => "local",
        /// By the system's `ssh`.
        Ssh => "ssh",
    }
);

/// A target as it is stored. Nothing of it is secret: how to get in is the business of `ssh` and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub name: TargetName,
    pub ssh: SshTarget,
}
